//! `convert` and `rtconvert`: addresses from one unit to another (xfsprogs `db/convert.c`).

use serde_json::json;

use super::number;
use super::units::{DATA, REALTIME, Unit, UnitRow, Units};
use crate::db::answer::{Answer, Text};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::{Error, Result};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "convert",
        alias: None,
        min: 3,
        max: Some(9),
        moves: false,
        usage: "UNIT NUMBER [UNIT NUMBER]... UNIT",
        brief: "convert an address of the data device from one unit to another",
        help: "Adds up the parts of an address, and shows it in the last unit. A group that is not named is the one that one is in.\nUnits (with their other names):\n  agblock (agbno), agino (aginode), agnumber (agno)\n  fsblock (fsb, fsbno), ino (inode), inoidx (offset: of an inode in its block)\n  daddr (bb: 512 bytes), byte (fsbyte)\n  bboff (daddroff), blkoff (fsboff, agboff), inooff (inodeoff): bytes within\nExample: convert agno 1 agbno 100 daddr",
        run: convert,
    },
    Command {
        name: "rtconvert",
        alias: None,
        min: 3,
        max: Some(9),
        moves: false,
        usage: "UNIT NUMBER [UNIT NUMBER]... UNIT",
        brief: "convert an address of the realtime section from one unit to another",
        help: "Adds up the parts of an address, and shows it in the last unit.\nUnits (with their other names):\n  rtblock (rtb, rtbno), rtx (rtextent), rgnumber (rgno), rgblock (rgbno)\n  daddr (bb: 512 bytes), byte (fsbyte)\n  bboff (daddroff), blkoff (rtboff, rgboff): bytes within\n  rbmblock (rbmb), rbmword (rbmw): block and word of the bitmap\n  rsumlog (rsml), rsuminfo (rsmi), rsumblock (rsmb): level, word and block of the summary, given in this order\nExample: rtconvert rtx 1000 rbmblock",
        run: rtconvert,
    },
];

fn convert(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    run(session, words, DATA)
}

fn rtconvert(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    run(session, words, REALTIME)
}

fn find<'t>(table: &'t [UnitRow], name: &str) -> Result<&'t UnitRow> {
    let row = table.iter().find(|row| row.names.contains(&name));
    row.ok_or_else(|| Error::Usage(format!("there is no unit {name}")))
}

fn run(session: &Session, words: &[String], table: &[UnitRow]) -> Result<Box<dyn Answer>> {
    let (wanted, pairs) = match words.split_last() {
        Some((wanted, pairs)) if pairs.len() % 2 == 0 => (find(table, wanted)?, pairs),
        _ => {
            return Err(Error::Usage(
                "units and numbers come in pairs, and the wanted unit is the last word".to_owned(),
            ));
        }
    };
    let mut units = Units {
        geometry: session.geometry(),
        bitmap_blocks: session.image.superblock().sb.rbmblocks.get(),
        summary_log: None,
        summary_info: None,
    };
    let mut parts: Vec<(&UnitRow, u64)> = Vec::new();
    let conflicts =
        |parts: &[(&UnitRow, u64)], unit: Unit| parts.iter().any(|(before, _)| !before.beside.contains(&unit));
    for pair in pairs.chunks_exact(2) {
        let row = find(table, &pair[0])?;
        if row.unit == wanted.unit {
            return Err(Error::Usage(format!("{} is what is asked for", pair[0])));
        }
        if conflicts(&parts, row.unit) {
            return Err(Error::Usage(format!("{} does not go with the units before it", pair[0])));
        }
        let value = row.unit.narrow(number::parse(&pair[1], "number")?);
        match row.unit {
            Unit::SummaryLog => units.summary_log = Some(value),
            Unit::SummaryInfo => units.summary_info = Some(value),
            _ => {}
        }
        parts.push((row, value));
    }
    let mut byte = 0_u64;
    for (row, value) in &parts {
        byte = byte.wrapping_add(units.bytes(row.unit, *value)?);
    }
    let named = parts.iter().any(|(row, _)| row.unit == Unit::AgNumber);
    let group = session.agno.filter(|_| !named && !conflicts(&parts, Unit::AgNumber));
    if let (Some(agno), true) = (group, std::ptr::eq(table, DATA)) {
        byte = byte.wrapping_add(units.bytes(Unit::AgNumber, u64::from(agno.0))?);
    }
    let value = units.in_unit(wanted.unit, byte)?;
    Ok(Text::boxed(format!("{value:#x} ({value})\n"), json!({ "unit": wanted.names[0], "value": value })))
}
