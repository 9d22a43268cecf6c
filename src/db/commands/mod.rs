//! The commands, in tables: a file for each group of them.

mod blocks;
mod btheight;
mod convert;
mod crc;
mod follow;
mod general;
mod hash;
mod hashcoll;
mod header_block;
mod headers;
mod inode;
mod navigate;
pub(in crate::db) mod number;
mod options;
mod print;
mod reservations;
mod scan;
mod script;
mod superblocks;
mod units;
mod unlinked;

use super::command::Command;

/// All tables of commands.
pub(super) fn tables() -> &'static [&'static [Command]] {
    &[
        blocks::COMMANDS,
        btheight::COMMANDS,
        convert::COMMANDS,
        crc::COMMANDS,
        general::COMMANDS,
        hash::COMMANDS,
        hashcoll::COMMANDS,
        headers::COMMANDS,
        inode::COMMANDS,
        navigate::COMMANDS,
        print::COMMANDS,
        reservations::COMMANDS,
        scan::COMMANDS,
        script::COMMANDS,
        superblocks::COMMANDS,
        unlinked::COMMANDS,
    ]
}
