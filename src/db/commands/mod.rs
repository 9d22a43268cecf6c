//! The commands, in tables: a file for each group of them.

mod attributes;
mod blocks;
mod bmap;
mod btdump;
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
mod names;
mod navigate;
pub(in crate::db) mod number;
mod options;
mod print;
mod rdump;
mod reservations;
mod scan;
mod script;
mod superblocks;
mod timelimit;
mod units;
mod unlinked;

use super::command::Command;

/// All tables of commands.
pub(super) fn tables() -> &'static [&'static [Command]] {
    &[
        attributes::COMMANDS,
        blocks::COMMANDS,
        bmap::COMMANDS,
        btdump::COMMANDS,
        btheight::COMMANDS,
        convert::COMMANDS,
        crc::COMMANDS,
        general::COMMANDS,
        hash::COMMANDS,
        hashcoll::COMMANDS,
        headers::COMMANDS,
        inode::COMMANDS,
        navigate::COMMANDS,
        names::COMMANDS,
        print::COMMANDS,
        rdump::COMMANDS,
        reservations::COMMANDS,
        scan::COMMANDS,
        script::COMMANDS,
        superblocks::COMMANDS,
        timelimit::COMMANDS,
        unlinked::COMMANDS,
    ]
}
