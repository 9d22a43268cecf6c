//! The field engine: tables that say what a block holds, and what reads, prints, follows and sets the fields.
//!
//! A [`Row`] says what a field is called, where it lies, how many elements it has, in which [`Format`] they are, and where
//! `addr` leads from it. Rows take their offsets from the declarations in [`mod@crate::ondisk`] by `at!`; what
//! depends on the contents of the block is computed by functions of the [`Object`]. All places and sizes are in bits,
//! because some fields are.

pub(in crate::db) mod calendar;
mod expression;
mod format;
pub mod formats;
pub(in crate::db) mod json;
mod node;
mod object;
mod row;
mod set;
mod text;
mod value;

pub use expression::Expression;
pub use format::{Format, Null, Radix, Shape, Size, Target};
pub use json::{object_of, values_of};
pub use node::{Node, all, find, first_of};
pub use object::Object;
pub(in crate::db) use row::at;
pub use row::{Bits, Count, Place, Row};
pub use set::{encode, store};
pub use text::write_nodes;
