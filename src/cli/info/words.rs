//! A report in words, beyond what xfs_info prints.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};

use crate::info::{LogShape, LogStateName, Quota, Readers, Report, Secondaries};

/// The lines of `--verbose`.
pub(super) fn details(report: &Report) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        writeln!(text, "{name:<22} {value}").expect("invariant: a String takes all that is written");
    };
    if let Some(point) = &report.mounted_on {
        line("mounted on", point);
    }
    line("label", if report.label.is_empty() { "(none)" } else { &report.label });
    line("UUID", &report.uuid);
    if report.meta_uuid != report.uuid {
        line("UUID of the metadata", &report.meta_uuid);
    }
    line("features", &format!("v{}, {}", report.version, report.features.join(", ")));
    for (word, bits) in unknown(report) {
        line("unknown features", &format!("{word} {bits:#x}"));
    }
    line("log", &log_words(&report.log));
    line("other superblocks", &copies_words(&report.secondary_superblocks));
    for copy in &report.secondary_superblocks.disagreeing {
        let what: Vec<&str> = copy.fields.iter().copied().chain(copy.damage.iter().map(String::as_str)).collect();
        line("", &format!("group {}: {}", copy.group, what.join(", ")));
    }
    for (name, quota) in [("user", report.quota.user), ("group", report.quota.group), ("project", report.quota.project)]
    {
        line(&format!("{name} quota"), &quota_words(quota));
    }
    let counters = &report.counters;
    line("free blocks", &format!("{} of {}", counters.free_blocks, report.data.blocks));
    line("inodes", &format!("{}, of which {} are free", counters.inodes, counters.free_inodes));
    if report.realtime.blocks > 0 {
        line("free realtime extents", &format!("{} of {}", counters.free_realtime_extents, report.realtime.extents));
    }
    text + "\n" + &readers_words(report)
}

/// The table of `--readable-by`.
pub(super) fn readers_words(report: &Report) -> String {
    let who = &report.readable_by;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["readable by", "versions", "decided by", "on condition"]);
    for (name, readers) in
        [("Linux, read-write", &who.linux_read_write), ("Linux, read-only", &who.linux_read_only), ("GRUB", &who.grub)]
    {
        table.add_row([name.to_owned(), versions(readers), decided(readers), readers.conditions.join("; ")]);
    }
    let mut text = table.trim_fmt() + "\n";
    for warned in &who.experimental {
        let until = warned.until.as_ref().map_or(" on".to_owned(), |until| format!(" until {until}"));
        writeln!(text, "Linux warns that {} is experimental, from {}{until}", warned.feature, warned.from)
            .expect("invariant: a String takes all that is written");
    }
    text
}

fn versions(readers: &Readers) -> String {
    match (&readers.oldest, &readers.newest) {
        (None, _) => "none".to_owned(),
        (Some(oldest), None) => format!("{oldest} and later"),
        (Some(oldest), Some(newest)) => format!("{oldest} to {newest}"),
    }
}

fn decided(readers: &Readers) -> String {
    let ended = readers.ended_by.iter().map(|feature| format!("{feature} (the end)"));
    readers.decided_by.iter().map(ToString::to_string).chain(ended).collect::<Vec<_>>().join(", ")
}

fn unknown(report: &Report) -> Vec<(&'static str, u32)> {
    let unknown = &report.unknown_features;
    let words = [
        ("versionnum", u32::from(unknown.versionnum)),
        ("features2", unknown.features2),
        ("compat", unknown.compat),
        ("ro_compat", unknown.ro_compat),
        ("incompat", unknown.incompat),
        ("log_incompat", unknown.log_incompat),
    ];
    words.into_iter().filter(|(_, bits)| *bits != 0).collect()
}

fn log_words(log: &LogShape) -> String {
    let place = if log.internal { "internal" } else { "external" };
    let state = match log.state {
        LogStateName::Clean => "clean",
        LogStateName::Dirty => "dirty: it must be replayed",
        LogStateName::Zeroed => "never written to",
        LogStateName::External => "on a device that was not given (--log-device)",
        LogStateName::InUse => "in use, the filesystem is mounted",
        LogStateName::Damaged => "damaged",
    };
    let mut text = format!("{place}, {state}");
    if let Some(problem) = &log.problem {
        let _ = write!(text, ": {problem}");
    }
    if let (Some(head), Some(tail), Some(cycle)) = (log.head, log.tail, log.cycle) {
        let _ = write!(text, "; head {head}, tail {tail}, cycle {cycle}");
    }
    if let Some(block) = log.torn_at {
        let _ = write!(text, "; the record at {block} is torn");
    }
    text
}

fn copies_words(copies: &Secondaries) -> String {
    let compared = if copies.compared == copies.count {
        format!("{}", copies.count)
    } else {
        format!("{} of {} compared", copies.compared, copies.count)
    };
    match (copies.count, copies.agree) {
        (0, _) => "none".to_owned(),
        (_, true) => format!("{compared}, all agree"),
        (_, false) => format!("{compared}, not all agree"),
    }
}

fn quota_words(quota: Quota) -> String {
    let words = [(quota.accounting, "accounted"), (quota.enforced, "enforced"), (quota.checked, "checked")];
    let words: Vec<&str> = words.into_iter().filter(|(on, _)| *on).map(|(_, word)| word).collect();
    if words.is_empty() { "off".to_owned() } else { words.join(", ") }
}
