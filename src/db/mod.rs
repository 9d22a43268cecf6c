//! Looking into a filesystem as xfs_db does: commands, field tables, navigation, print.
//!
//! A [`Session`] is an opened image and where in it one looks. [`interpret()`] runs one line of words on it: a row of the
//! command table ([`command::find`]) that moves the session and gives an [`Answer`], which can be written as text (the
//! bytes that xfs_db 7.2 prints) or as JSON. What a block holds is told by the tables of [`types`], which the engine in
//! [`field`] reads, prints, follows and sets.

pub mod answer;
pub mod c_random;
pub mod collision;
pub mod command;
mod commands;
pub mod completion;
pub mod crc_state;
pub mod field;
pub mod interpret;
pub mod line;
mod paths;
pub mod position;
pub mod ring;
pub mod scan;
pub mod session;
mod travel;
pub mod types;

pub use answer::{Answer, Bytes, Nothing, Text};
pub use command::Command;
pub use completion::Completion;
pub use crc_state::CrcState;
pub use interpret::interpret;
pub use position::Position;
pub use session::{DeviceNames, Session};
pub use types::TypeId;
