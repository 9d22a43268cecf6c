//! `timelimit`: the first and last times that the filesystem can hold (xfsprogs `db/timelimit.c`).

use serde_json::json;

use crate::db::answer::{Answer, Text};
use crate::db::command::Command;
use crate::db::field::calendar;
use crate::db::session::Session;
use crate::error::{Error, Result};
use crate::ondisk::Be64;
use crate::ondisk::Timestamp;
use crate::ondisk::timestamp::{BIGTIME_MAX, DQ_BIGTIME_EXPIRY_MAX, quota_timer_to_unix};

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "timelimit",
    alias: None,
    min: 0,
    max: None,
    moves: false,
    usage: "[--classic | --bigtime] [--pretty | --compact]",
    brief: "show the first and last times that can be stored",
    help: "Shows the first and last second of inode timestamps and of quota timers, and of grace periods of quota.\n  --classic  those of timestamps of 32 bits\n  --bigtime  those of the bigtime feature\n  --pretty   as dates\n  --compact  on one line",
    run: timelimit,
}];

/// How the limits are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Numbers,
    Dates,
    OneLine,
}

fn timelimit(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let mut bigtime = session.geometry().features.has_bigtime();
    let mut form = Form::Numbers;
    for word in words {
        match word.as_str() {
            "--classic" => bigtime = false,
            "--bigtime" => bigtime = true,
            "--pretty" => form = Form::Dates,
            "--compact" => form = Form::OneLine,
            _ => return Err(Error::Usage(format!("timelimit has no option {word}"))),
        }
    }
    let timer = |raw: u32| i64::try_from(quota_timer_to_unix(raw, bigtime)).unwrap_or(i64::MAX);
    let (first, last) = if bigtime {
        (Timestamp::from_bigtime(Be64::new(0)).seconds, BIGTIME_MAX)
    } else {
        (i64::from(i32::MIN), i64::from(i32::MAX))
    };
    let last_timer = timer(if bigtime { DQ_BIGTIME_EXPIRY_MAX } else { u32::MAX });
    let grace = i64::from(u32::MAX);
    // the last name is that of xfs_db, too
    let limits = [
        ("time.min", first, true),
        ("time.max", last, true),
        ("dqtimer.min", timer(1), true),
        ("dqtimer.max", last_timer, true),
        ("dqgrace.min", 0, false),
        ("dqgrace.min", grace, false),
    ];
    let mut text = String::new();
    for (name, limit, is_time) in limits {
        text += &match form {
            Form::OneLine => format!("{limit} "),
            Form::Dates if is_time => format!("{name} = {}\n", calendar::local(limit)),
            Form::Dates | Form::Numbers => format!("{name} = {limit}\n"),
        };
    }
    if form == Form::OneLine {
        text.push('\n');
    }
    let value = json!({
        "bigtime": bigtime,
        "time": { "min": first, "max": last },
        "dqtimer": { "min": timer(1), "max": last_timer },
        "dqgrace": { "min": 0, "max": grace },
    });
    Ok(Text::boxed(text, value))
}
