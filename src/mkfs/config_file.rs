//! Configuration files: suboptions in sections, in the form that libinih reads.
//!
//! ```text
//! # a comment
//! [metadata]
//! crc=1        ; another
//! rmapbt: 0
//! ```

use super::layout::{Autofsck, Layout, quota};
use super::options::Options;
use super::suboptions::{Group, Suboption};
use crate::error::{Error, Result};
use crate::geometry::{MkfsConfig, QuotaWish};

/// The longest line that libinih takes, in bytes, with its end.
const LONGEST_LINE: usize = 199;

/// Adds what the file `name` with contents `text` says to `options`.
///
/// # Errors
/// `Usage`, for a line that is none of the form, an unknown section or suboption, and whatever the suboption itself
/// refuses; the error names file and line.
pub fn read(name: &str, text: &str, options: &mut Options) -> Result<()> {
    let mut section: Option<String> = None;
    let mut last: Option<String> = None;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, whole) in text.split('\n').enumerate() {
        let place = format!("{name}, line {}", index + 1);
        if whole.len() > LONGEST_LINE {
            return Err(Error::Usage(format!("{place}: longer than {LONGEST_LINE} bytes")));
        }
        let line = whole.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        let continued = last.clone().filter(|_| whole.starts_with(char::is_whitespace));
        if let Some(option) = continued {
            add(&place, section.as_deref(), &option, line, options)?;
        } else if let Some(rest) = line.strip_prefix('[') {
            let (title, _) = without_comment(rest)
                .split_once(']')
                .ok_or_else(|| Error::Usage(format!("{place}: the section is not closed by ]")))?;
            section = Some(title.to_string());
            last = None;
        } else {
            let (option, value) = line
                .split_once(['=', ':'])
                .ok_or_else(|| Error::Usage(format!("{place}: neither a section nor name=value")))?;
            let option = option.trim_end();
            add(&place, section.as_deref(), option, without_comment(value).trim(), options)?;
            last = Some(option.to_string());
        }
    }
    Ok(())
}

/// A comment inside a line begins with a semicolon behind white space.
fn without_comment(text: &str) -> &str {
    let bytes = text.as_bytes();
    let start = (1..bytes.len()).find(|&at| bytes[at] == b';' && bytes[at - 1].is_ascii_whitespace());
    &text[..start.unwrap_or(text.len())]
}

fn add(place: &str, section: Option<&str>, option: &str, value: &str, options: &mut Options) -> Result<()> {
    let section = section.unwrap_or_default();
    let group = Group::ALL
        .into_iter()
        .find(|group| group.section().is_some_and(|known| known.eq_ignore_ascii_case(section)))
        .ok_or_else(|| Error::Usage(format!("{place}: [{section}] is no section of a configuration file")))?;
    let suboption: &Suboption = group
        .suboptions()
        .find(|suboption| suboption.name.eq_ignore_ascii_case(option))
        .ok_or_else(|| Error::Usage(format!("{place}: [{section}] has no option {option}")))?;
    options.add(suboption, Some(value)).map_err(|error| Error::Usage(format!("{place}: {error}")))
}

/// The file that asks for the features of `layout`; sizes and places are left out, unless they are unusual.
pub fn text(layout: &Layout) -> String {
    let (on, root) = (layout.features, layout.root);
    let config = MkfsConfig {
        block_bytes: layout.block.bytes(),
        blocks: layout.data.blocks,
        crc: on.crc,
        finobt: on.finobt,
        rmapbt: on.rmapbt,
        reflink: on.reflink,
        inobtcount: on.inobtcount,
        bigtime: on.bigtime,
        metadir: on.metadir,
        autofsck: layout.autofsck.map(Autofsck::word),
        quotas: quotas(layout.quota_flags),
        rt_inherit: root.rt_inherit,
        project: root.project,
        extent_size: Some(root.extent_size).filter(|&blocks| blocks != 0),
        cow_extent_size: Some(root.cow_extent_size).filter(|&blocks| blocks != 0),
        dax: root.dax,
        sparse: on.sparse_inodes,
        nrext64: on.nrext64,
        exchange: on.exchange,
        projid32: on.projid32,
        imax_pct: layout.data.imax_pct,
        inode_bytes: layout.inode.bytes(),
        lazy_count: on.lazy_counters,
        parent: on.parent,
        ftype: on.ftype,
        ascii_ci: on.ascii_ci,
        directory_block_bytes: layout.directory_block.bytes(),
        realtime_extent_bytes: u64::from(layout.realtime.extent_blocks) << layout.block.log(),
    };
    config.to_string()
}

fn quotas(flags: u16) -> [QuotaWish; 3] {
    let kinds = [
        (quota::USER_COUNTED, quota::USER_ENFORCED),
        (quota::GROUP_COUNTED, quota::GROUP_ENFORCED),
        (quota::PROJECT_COUNTED, quota::PROJECT_ENFORCED),
    ];
    kinds.map(|(counted, enforced)| QuotaWish { counted: flags & counted != 0, enforced: flags & enforced != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mkfs::suboptions::Key;

    fn options_of(text: &str) -> Result<Options> {
        let mut options = Options::default();
        read("x.conf", text, &mut options)?;
        Ok(options)
    }

    fn refused(text: &str) -> String {
        options_of(text).map(|_| ()).expect_err("this file is not allowed").to_string()
    }

    #[test]
    fn sections_names_and_comments() {
        let text = "; first\n# second\n\n[Metadata]\n CRC = 1 ; third\nrmapbt: 0\r\n[data]\nsize=4g\n";
        let options = options_of(text).expect("a sound file");
        assert_eq!(options.switch(Key::MetadataCrc), Some(true));
        assert_eq!(options.switch(Key::MetadataRmapbt), Some(false));
        assert_eq!(options.text(Key::DataSize), Some("4g"));
    }

    #[test]
    fn errors_name_file_and_line() {
        assert_eq!(refused("[metadata]\nnonsense\n"), "x.conf, line 2: neither a section nor name=value");
        assert_eq!(refused("[metadata\n"), "x.conf, line 1: the section is not closed by ]");
        assert_eq!(refused("[meta]\ncrc=1\n"), "x.conf, line 2: [meta] is no section of a configuration file");
        assert_eq!(refused("crc=1\n"), "x.conf, line 1: [] is no section of a configuration file");
        assert_eq!(refused("[metadata]\nsize=1\n"), "x.conf, line 2: [metadata] has no option size");
        assert_eq!(refused("[metadata]\ncrc=2\n"), "x.conf, line 2: -m crc=2: too large; allowed: 0 or 1");
        assert_eq!(refused("[metadata]\ncrc=1\ncrc=1\n"), "x.conf, line 3: -m crc is given more than once");
        assert_eq!(refused("[metadata]\ncrc=1\n rmapbt=1\n").split(':').next(), Some("x.conf, line 3"));
    }

    #[test]
    fn an_option_may_have_no_value_if_it_stands_for_one() {
        assert_eq!(options_of("[data]\nnoalign=\n").expect("a sound file").switch(Key::DataNoalign), Some(true));
        assert!(refused("[data]\nsize=\n").contains("needs a value"));
    }
}
