//! The command line: one file per tool. The tools do not know each other.

pub mod db;
pub mod files;
pub mod image;
pub mod info;
pub mod logprint;
pub mod manual;
pub mod mdrestore;
pub mod metadump;
pub mod mkfs;
pub mod observer;
pub mod output;
pub mod source;
