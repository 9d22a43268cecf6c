//! What a filesystem uses, decoded from the feature words of its superblock (Linux `libxfs/xfs_sb.c`,
//! `xfs_sb_version_to_features`).

use crate::ondisk::feature_bits::{compat, features2, incompat, log_incompat, ro_compat, versionnum};
use crate::ondisk::{Be32, RawSuperblock};

/// The feature words of a superblock.
///
/// Version 4 has no words from `compat` on: they are zero here whatever the bytes say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// `versionnum`: version and the oldest feature bits.
    pub versionnum: u16,
    /// `features2`, with the bits that some kernels put into `bad_features2`.
    pub features2: u32,
    /// `features_compat`.
    pub compat: u32,
    /// `features_ro_compat`.
    pub ro_compat: u32,
    /// `features_incompat`.
    pub incompat: u32,
    /// `features_log_incompat`.
    pub log_incompat: u32,
    /// Whether there is a realtime section with blocks.
    pub realtime: bool,
}

/// Feature bits that Linux 7.3 does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnknownBits {
    /// Of `versionnum`.
    pub versionnum: u16,
    /// Of `features2`.
    pub features2: u32,
    /// Of `features_compat`.
    pub compat: u32,
    /// Of `features_ro_compat`: it may be read, but not written.
    pub ro_compat: u32,
    /// Of `features_incompat`: it cannot be read.
    pub incompat: u32,
    /// Of `features_log_incompat`: its log cannot be replayed.
    pub log_incompat: u32,
}

impl UnknownBits {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == UnknownBits::default()
    }
}

macro_rules! features {
    ($( $(#[$meta:meta])* $variant:ident, $has:ident, $name:literal, $listed:literal, |$f:ident| $test:expr; )*) => {
        /// A feature of the format. The order is that in which xfs_db's `version` command lists them; what it does not
        /// list comes last.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Feature { $( $(#[$meta])* $variant, )* }

        impl Feature {
            /// All of them.
            pub const ALL: &'static [Feature] = &[ $( Feature::$variant, )* ];

            /// Name as mkfs.xfs's options and xfs_info's output have it; where they have none, the kernel's, in lower case.
            pub const fn name(self) -> &'static str {
                match self { $( Feature::$variant => $name, )* }
            }

            /// Name as xfs_db's `version` command lists it; `None` when it does not.
            pub const fn listed_name(self) -> Option<&'static str> {
                let name: &'static str = match self { $( Feature::$variant => $listed, )* };
                if name.is_empty() { None } else { Some(name) }
            }
        }

        impl Features {
            /// Whether the filesystem uses `feature`.
            pub fn has(&self, feature: Feature) -> bool {
                match feature { $( Feature::$variant => self.$has(), )* }
            }

            $( $(#[$meta])*
            pub fn $has(&self) -> bool {
                let $f = self;
                $test
            } )*
        }
    };
}

features! {
    /// 32-bit link counts.
    Nlink, has_nlink, "nlink", "NLINK", |f| f.version_bit(versionnum::NLINK);
    /// Shared superblock; supported nowhere.
    Shared, has_shared, "shared", "SHARED", |f| f.version_bit(versionnum::SHARED);
    /// Directories of version 2.
    DirV2, has_dirv2, "dirv2", "DIRV2", |f| f.version_bit(versionnum::DIRV2);
    /// Extended attributes have been used.
    Attr, has_attr, "attr", "ATTR", |f| f.version_bit(versionnum::ATTR);
    /// Quotas have been used.
    Quota, has_quota, "quota", "QUOTA", |f| f.version_bit(versionnum::QUOTA);
    /// Inode chunks are aligned.
    Align, has_align, "align", "ALIGN", |f| f.is_v5() || f.version_bit(versionnum::ALIGN);
    /// A stripe unit is set.
    Dalign, has_dalign, "dalign", "DALIGN", |f| f.version_bit(versionnum::DALIGN);
    /// Log of version 2.
    LogV2, has_logv2, "logv2", "LOGV2", |f| f.is_v5() || f.version_bit(versionnum::LOGV2);
    /// Unwritten extents.
    ExtFlag, has_extflg, "extflg", "EXTFLG", |f| f.is_v5() || f.version_bit(versionnum::EXTFLG);
    /// Sector sizes of data and log device are stated.
    Sector, has_sector, "sector", "SECTOR", |f| f.version_bit(versionnum::SECTOR);
    /// Names are compared without regard to ASCII case.
    AsciiCi, has_asciici, "ascii-ci", "ASCII_CI", |f| f.version_bit(versionnum::BORG);
    /// `features2` holds bits.
    MoreBits, has_morebits, "morebits", "MOREBITS", |f| f.version_bit(versionnum::MOREBITS);
    /// Counters of the superblock are brought up to date at unmount only.
    LazySbCount, has_lazysbcount, "lazy-count", "LAZYSBCOUNT", |f| f.is_v5() || f.features2_bit(features2::LAZYSBCOUNT);
    /// 32-bit project numbers.
    Projid32, has_projid32, "projid32bit", "PROJID32BIT", |f| f.is_v5() || f.features2_bit(features2::PROJID32);
    /// Metadata carry CRCs, UUID, owner and address; inodes are of version 3.
    Crc, has_crc, "crc", "CRC", |f| f.is_v5();
    /// Directory entries carry the file type.
    Ftype, has_ftype, "ftype", "FTYPE",
        |f| f.incompat_bit(incompat::FTYPE) || f.features2_bit(features2::FTYPE);
    /// Btree of the free inodes.
    Finobt, has_finobt, "finobt", "FINOBT", |f| f.ro_compat_bit(ro_compat::FINOBT);
    /// Inode chunks may have holes.
    SparseInodes, has_sparseinodes, "sparse", "SPARSE_INODES", |f| f.incompat_bit(incompat::SPINODES);
    /// Metadata carry a UUID of their own.
    MetaUuid, has_metauuid, "metauuid", "META_UUID", |f| f.incompat_bit(incompat::META_UUID);
    /// Reverse mapping btree.
    Rmapbt, has_rmapbt, "rmapbt", "RMAPBT", |f| f.ro_compat_bit(ro_compat::RMAPBT);
    /// Blocks may be shared by files.
    Reflink, has_reflink, "reflink", "REFLINK", |f| f.ro_compat_bit(ro_compat::REFLINK);
    /// The AGI counts the blocks of the inode btrees.
    InobtCount, has_inobtcount, "inobtcount", "INOBTCNT", |f| f.ro_compat_bit(ro_compat::INOBTCNT);
    /// Timestamps to the year 2486.
    Bigtime, has_bigtime, "bigtime", "BIGTIME", |f| f.incompat_bit(incompat::BIGTIME);
    /// A repair was cut short.
    NeedsRepair, has_needsrepair, "needsrepair", "NEEDSREPAIR", |f| f.incompat_bit(incompat::NEEDSREPAIR);
    /// Large extent counters.
    Nrext64, has_nrext64, "nrext64", "NREXT64", |f| f.incompat_bit(incompat::NREXT64);
    /// Mappings can be exchanged between files.
    Exchange, has_exchange, "exchange", "EXCHANGE", |f| f.incompat_bit(incompat::EXCHRANGE);
    /// Parent pointers.
    Parent, has_parent, "parent", "PARENT", |f| f.incompat_bit(incompat::PARENT);
    /// Metadata directory tree and realtime groups.
    Metadir, has_metadir, "metadir", "METADIR", |f| f.incompat_bit(incompat::METADIR);
    /// Realtime groups are zones.
    Zoned, has_zoned, "zoned", "", |f| f.incompat_bit(incompat::ZONED);
    /// The capacity of a zone is smaller than its size.
    ZoneGaps, has_zone_gaps, "zone_gaps", "", |f| f.incompat_bit(incompat::ZONE_GAPS);
    /// The log may hold attribute intents.
    LogXattrs, has_log_xattrs, "log_xattrs", "", |f| f.log_incompat & log_incompat::XATTRS != 0;
    /// There is a realtime section with blocks.
    Realtime, has_realtime, "realtime", "", |f| f.realtime;
}

impl Features {
    /// Decodes the feature words.
    pub fn from_superblock(sb: &RawSuperblock) -> Self {
        let v5 = |word: Be32| if sb.is_v5() { word.get() } else { 0 };
        Features {
            versionnum: sb.versionnum.get(),
            features2: sb.features2.get() | sb.bad_features2.get(),
            compat: v5(sb.features_compat),
            ro_compat: v5(sb.features_ro_compat),
            incompat: v5(sb.features_incompat),
            log_incompat: v5(sb.features_log_incompat),
            realtime: sb.rblocks.get() > 0,
        }
    }

    /// The version of the superblock.
    pub fn version(&self) -> u16 {
        self.versionnum & versionnum::NUMBITS
    }

    /// Whether the superblock is of version 5.
    pub fn is_v5(&self) -> bool {
        self.version() == 5
    }

    fn version_bit(&self, bit: u16) -> bool {
        self.versionnum & bit != 0
    }

    fn features2_bit(&self, bit: u32) -> bool {
        self.version_bit(versionnum::MOREBITS) && self.features2 & bit != 0
    }

    fn ro_compat_bit(&self, bit: u32) -> bool {
        self.ro_compat & bit != 0
    }

    fn incompat_bit(&self, bit: u32) -> bool {
        self.incompat & bit != 0
    }

    /// Whether the realtime section is divided into groups.
    pub fn has_rtgroups(&self) -> bool {
        self.has_metadir()
    }

    /// Whether the realtime section starts with a superblock of its own.
    pub fn has_rtsb(&self) -> bool {
        self.has_rtgroups() && self.realtime && !self.has_zoned()
    }

    /// Whether realtime groups have reverse mapping btrees.
    pub fn has_rtrmapbt(&self) -> bool {
        self.has_rtgroups() && self.realtime && self.has_rmapbt()
    }

    /// Whether realtime groups have reference count btrees.
    pub fn has_rtreflink(&self) -> bool {
        self.has_rtgroups() && self.realtime && self.has_reflink()
    }

    /// The bits that have no meaning up to Linux 7.3.
    pub fn unknown(&self) -> UnknownBits {
        let crc = if self.is_v5() { features2::CRC } else { 0 };
        UnknownBits {
            versionnum: self.versionnum & !versionnum::KNOWN,
            features2: if self.has_morebits() { self.features2 & !(features2::KNOWN | crc) } else { 0 },
            compat: self.compat & !compat::KNOWN,
            ro_compat: self.ro_compat & !ro_compat::KNOWN,
            incompat: self.incompat & !incompat::KNOWN,
            log_incompat: self.log_incompat & !log_incompat::KNOWN,
        }
    }

    /// The features that the filesystem uses, in the order of [`Feature`].
    pub fn list(&self) -> impl Iterator<Item = Feature> + '_ {
        Feature::ALL.iter().copied().filter(|feature| self.has(*feature))
    }

    /// The text of xfs_db's `version` command after the equals sign: `V5,NLINK,DIRV2,...`.
    pub fn version_string(&self) -> String {
        let mut text = format!("V{}", self.version());
        for name in self.list().filter_map(Feature::listed_name) {
            text.push(',');
            text.push_str(name);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_equal_those_of_xfs_db() {
        // words and lists from images of mkfs.xfs 7.2, as shown by its xfs_db
        let v5 =
            Features { versionnum: 0xb4b5, features2: 0x18a, ro_compat: 0xf, incompat: 0x1eb, ..Features::default() };
        assert_eq!(
            v5.version_string(),
            "V5,NLINK,DIRV2,ATTR,ALIGN,LOGV2,EXTFLG,MOREBITS,LAZYSBCOUNT,PROJID32BIT,CRC,FTYPE,FINOBT,SPARSE_INODES,\
             RMAPBT,REFLINK,INOBTCNT,BIGTIME,NREXT64,EXCHANGE,PARENT,METADIR"
        );
        let v4 = Features { versionnum: 0xb4a4, features2: 0x28a, ..Features::default() };
        assert_eq!(v4.version_string(), "V4,NLINK,DIRV2,ALIGN,LOGV2,EXTFLG,MOREBITS,LAZYSBCOUNT,PROJID32BIT,FTYPE");
    }

    #[test]
    fn unknown_bits_are_reported() {
        let features = Features { versionnum: 0xb4b5, features2: 0x18a, incompat: 1 << 31, ..Features::default() };
        assert_eq!(features.unknown(), UnknownBits { incompat: 1 << 31, ..UnknownBits::default() });
        let v4 = Features { versionnum: 0xb4a4, features2: 0x10a, ..Features::default() };
        assert_eq!(v4.unknown().features2, features2::CRC);
    }

    proptest! {
        #[test]
        fn any_words_decode(versionnum: u16, features2: u32, ro_compat: u32, incompat: u32, realtime: bool) {
            let features = Features { versionnum, features2, ro_compat, incompat, realtime, ..Features::default() };
            prop_assert_eq!(features.list().count(), Feature::ALL.iter().filter(|f| features.has(**f)).count());
            prop_assert!(features.version_string().starts_with('V'));
            let _ = features.unknown();
        }
    }
}
