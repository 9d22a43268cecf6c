//! The suboptions of mkfs as data: one table from which the parser, the help and the error messages are made.
//!
//! Ranges, conflicts and the values of a suboption without one are those of mkfs.xfs 7.2.

use super::numbers;

/// A letter of the command line that takes suboptions, and the section of a configuration file that stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// `-b`
    Block,
    /// `-c`
    Config,
    /// `-d`
    Data,
    /// `-i`
    Inode,
    /// `-l`
    Log,
    /// `-m`
    Metadata,
    /// `-n`
    Naming,
    /// `-p`
    Proto,
    /// `-r`
    Realtime,
    /// `-s`
    Sector,
}

impl Group {
    /// All groups, in the order of the help.
    pub const ALL: [Group; 10] = [
        Group::Block,
        Group::Config,
        Group::Data,
        Group::Inode,
        Group::Log,
        Group::Metadata,
        Group::Naming,
        Group::Proto,
        Group::Realtime,
        Group::Sector,
    ];

    /// The option's letter.
    pub fn letter(self) -> char {
        match self {
            Group::Block => 'b',
            Group::Config => 'c',
            Group::Data => 'd',
            Group::Inode => 'i',
            Group::Log => 'l',
            Group::Metadata => 'm',
            Group::Naming => 'n',
            Group::Proto => 'p',
            Group::Realtime => 'r',
            Group::Sector => 's',
        }
    }

    /// The section of a configuration file; `-c` has none.
    pub fn section(self) -> Option<&'static str> {
        match self {
            Group::Block => Some("block"),
            Group::Config => None,
            Group::Data => Some("data"),
            Group::Inode => Some("inode"),
            Group::Log => Some("log"),
            Group::Metadata => Some("metadata"),
            Group::Naming => Some("naming"),
            Group::Proto => Some("proto"),
            Group::Realtime => Some("realtime"),
            Group::Sector => Some("sector"),
        }
    }

    /// The suboptions of this letter, in the order of the table.
    pub fn suboptions(self) -> impl Iterator<Item = &'static Suboption> {
        TABLE.iter().filter(move |suboption| suboption.group == self)
    }
}

/// How the value of a suboption is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 0 or 1.
    Switch,
    /// A plain number, without suffix.
    Number,
    /// A number with a suffix; `b` and `s` have no meaning yet.
    Size,
    /// A number with a suffix, read when the block and sector sizes are known.
    LateSize,
    /// Any text.
    Text,
    /// A UUID.
    Uuid,
    /// A word, or 0 or 1.
    Autofsck,
    /// `ci`, or the number of a version.
    Naming,
    /// A number, `nr_cpus`, or nothing.
    Concurrency,
}

/// One suboption.
#[derive(Debug)]
pub struct Suboption {
    /// Which one.
    pub key: Key,
    /// Its letter.
    pub group: Group,
    /// Its name behind the letter.
    pub name: &'static str,
    /// How its value is read.
    pub kind: Kind,
    /// Smallest and largest value, of kinds that are numbers.
    pub range: (i64, i64),
    /// The value that stands for none; without it, a value is required.
    pub if_empty: Option<i64>,
    /// Only powers of two are allowed.
    pub power_of_two: bool,
    /// What may not have been given before it.
    pub conflicts: &'static [Key],
    /// What it means, in a line.
    pub help: &'static str,
}

impl Suboption {
    /// The values that are allowed, for help and errors.
    pub fn allowed(&self) -> String {
        let (min, max) = self.range;
        let number = |value| {
            if matches!(self.kind, Kind::Size | Kind::LateSize) { numbers::written(value) } else { format!("{value}") }
        };
        let range = match self.kind {
            Kind::Switch => "0 or 1".to_string(),
            Kind::Text => "any text".to_string(),
            Kind::Uuid => "a UUID".to_string(),
            Kind::Autofsck => "none, check, optimize, repair, 0 or 1".to_string(),
            Kind::Naming => "2 or ci".to_string(),
            Kind::Concurrency => format!("0 to {max}, or nr_cpus"),
            _ if min == max => number(min),
            _ if max == i64::MAX => format!("{} or more", number(min)),
            _ => format!("{} to {}", number(min), number(max)),
        };
        if self.power_of_two { format!("powers of two from {range}") } else { range }
    }

    /// The suboption as it is written: `-d size`.
    pub fn written(&self) -> String {
        format!("-{} {}", self.group.letter(), self.name)
    }
}

/// Identity of a suboption; the table has them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `-b size`.
    BlockSize,
    /// `-c options`.
    ConfigOptions,
    /// `-c makecfg`.
    ConfigMakecfg,
    /// `-c defaults`.
    ConfigDefaults,
    /// `-d agcount`.
    DataAgcount,
    /// `-d file`.
    DataFile,
    /// `-d name`.
    DataName,
    /// `-d size`.
    DataSize,
    /// `-d sunit`.
    DataSunit,
    /// `-d swidth`.
    DataSwidth,
    /// `-d agsize`.
    DataAgsize,
    /// `-d su`.
    DataSu,
    /// `-d sw`.
    DataSw,
    /// `-d sectsize`.
    DataSectsize,
    /// `-d noalign`.
    DataNoalign,
    /// `-d rtinherit`.
    DataRtinherit,
    /// `-d projinherit`.
    DataProjinherit,
    /// `-d extszinherit`.
    DataExtszinherit,
    /// `-d cowextsize`.
    DataCowextsize,
    /// `-d daxinherit`.
    DataDaxinherit,
    /// `-d concurrency`.
    DataConcurrency,
    /// `-i align`.
    InodeAlign,
    /// `-i maxpct`.
    InodeMaxpct,
    /// `-i perblock`.
    InodePerblock,
    /// `-i size`.
    InodeSize,
    /// `-i attr`.
    InodeAttr,
    /// `-i projid32bit`.
    InodeProjid32bit,
    /// `-i sparse`.
    InodeSparse,
    /// `-i nrext64`.
    InodeNrext64,
    /// `-i exchange`.
    InodeExchange,
    /// `-i max_atomic_write`.
    InodeMaxAtomicWrite,
    /// `-l agnum`.
    LogAgnum,
    /// `-l internal`.
    LogInternal,
    /// `-l size`.
    LogSize,
    /// `-l version`.
    LogVersion,
    /// `-l sunit`.
    LogSunit,
    /// `-l su`.
    LogSu,
    /// `-l logdev`.
    LogLogdev,
    /// `-l sectsize`.
    LogSectsize,
    /// `-l file`.
    LogFile,
    /// `-l name`.
    LogName,
    /// `-l lazy-count`.
    LogLazyCount,
    /// `-l concurrency`.
    LogConcurrency,
    /// `-m crc`.
    MetadataCrc,
    /// `-m finobt`.
    MetadataFinobt,
    /// `-m uuid`.
    MetadataUuid,
    /// `-m rmapbt`.
    MetadataRmapbt,
    /// `-m reflink`.
    MetadataReflink,
    /// `-m inobtcount`.
    MetadataInobtcount,
    /// `-m bigtime`.
    MetadataBigtime,
    /// `-m autofsck`.
    MetadataAutofsck,
    /// `-m metadir`.
    MetadataMetadir,
    /// `-m uquota`.
    MetadataUquota,
    /// `-m gquota`.
    MetadataGquota,
    /// `-m pquota`.
    MetadataPquota,
    /// `-m uqnoenforce`.
    MetadataUqnoenforce,
    /// `-m gqnoenforce`.
    MetadataGqnoenforce,
    /// `-m pqnoenforce`.
    MetadataPqnoenforce,
    /// `-n size`.
    NamingSize,
    /// `-n version`.
    NamingVersion,
    /// `-n ftype`.
    NamingFtype,
    /// `-n parent`.
    NamingParent,
    /// `-p file`.
    ProtoFile,
    /// `-p atime`.
    ProtoAtime,
    /// `-p slashes_are_spaces`.
    ProtoSlashesAreSpaces,
    /// `-r extsize`.
    RealtimeExtsize,
    /// `-r size`.
    RealtimeSize,
    /// `-r rtdev`.
    RealtimeRtdev,
    /// `-r file`.
    RealtimeFile,
    /// `-r name`.
    RealtimeName,
    /// `-r noalign`.
    RealtimeNoalign,
    /// `-r rgcount`.
    RealtimeRgcount,
    /// `-r rgsize`.
    RealtimeRgsize,
    /// `-r concurrency`.
    RealtimeConcurrency,
    /// `-r zoned`.
    RealtimeZoned,
    /// `-r start`.
    RealtimeStart,
    /// `-r reserved`.
    RealtimeReserved,
    /// `-s size`.
    SectorSize,
    /// `-s sectsize`.
    SectorSectsize,
}

impl Key {
    /// The table's entry.
    pub fn suboption(self) -> &'static Suboption {
        &TABLE[self as usize]
    }
}

/// Every suboption.
#[rustfmt::skip]
pub const TABLE: &[Suboption] = &[
    Suboption { key: Key::BlockSize, group: Group::Block, name: "size", kind: Kind::Size, range: (512, 64 << 10), if_empty: None, power_of_two: true, conflicts: &[], help: "size of a filesystem block, in bytes" },
    Suboption { key: Key::ConfigOptions, group: Group::Config, name: "options", kind: Kind::Text, range: (0, 0), if_empty: None, power_of_two: false, conflicts: &[], help: "read options from this file; they may not repeat those of the command line" },
    Suboption { key: Key::ConfigMakecfg, group: Group::Config, name: "makecfg", kind: Kind::Text, range: (0, 0), if_empty: None, power_of_two: false, conflicts: &[], help: "write a configuration file that asks for the same features, and make no filesystem" },
    Suboption { key: Key::ConfigDefaults, group: Group::Config, name: "defaults", kind: Kind::Text, range: (0, 0), if_empty: None, power_of_two: false, conflicts: &[], help: "read defaults from this file; -c options and the command line override them" },
    Suboption { key: Key::DataAgcount, group: Group::Data, name: "agcount", kind: Kind::Number, range: (1, 4_294_967_294), if_empty: None, power_of_two: false, conflicts: &[Key::DataAgsize, Key::DataConcurrency], help: "number of allocation groups" },
    Suboption { key: Key::DataFile, group: Group::Data, name: "file", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "the device is a regular file; it is made, or emptied first" },
    Suboption { key: Key::DataName, group: Group::Data, name: "name", kind: Kind::Text, range: (0, 0), if_empty: None, power_of_two: false, conflicts: &[], help: "device or file to format, as the positional argument" },
    Suboption { key: Key::DataSize, group: Group::Data, name: "size", kind: Kind::LateSize, range: (16 << 20, i64::MAX), if_empty: None, power_of_two: false, conflicts: &[], help: "size of the data section" },
    Suboption { key: Key::DataSunit, group: Group::Data, name: "sunit", kind: Kind::Number, range: (0, 4_294_967_295), if_empty: None, power_of_two: false, conflicts: &[Key::DataNoalign, Key::DataSu, Key::DataSw], help: "stripe unit, in 512-byte units; needs swidth" },
    Suboption { key: Key::DataSwidth, group: Group::Data, name: "swidth", kind: Kind::Number, range: (0, 4_294_967_295), if_empty: None, power_of_two: false, conflicts: &[Key::DataNoalign, Key::DataSu, Key::DataSw], help: "stripe width, in 512-byte units; needs sunit" },
    Suboption { key: Key::DataAgsize, group: Group::Data, name: "agsize", kind: Kind::LateSize, range: (16 << 20, 1 << 40), if_empty: None, power_of_two: false, conflicts: &[Key::DataAgcount, Key::DataConcurrency], help: "size of an allocation group" },
    Suboption { key: Key::DataSu, group: Group::Data, name: "su", kind: Kind::LateSize, range: (0, 4_294_967_295), if_empty: None, power_of_two: false, conflicts: &[Key::DataNoalign, Key::DataSunit, Key::DataSwidth], help: "stripe unit; needs sw" },
    Suboption { key: Key::DataSw, group: Group::Data, name: "sw", kind: Kind::Number, range: (0, 4_294_967_295), if_empty: None, power_of_two: false, conflicts: &[Key::DataNoalign, Key::DataSunit, Key::DataSwidth], help: "stripe width, as a multiple of su" },
    Suboption { key: Key::DataSectsize, group: Group::Data, name: "sectsize", kind: Kind::Size, range: (512, 32 << 10), if_empty: None, power_of_two: true, conflicts: &[Key::SectorSize, Key::SectorSectsize], help: "sector size of the data section" },
    Suboption { key: Key::DataNoalign, group: Group::Data, name: "noalign", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[Key::DataSu, Key::DataSw, Key::DataSunit, Key::DataSwidth], help: "take no stripe geometry from the device" },
    Suboption { key: Key::DataRtinherit, group: Group::Data, name: "rtinherit", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "files are made on the realtime section unless they say otherwise" },
    Suboption { key: Key::DataProjinherit, group: Group::Data, name: "projinherit", kind: Kind::Number, range: (0, 4_294_967_295), if_empty: None, power_of_two: false, conflicts: &[], help: "project identifier that new files inherit" },
    Suboption { key: Key::DataExtszinherit, group: Group::Data, name: "extszinherit", kind: Kind::Number, range: (0, 4_294_967_295), if_empty: None, power_of_two: false, conflicts: &[], help: "extent size hint that new files inherit, in blocks" },
    Suboption { key: Key::DataCowextsize, group: Group::Data, name: "cowextsize", kind: Kind::Number, range: (0, 4_294_967_295), if_empty: None, power_of_two: false, conflicts: &[], help: "extent size hint for copies on write that new files inherit, in blocks" },
    Suboption { key: Key::DataDaxinherit, group: Group::Data, name: "daxinherit", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "new files use direct access to persistent memory" },
    Suboption { key: Key::DataConcurrency, group: Group::Data, name: "concurrency", kind: Kind::Concurrency, range: (0, 2_147_483_647), if_empty: Some(1), power_of_two: false, conflicts: &[Key::DataAgcount, Key::DataAgsize], help: "choose allocation groups for this many writers; 1 or nr_cpus: as many as there are CPUs; 0: do not" },
    Suboption { key: Key::InodeAlign, group: Group::Inode, name: "align", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "align inode chunks" },
    Suboption { key: Key::InodeMaxpct, group: Group::Inode, name: "maxpct", kind: Kind::Number, range: (0, 100), if_empty: None, power_of_two: false, conflicts: &[], help: "most of the space that inodes may take, in percent; 0: no limit" },
    Suboption { key: Key::InodePerblock, group: Group::Inode, name: "perblock", kind: Kind::Number, range: (2, 256), if_empty: None, power_of_two: true, conflicts: &[Key::InodeSize], help: "inodes in a block" },
    Suboption { key: Key::InodeSize, group: Group::Inode, name: "size", kind: Kind::Number, range: (256, 2_048), if_empty: None, power_of_two: true, conflicts: &[Key::InodePerblock], help: "size of an inode, in bytes" },
    Suboption { key: Key::InodeAttr, group: Group::Inode, name: "attr", kind: Kind::Number, range: (0, 2), if_empty: None, power_of_two: false, conflicts: &[], help: "version of the attribute fork placement" },
    Suboption { key: Key::InodeProjid32bit, group: Group::Inode, name: "projid32bit", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "32-bit project identifiers" },
    Suboption { key: Key::InodeSparse, group: Group::Inode, name: "sparse", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "sparse inode chunks" },
    Suboption { key: Key::InodeNrext64, group: Group::Inode, name: "nrext64", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "64-bit extent counts" },
    Suboption { key: Key::InodeExchange, group: Group::Inode, name: "exchange", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "exchange of file ranges" },
    Suboption { key: Key::InodeMaxAtomicWrite, group: Group::Inode, name: "max_atomic_write", kind: Kind::LateSize, range: (1, 1 << 30), if_empty: None, power_of_two: false, conflicts: &[], help: "largest untorn write that the log must allow" },
    Suboption { key: Key::LogAgnum, group: Group::Log, name: "agnum", kind: Kind::Number, range: (0, 4_294_967_295), if_empty: None, power_of_two: false, conflicts: &[Key::LogLogdev], help: "allocation group that holds the internal log" },
    Suboption { key: Key::LogInternal, group: Group::Log, name: "internal", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[Key::LogFile, Key::LogLogdev, Key::LogSectsize], help: "the log lies in the data section" },
    Suboption { key: Key::LogSize, group: Group::Log, name: "size", kind: Kind::LateSize, range: (2 << 20, 2038 << 20), if_empty: None, power_of_two: false, conflicts: &[Key::LogConcurrency], help: "size of the log" },
    Suboption { key: Key::LogVersion, group: Group::Log, name: "version", kind: Kind::Number, range: (1, 2), if_empty: None, power_of_two: false, conflicts: &[], help: "version of the log" },
    Suboption { key: Key::LogSunit, group: Group::Log, name: "sunit", kind: Kind::Number, range: (1, 512), if_empty: None, power_of_two: false, conflicts: &[Key::LogSu], help: "stripe unit of the log, in 512-byte units" },
    Suboption { key: Key::LogSu, group: Group::Log, name: "su", kind: Kind::LateSize, range: (512, 256 << 10), if_empty: None, power_of_two: false, conflicts: &[Key::LogSunit], help: "stripe unit of the log" },
    Suboption { key: Key::LogLogdev, group: Group::Log, name: "logdev", kind: Kind::Text, range: (0, 0), if_empty: None, power_of_two: false, conflicts: &[Key::LogAgnum, Key::LogName, Key::LogInternal, Key::LogConcurrency], help: "device of an external log" },
    Suboption { key: Key::LogSectsize, group: Group::Log, name: "sectsize", kind: Kind::Size, range: (512, 32 << 10), if_empty: None, power_of_two: true, conflicts: &[Key::LogInternal], help: "sector size of an external log" },
    Suboption { key: Key::LogFile, group: Group::Log, name: "file", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[Key::LogInternal, Key::LogConcurrency], help: "the external log is a regular file" },
    Suboption { key: Key::LogName, group: Group::Log, name: "name", kind: Kind::Text, range: (0, 0), if_empty: None, power_of_two: false, conflicts: &[Key::LogAgnum, Key::LogLogdev, Key::LogInternal], help: "device of an external log, as logdev" },
    Suboption { key: Key::LogLazyCount, group: Group::Log, name: "lazy-count", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "lazy superblock counters" },
    Suboption { key: Key::LogConcurrency, group: Group::Log, name: "concurrency", kind: Kind::Concurrency, range: (0, 2_147_483_647), if_empty: Some(1), power_of_two: false, conflicts: &[Key::LogSize, Key::LogFile, Key::LogLogdev], help: "size the log for this many writers; 1 or nr_cpus: as many as there are CPUs; 0: do not" },
    Suboption { key: Key::MetadataCrc, group: Group::Metadata, name: "crc", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "format version 5, with checksums; 0 makes the deprecated version 4" },
    Suboption { key: Key::MetadataFinobt, group: Group::Metadata, name: "finobt", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "btree of free inodes" },
    Suboption { key: Key::MetadataUuid, group: Group::Metadata, name: "uuid", kind: Kind::Uuid, range: (0, 0), if_empty: None, power_of_two: false, conflicts: &[], help: "UUID of the filesystem" },
    Suboption { key: Key::MetadataRmapbt, group: Group::Metadata, name: "rmapbt", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "reverse mapping btree" },
    Suboption { key: Key::MetadataReflink, group: Group::Metadata, name: "reflink", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "shared blocks" },
    Suboption { key: Key::MetadataInobtcount, group: Group::Metadata, name: "inobtcount", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "block counts of the inode btrees" },
    Suboption { key: Key::MetadataBigtime, group: Group::Metadata, name: "bigtime", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "timestamps to the year 2486" },
    Suboption { key: Key::MetadataAutofsck, group: Group::Metadata, name: "autofsck", kind: Kind::Autofsck, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "what online checking may do: none, check, optimize, repair; 0 is none, 1 is repair" },
    Suboption { key: Key::MetadataMetadir, group: Group::Metadata, name: "metadir", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "metadata directory and realtime groups" },
    Suboption { key: Key::MetadataUquota, group: Group::Metadata, name: "uquota", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[Key::MetadataUqnoenforce], help: "count and enforce user quota from the first mount on" },
    Suboption { key: Key::MetadataGquota, group: Group::Metadata, name: "gquota", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[Key::MetadataGqnoenforce], help: "count and enforce group quota from the first mount on" },
    Suboption { key: Key::MetadataPquota, group: Group::Metadata, name: "pquota", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[Key::MetadataPqnoenforce], help: "count and enforce project quota from the first mount on" },
    Suboption { key: Key::MetadataUqnoenforce, group: Group::Metadata, name: "uqnoenforce", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[Key::MetadataUquota], help: "count user quota from the first mount on" },
    Suboption { key: Key::MetadataGqnoenforce, group: Group::Metadata, name: "gqnoenforce", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[Key::MetadataGquota], help: "count group quota from the first mount on" },
    Suboption { key: Key::MetadataPqnoenforce, group: Group::Metadata, name: "pqnoenforce", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[Key::MetadataPquota], help: "count project quota from the first mount on" },
    Suboption { key: Key::NamingSize, group: Group::Naming, name: "size", kind: Kind::LateSize, range: (4 << 10, 64 << 10), if_empty: None, power_of_two: true, conflicts: &[], help: "size of a directory block" },
    Suboption { key: Key::NamingVersion, group: Group::Naming, name: "version", kind: Kind::Naming, range: (2, 2), if_empty: None, power_of_two: false, conflicts: &[], help: "directory version; ci compares names without regard to case (deprecated)" },
    Suboption { key: Key::NamingFtype, group: Group::Naming, name: "ftype", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "file types in directory entries" },
    Suboption { key: Key::NamingParent, group: Group::Naming, name: "parent", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "parent pointers" },
    Suboption { key: Key::ProtoFile, group: Group::Proto, name: "file", kind: Kind::Text, range: (0, 0), if_empty: None, power_of_two: false, conflicts: &[], help: "folder or prototype file to fill the filesystem from; file= may be left out" },
    Suboption { key: Key::ProtoAtime, group: Group::Proto, name: "atime", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "keep the access times of the files that are copied" },
    Suboption { key: Key::ProtoSlashesAreSpaces, group: Group::Proto, name: "slashes_are_spaces", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "slashes in the names of a prototype file stand for spaces" },
    Suboption { key: Key::RealtimeExtsize, group: Group::Realtime, name: "extsize", kind: Kind::LateSize, range: (4 << 10, 1 << 30), if_empty: None, power_of_two: false, conflicts: &[], help: "size of a realtime extent" },
    Suboption { key: Key::RealtimeSize, group: Group::Realtime, name: "size", kind: Kind::LateSize, range: (0, i64::MAX), if_empty: None, power_of_two: false, conflicts: &[], help: "size of the realtime section" },
    Suboption { key: Key::RealtimeRtdev, group: Group::Realtime, name: "rtdev", kind: Kind::Text, range: (0, 0), if_empty: None, power_of_two: false, conflicts: &[Key::RealtimeName], help: "device of the realtime section" },
    Suboption { key: Key::RealtimeFile, group: Group::Realtime, name: "file", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "the realtime device is a regular file" },
    Suboption { key: Key::RealtimeName, group: Group::Realtime, name: "name", kind: Kind::Text, range: (0, 0), if_empty: None, power_of_two: false, conflicts: &[Key::RealtimeRtdev], help: "device of the realtime section, as rtdev" },
    Suboption { key: Key::RealtimeNoalign, group: Group::Realtime, name: "noalign", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[], help: "take no extent size from the stripe width of the realtime device" },
    Suboption { key: Key::RealtimeRgcount, group: Group::Realtime, name: "rgcount", kind: Kind::Number, range: (1, 4_294_967_295), if_empty: None, power_of_two: false, conflicts: &[Key::RealtimeRgsize, Key::RealtimeConcurrency], help: "number of realtime groups" },
    Suboption { key: Key::RealtimeRgsize, group: Group::Realtime, name: "rgsize", kind: Kind::LateSize, range: (0, 137438953408 << 10), if_empty: None, power_of_two: false, conflicts: &[Key::RealtimeRgcount, Key::RealtimeConcurrency], help: "size of a realtime group" },
    Suboption { key: Key::RealtimeConcurrency, group: Group::Realtime, name: "concurrency", kind: Kind::Concurrency, range: (0, 2_147_483_647), if_empty: Some(1), power_of_two: false, conflicts: &[Key::RealtimeRgcount, Key::RealtimeRgsize], help: "choose realtime groups for this many writers; 1 or nr_cpus: as many as there are CPUs; 0: do not" },
    Suboption { key: Key::RealtimeZoned, group: Group::Realtime, name: "zoned", kind: Kind::Switch, range: (0, 1), if_empty: Some(1), power_of_two: false, conflicts: &[Key::RealtimeExtsize], help: "the realtime section is written in zones" },
    Suboption { key: Key::RealtimeStart, group: Group::Realtime, name: "start", kind: Kind::LateSize, range: (0, i64::MAX), if_empty: None, power_of_two: false, conflicts: &[Key::RealtimeRtdev], help: "start of a zoned realtime section inside the data device" },
    Suboption { key: Key::RealtimeReserved, group: Group::Realtime, name: "reserved", kind: Kind::Size, range: (0, i64::MAX), if_empty: None, power_of_two: false, conflicts: &[], help: "space of a zoned realtime section that is kept back" },
    Suboption { key: Key::SectorSize, group: Group::Sector, name: "size", kind: Kind::Size, range: (512, 32 << 10), if_empty: None, power_of_two: true, conflicts: &[Key::SectorSectsize, Key::DataSectsize], help: "sector size" },
    Suboption { key: Key::SectorSectsize, group: Group::Sector, name: "sectsize", kind: Kind::Size, range: (512, 32 << 10), if_empty: None, power_of_two: true, conflicts: &[Key::SectorSize, Key::DataSectsize], help: "sector size, as size" },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_keys() {
        for (index, suboption) in TABLE.iter().enumerate() {
            assert_eq!(suboption.key as usize, index, "{}", suboption.name);
        }
    }

    #[test]
    fn every_name_is_used_once_in_its_group() {
        for group in Group::ALL {
            let mut names: Vec<_> = group.suboptions().map(|suboption| suboption.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }

    #[test]
    fn allowed_values_read_well() {
        assert_eq!(Key::BlockSize.suboption().allowed(), "powers of two from 512 to 64k");
        assert_eq!(Key::DataSize.suboption().allowed(), "16m or more");
        assert_eq!(Key::MetadataCrc.suboption().allowed(), "0 or 1");
        assert_eq!(Key::DataAgcount.suboption().allowed(), "1 to 4294967294");
        assert_eq!(Key::LogSize.suboption().allowed(), "2m to 2038m");
        assert_eq!(Key::MetadataUquota.suboption().written(), "-m uquota");
    }
}
