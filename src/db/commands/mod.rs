//! The commands, in tables: a file for each group of them.

mod general;
mod headers;
pub(in crate::db) mod number;
mod options;
mod print;
mod scan;

use super::command::Command;

/// All tables of commands.
pub(super) fn tables() -> &'static [&'static [Command]] {
    &[general::COMMANDS, headers::COMMANDS, print::COMMANDS, scan::COMMANDS]
}
