//! Access modes in the words of chmod (POSIX `chmod`).

/// Who a clause is about: the bits of user, group and others, with setuid, setgid and sticky.
const USER: u16 = 0o4700;
const GROUP: u16 = 0o2070;
const OTHERS: u16 = 0o1007;
/// The bits of execution.
const EXECUTE: u16 = 0o111;

/// What becomes of the bits that a clause names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Remove,
    Set,
}

/// A part between commas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clause {
    who: u16,
    operator: Operator,
    bits: u16,
    /// Execution for directories, and for files that somebody may execute already.
    execute_if_any: bool,
}

/// A change of access modes: a number, or clauses as `u+rw,go-w`. Copies of another's bits (`g=u`) are not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeChange {
    clauses: Vec<Clause>,
}

impl ModeChange {
    /// The bits of a number.
    pub fn number(bits: u16) -> Self {
        let clause = Clause { who: 0o7777, operator: Operator::Set, bits: bits & 0o7777, execute_if_any: false };
        ModeChange { clauses: vec![clause] }
    }

    /// What `text` says; `None` if it says nothing that is understood.
    pub fn parse(text: &str) -> Option<Self> {
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            let bits = u16::from_str_radix(text, 8).ok().filter(|bits| *bits <= 0o7777)?;
            return Some(Self::number(bits));
        }
        let clauses: Option<Vec<Vec<Clause>>> = text.split(',').map(parse_part).collect();
        Some(ModeChange { clauses: clauses?.concat() })
    }

    /// The bits of a file that had `permissions`.
    pub fn apply(&self, permissions: u16, directory: bool) -> u16 {
        self.clauses.iter().fold(permissions, |now, clause| {
            let mut bits = clause.bits;
            if clause.execute_if_any && (directory || now & EXECUTE != 0) {
                bits |= EXECUTE & clause.who;
            }
            match clause.operator {
                Operator::Add => now | bits,
                Operator::Remove => now & !bits,
                // a number leaves nothing; letters leave the special bits of directories, as chmod does
                Operator::Set if clause.who == 0o7777 => bits,
                Operator::Set => now & !(clause.who & if directory { 0o1777 } else { 0o7777 }) | bits,
            }
        })
    }
}

/// A part: whom it is about, and one or more operators with their bits.
fn parse_part(text: &str) -> Option<Vec<Clause>> {
    let end = text.find(['+', '-', '='])?;
    let (whom, mut rest) = text.split_at(end);
    let mut who = 0;
    for letter in whom.chars() {
        who |= match letter {
            'u' => USER,
            'g' => GROUP,
            'o' => OTHERS,
            'a' => USER | GROUP | OTHERS,
            _ => return None,
        };
    }
    if whom.is_empty() {
        who = USER | GROUP | OTHERS;
    }
    let mut clauses = Vec::new();
    while let Some(operator) = rest.chars().next() {
        let end = rest[1..].find(['+', '-', '=']).map_or(rest.len(), |end| end + 1);
        clauses.push(parse_clause(who, operator, &rest[1..end])?);
        rest = &rest[end..];
    }
    Some(clauses)
}

fn parse_clause(who: u16, operator: char, letters: &str) -> Option<Clause> {
    let operator = match operator {
        '+' => Operator::Add,
        '-' => Operator::Remove,
        _ => Operator::Set,
    };
    let (mut bits, mut execute_if_any) = (0, false);
    for letter in letters.chars() {
        bits |= match letter {
            'r' => 0o444,
            'w' => 0o222,
            'x' => EXECUTE,
            's' => 0o6000,
            't' => 0o1000,
            'X' => {
                execute_if_any = true;
                0
            }
            _ => return None,
        };
    }
    Some(Clause { who, operator, bits: bits & who, execute_if_any })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, permissions: u16, directory: bool) -> Option<u16> {
        Some(ModeChange::parse(text)?.apply(permissions, directory))
    }

    #[test]
    fn modes_are_as_chmod_has_them() {
        assert_eq!(changed("0644", 0o7777, false), Some(0o644));
        assert_eq!(changed("u+x,go-rw", 0o644, false), Some(0o700));
        assert_eq!(changed("a+X", 0o644, false), Some(0o644));
        assert_eq!(changed("a+X", 0o644, true), Some(0o755));
        assert_eq!(changed("a+X", 0o744, false), Some(0o755));
        assert_eq!(changed("u=rwx,g=rx,o=", 0o644, false), Some(0o750));
        assert_eq!(changed("g+s", 0o755, true), Some(0o2755));
        assert_eq!(changed("+t", 0o777, true), Some(0o1777));
        assert_eq!(changed("u+x-w", 0o644, false), Some(0o544));
        assert_eq!(changed("o+t", 0o755, true), Some(0o1755));
        for wrong in ["", "8", "u", "u+q", "z+r", "77777"] {
            assert_eq!(changed(wrong, 0o644, false), None, "{wrong}");
        }
    }
}
