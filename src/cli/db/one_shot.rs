//! A command given as separate arguments, without `-c`.

use crate::db::command::find;

/// The commands that the words mean: `print agf 3 freeblks` is `agf 3`, then `print freeblks`. What follows the name of a
/// command that moves is that command's as long as it is an option or a number, and no more than it takes.
pub(super) fn commands(words: &[String]) -> Vec<Vec<String>> {
    let moves = |word: &String| find(word).ok().filter(|command| command.moves);
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let prints = find(first).is_ok_and(|command| command.name == "print");
    let Some(target) = rest.first().filter(|_| prints).and_then(moves) else { return vec![words.to_vec()] };
    let is_argument = |word: &String| word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let most = target.max.unwrap_or(usize::MAX).min(rest.len() - 1);
    let taken = rest[1..].iter().take(most).take_while(|word| is_argument(word)).count();
    let (go, fields) = rest.split_at(1 + taken);
    let print = std::iter::once(first).chain(fields).cloned().collect();
    vec![go.to_vec(), print]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        commands(&words).iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn print_goes_where_it_is_told() {
        assert_eq!(split("print agf 3"), ["agf 3", "print"]);
        assert_eq!(split("p agf 3 freeblks longest"), ["agf 3", "p freeblks longest"]);
        assert_eq!(split("print sb magicnum"), ["sb", "print magicnum"]);
        assert_eq!(split("print magicnum"), ["print magicnum"]);
        assert_eq!(split("freesp -s agf 3"), ["freesp -s agf 3"]);
        assert_eq!(split("agf 3"), ["agf 3"]);
        assert!(commands(&[]).is_empty());
    }
}
