//! What can stand at a place in a line: names of commands, types and fields.

use super::command::{all, find};
use super::field::{Object, Row};
use super::session::Session;
use super::types::{Body, TypeId, body};

/// The words that can be completed at some moment of a session.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    commands: Vec<&'static str>,
    moving: Vec<&'static str>,
    types: Vec<&'static str>,
    /// Fields of the current block, those in structures with the names in front of them.
    fields: Vec<String>,
}

/// How deep fields in fields are named.
const DEPTH: usize = 4;

impl Completion {
    /// What can be completed where the session is now.
    pub fn of(session: &Session) -> Self {
        let family = session.family();
        let mut fields = Vec::new();
        if let Some(position) = session.position()
            && let Some(Body::Fields(format)) = body(position.ty, family)
        {
            let object = Object { bytes: position.bytes(), geometry: session.geometry(), crc: position.crc };
            collect(format.rows().unwrap_or_default(), &object, 0, "", DEPTH, &mut fields);
        }
        let commands = all();
        Completion {
            moving: commands.iter().filter(|command| command.moves).map(|command| command.name).collect(),
            commands: commands.iter().map(|command| command.name).collect(),
            types: TypeId::ALL.iter().filter_map(|ty| ty.name(family)).collect(),
            fields,
        }
    }

    /// What can stand behind the words `before`, and begins with `begun`.
    pub fn candidates(&self, before: &[String], begun: &str) -> Vec<String> {
        let name = before.last().and_then(|_| find(&before[0]).ok()).map(|command| command.name);
        let fitting =
            |words: &[&str]| words.iter().filter(|word| word.starts_with(begun)).map(|&word| word.to_owned()).collect();
        match (before.len(), name) {
            (0, _) | (1, Some("help")) => fitting(&self.commands),
            (1, Some("push")) => fitting(&self.moving),
            (_, Some("push")) => self.candidates(&before[1..], begun),
            (1, Some("type")) => fitting(&self.types),
            (_, Some("print")) | (1, Some("addr")) => {
                self.fields.iter().filter(|field| field.starts_with(begun)).cloned().collect()
            }
            _ => Vec::new(),
        }
    }
}

fn collect(
    rows: &'static [Row],
    object: &Object<'_>,
    start: usize,
    prefix: &str,
    depth: usize,
    fields: &mut Vec<String>,
) {
    for row in rows.iter().filter(|row| row.count(object, start) > 0) {
        let index = row.base.unwrap_or(0);
        let bracket = row.base.map(|base| format!("[{base}]")).unwrap_or_default();
        fields.push(format!("{prefix}{}", row.name));
        if let Some(rows) = row.format.rows().filter(|_| depth > 1) {
            let prefix = format!("{prefix}{}{bracket}.", row.name);
            collect(rows, object, row.offset(object, start, index), &prefix, depth - 1, fields);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_by_their_place() {
        let known = Completion {
            commands: vec!["agf", "print", "push"],
            moving: vec!["agf"],
            types: vec!["agf", "agfl"],
            fields: vec!["core".to_owned(), "core.mode".to_owned()],
        };
        let candidates = |before: &str, begun: &str| {
            let before: Vec<String> = before.split_whitespace().map(str::to_owned).collect();
            known.candidates(&before, begun)
        };
        assert_eq!(candidates("", "p"), ["print", "push"]);
        assert_eq!(candidates("p", "core."), ["core.mode"]);
        assert_eq!(candidates("print core", ""), ["core", "core.mode"]);
        assert_eq!(candidates("type", "agfl"), ["agfl"]);
        assert_eq!(candidates("push", ""), ["agf"]);
        assert_eq!(candidates("push a", "core.m"), ["core.mode"]);
        assert!(candidates("agf", "a").is_empty());
        assert!(candidates("nothing", "a").is_empty());
    }
}
