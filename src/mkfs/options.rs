//! What the user asked for: suboptions read, checked one by one, and kept; nothing is decided here.
//!
//! Three sources add to it in this order: a file of defaults, the command line, a file of options. What the defaults
//! said may be said again; everything else only once.

use uuid::Uuid;

use super::layout::{Autofsck, quota};
use super::numbers::{self, Units};
use super::suboptions::{Group, Key, Kind, Suboption, TABLE};
use crate::error::{Error, Result};

/// A value as far as it can be read before the block size is known.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Number(i64),
    Text(String),
}

/// Everything that was asked for.
#[derive(Clone, Debug)]
pub struct Options {
    values: Vec<Option<Value>>,
    given: Vec<bool>,
    /// Sector size in bytes, from `-s` or `-d sectsize`.
    pub sector: Option<u32>,
    /// Sector size of the log in bytes, from `-s` or `-l sectsize`.
    pub log_sector: Option<u32>,
    /// The data device.
    pub data_name: Option<String>,
    /// The device of an external log.
    pub log_name: Option<String>,
    /// The realtime device.
    pub realtime_name: Option<String>,
    /// Whether the log lies in the data section.
    pub log_internal: bool,
    /// File types in directory entries.
    pub ftype: bool,
    /// Case is of no account in names.
    pub ascii_ci: bool,
    /// Quota that is switched on, as `sb_qflags` has it.
    pub quota_flags: u16,
    /// What online checking may do; `None` where it was not said.
    pub autofsck: Option<Autofsck>,
    /// The UUID, where one was given.
    pub uuid: Option<Uuid>,
    /// The label (`-L`), filled up with zeroes.
    pub label: [u8; 12],
    /// Sizes below those that mkfs.xfs supports are allowed (`--unsupported`).
    pub unsupported: bool,
    /// A log whose size was not asked for is as small as Linux mounts it (`--minimize`).
    pub smallest_log: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            values: vec![None; TABLE.len()],
            given: vec![false; TABLE.len()],
            sector: None,
            log_sector: None,
            data_name: None,
            log_name: None,
            realtime_name: None,
            log_internal: true,
            ftype: true,
            ascii_ci: false,
            quota_flags: 0,
            autofsck: None,
            uuid: None,
            label: [0; 12],
            unsupported: false,
            smallest_log: false,
        }
    }
}

impl Options {
    /// Reads the argument of one letter: `agcount=4,noalign`.
    ///
    /// # Errors
    /// `Usage`, for an unknown suboption, a value outside its range, a repetition or a conflict.
    pub fn add_list(&mut self, group: Group, list: &str) -> Result<()> {
        let mut rest = list;
        while !rest.is_empty() {
            let (item, tail) = rest.split_once(',').unwrap_or((rest, ""));
            rest = tail;
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (item, None),
            };
            let suboption = group.suboptions().find(|suboption| suboption.name == name);
            if suboption.is_none() && group == Group::Proto {
                // what is no suboption is the path, whatever signs are in it
                self.add(Key::ProtoFile.suboption(), Some(item))?;
                continue;
            }
            self.add(suboption.ok_or_else(|| unknown(group, item))?, value)?;
        }
        Ok(())
    }

    /// Reads one suboption.
    ///
    /// # Errors
    /// As for [`Options::add_list`].
    pub fn add(&mut self, suboption: &Suboption, text: Option<&str>) -> Result<()> {
        let value = match suboption.kind {
            Kind::Uuid => return self.set_uuid(suboption, text),
            Kind::Autofsck
                if text.is_some_and(|text| !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit())) =>
            {
                return self.set_autofsck(suboption, text.unwrap_or_default());
            }
            // asked for in words, it is no number that could be repeated or be in conflict
            Kind::Concurrency if text.is_none() || text == Some("nr_cpus") => {
                self.values[suboption.key as usize] = Some(Value::Number(1));
                return Ok(());
            }
            Kind::Naming if text.is_some_and(|text| text.eq_ignore_ascii_case("ci")) => {
                self.mark_given(suboption)?;
                self.ascii_ci = true;
                return Ok(());
            }
            Kind::Text | Kind::LateSize | Kind::Naming => {
                self.mark_given(suboption)?;
                let text = text.filter(|text| !text.is_empty()).ok_or_else(|| needs_value(suboption))?;
                match suboption.kind {
                    Kind::Naming => Value::Number(number(suboption, text, Units::default())?),
                    _ => Value::Text(text.to_string()),
                }
            }
            _ => {
                self.mark_given(suboption)?;
                Value::Number(number(suboption, text.unwrap_or_default(), Units::default())?)
            }
        };
        self.take_effect(suboption.key, &value);
        self.values[suboption.key as usize] = Some(value);
        Ok(())
    }

    /// Several suboptions bear on one thing, and the last of them counts.
    fn take_effect(&mut self, key: Key, value: &Value) {
        let size = |value: &Value| match value {
            Value::Number(number) => u32::try_from(*number).ok(),
            Value::Text(_) => None,
        };
        let text = |value: &Value| match value {
            Value::Number(_) => None,
            Value::Text(text) => Some(text.clone()),
        };
        let on = *value == Value::Number(1);
        match key {
            Key::SectorSize | Key::SectorSectsize => {
                self.sector = size(value);
                self.log_sector = self.sector;
            }
            Key::DataSectsize => self.sector = size(value),
            Key::LogSectsize => self.log_sector = size(value),
            Key::DataName => self.data_name = text(value),
            Key::LogName | Key::LogLogdev => {
                self.log_name = text(value);
                self.log_internal = false;
            }
            Key::LogInternal => self.log_internal = on,
            Key::RealtimeName | Key::RealtimeRtdev => self.realtime_name = text(value),
            Key::MetadataCrc if on => self.ftype = true,
            Key::NamingFtype => self.ftype = on,
            Key::MetadataAutofsck => self.autofsck = Some(if on { Autofsck::Repair } else { Autofsck::None }),
            _ if on => self.quota_flags |= quota_of(key),
            _ => {}
        }
    }

    fn set_uuid(&mut self, suboption: &Suboption, text: Option<&str>) -> Result<()> {
        let text = text.filter(|text| !text.is_empty()).ok_or_else(|| needs_value(suboption))?;
        // the form that mkfs.xfs reads, of the many that the uuid crate does
        let hyphenated = text.len() == 36;
        let uuid = Uuid::try_parse(text).ok().filter(|_| hyphenated);
        self.uuid = Some(uuid.ok_or_else(|| invalid(suboption, text, "not a UUID"))?);
        Ok(())
    }

    fn set_autofsck(&mut self, suboption: &Suboption, text: &str) -> Result<()> {
        let words = [Autofsck::None, Autofsck::Check, Autofsck::Optimize, Autofsck::Repair];
        let word = words.into_iter().find(|word| word.word() == text);
        self.autofsck = Some(word.ok_or_else(|| invalid(suboption, text, "unknown word"))?);
        Ok(())
    }

    fn mark_given(&mut self, suboption: &Suboption) -> Result<()> {
        if self.given(suboption.key) {
            return Err(Error::Usage(format!("{} is given more than once", suboption.written())));
        }
        self.check_conflicts(suboption)?;
        self.given[suboption.key as usize] = true;
        Ok(())
    }

    fn check_conflicts(&self, suboption: &Suboption) -> Result<()> {
        match suboption.conflicts.iter().find(|conflict| self.given(**conflict)) {
            None => Ok(()),
            Some(conflict) => {
                let other = conflict.suboption().written();
                Err(Error::Usage(format!("{other} and {} cannot be given together", suboption.written())))
            }
        }
    }

    /// Everything that was read so far is a default from now on, which may be said again.
    pub fn become_defaults(&mut self) {
        self.given.fill(false);
    }

    /// Whether the suboption was given, on the command line or in a file of options.
    pub fn given(&self, key: Key) -> bool {
        self.given[key as usize]
    }

    /// The value of a suboption that is a number.
    pub fn number(&self, key: Key) -> Option<i64> {
        match self.values[key as usize] {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// The value of a suboption that is 0 or 1.
    pub fn switch(&self, key: Key) -> Option<bool> {
        self.number(key).map(|number| number != 0)
    }

    /// The text of a suboption.
    pub fn text(&self, key: Key) -> Option<&str> {
        match &self.values[key as usize] {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The value in bytes of a suboption that is a size with a suffix. Conflicts are looked for once more: of two
    /// suboptions, often only one knows about the other, and it may have come first.
    ///
    /// # Errors
    /// `Usage`, when it is not a number or outside its range.
    pub fn size(&self, key: Key, units: Units) -> Result<Option<u64>> {
        let Some(text) = self.text(key) else { return Ok(None) };
        self.check_conflicts(key.suboption())?;
        let value = number(key.suboption(), text, units)?;
        Ok(u64::try_from(value).ok())
    }
}

/// The flags of one quota suboption.
fn quota_of(key: Key) -> u16 {
    match key {
        Key::MetadataUquota => quota::USER_COUNTED | quota::USER_ENFORCED,
        Key::MetadataGquota => quota::GROUP_COUNTED | quota::GROUP_ENFORCED,
        Key::MetadataPquota => quota::PROJECT_COUNTED | quota::PROJECT_ENFORCED,
        Key::MetadataUqnoenforce => quota::USER_COUNTED,
        Key::MetadataGqnoenforce => quota::GROUP_COUNTED,
        Key::MetadataPqnoenforce => quota::PROJECT_COUNTED,
        _ => 0,
    }
}

/// Reads a number and checks it against the table.
fn number(suboption: &Suboption, text: &str, units: Units) -> Result<i64> {
    if text.is_empty() {
        return suboption.if_empty.ok_or_else(|| needs_value(suboption));
    }
    let value = match suboption.kind {
        Kind::Size | Kind::LateSize => numbers::size(text, units)
            .ok_or_else(|| invalid(suboption, text, "not a number with a unit that is known here"))?,
        _ => match numbers::integer(text) {
            Some((value, "")) => value,
            Some(_) => return Err(invalid(suboption, text, "not a plain number")),
            None => return Err(invalid(suboption, text, "not a number")),
        },
    };
    let (min, max) = suboption.range;
    if value < min {
        return Err(invalid(suboption, text, "too small"));
    }
    if value > max {
        return Err(invalid(suboption, text, "too large"));
    }
    if suboption.power_of_two && value & (value - 1) != 0 {
        return Err(invalid(suboption, text, "not a power of two"));
    }
    Ok(value)
}

fn invalid(suboption: &Suboption, text: &str, reason: &str) -> Error {
    Error::Usage(format!("{}={text}: {reason}; allowed: {}", suboption.written(), suboption.allowed()))
}

fn needs_value(suboption: &Suboption) -> Error {
    Error::Usage(format!("{} needs a value; allowed: {}", suboption.written(), suboption.allowed()))
}

fn unknown(group: Group, item: &str) -> Error {
    let known: Vec<_> = group.suboptions().map(|suboption| suboption.name).collect();
    Error::Usage(format!("-{} {item}: no such suboption; known: {}", group.letter(), known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(lists: &[(Group, &str)]) -> Result<Options> {
        let mut options = Options::default();
        for (group, list) in lists {
            options.add_list(*group, list)?;
        }
        Ok(options)
    }

    fn refused(group: Group, list: &str) -> String {
        with(&[(group, list)]).map(|_| ()).expect_err("this list is not allowed").to_string()
    }

    #[test]
    fn values_are_kept_until_their_units_are_known() {
        let options = with(&[(Group::Data, "size=100b,agcount=4"), (Group::Block, "size=1k")]).expect("allowed");
        assert_eq!(options.number(Key::BlockSize), Some(1024));
        assert_eq!(options.number(Key::DataAgcount), Some(4));
        assert!(options.size(Key::DataSize, Units { block: Some(1024), sector: None }).is_err(), "below 16m");
        let units = Units { block: Some(65536 * 4), sector: None };
        assert_eq!(options.size(Key::DataSize, units).expect("allowed"), Some(100 * 65536 * 4));
    }

    #[test]
    fn errors_name_the_option_and_its_range() {
        assert_eq!(refused(Group::Data, "agcount=0"), "-d agcount=0: too small; allowed: 1 to 4294967294");
        assert_eq!(refused(Group::Data, "agcount=4k"), "-d agcount=4k: not a plain number; allowed: 1 to 4294967294");
        assert_eq!(refused(Group::Data, "agcount"), "-d agcount needs a value; allowed: 1 to 4294967294");
        assert_eq!(
            refused(Group::Block, "size=3k"),
            "-b size=3k: not a power of two; allowed: powers of two from 512 to 64k"
        );
        assert_eq!(refused(Group::Data, "agcount=4,agcount=4"), "-d agcount is given more than once");
        assert_eq!(refused(Group::Data, "agcount=4,agsize=1g"), "-d agcount and -d agsize cannot be given together");
        assert_eq!(refused(Group::Sector, "sise=1"), "-s sise=1: no such suboption; known: size, sectsize");
        assert_eq!(refused(Group::Data, ",size=1g").split(';').next(), Some("-d : no such suboption"));
        assert!(refused(Group::Block, "size=1b").contains("unit that is known here"));
        assert!(refused(Group::Metadata, "uuid=1").contains("not a UUID"));
        assert!(refused(Group::Naming, "version=1").contains("2 or ci"));
    }

    #[test]
    fn the_last_word_counts() {
        let options = with(&[(Group::Sector, "size=4k"), (Group::Log, "sectsize=512,logdev=x")]).expect("allowed");
        assert_eq!((options.sector, options.log_sector), (Some(4096), Some(512)));
        assert!(!options.log_internal);
        let options = with(&[(Group::Naming, "ftype=0"), (Group::Metadata, "crc=1")]).expect("allowed");
        assert!(options.ftype);
        let options = with(&[(Group::Metadata, "crc=1"), (Group::Naming, "ftype=0")]).expect("allowed");
        assert!(!options.ftype);
    }

    #[test]
    fn defaults_may_be_said_again() {
        let mut options = with(&[(Group::Metadata, "rmapbt=0,uquota,autofsck=0")]).expect("allowed");
        options.become_defaults();
        options.add_list(Group::Metadata, "rmapbt=1,autofsck=check").expect("a default is no repetition");
        assert_eq!(options.switch(Key::MetadataRmapbt), Some(true));
        assert_eq!(options.autofsck, Some(Autofsck::Check));
        assert_eq!(options.quota_flags, quota::USER_COUNTED | quota::USER_ENFORCED);
    }

    #[test]
    fn words_for_numbers() {
        let options = with(&[(Group::Data, "agcount=4,concurrency"), (Group::Naming, "version=CI")]).expect("allowed");
        assert_eq!(options.number(Key::DataConcurrency), Some(1));
        assert!(!options.given(Key::DataConcurrency));
        assert!(options.ascii_ci);
        let options = with(&[(Group::Metadata, "autofsck,gqnoenforce=0")]).expect("allowed");
        assert_eq!(options.autofsck, Some(Autofsck::Repair));
        assert_eq!(options.quota_flags, 0);
    }
}
