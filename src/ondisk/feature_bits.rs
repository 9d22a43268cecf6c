//! The bits of the superblock's feature and flag words (Linux `xfs_format.h`; `qflags` from `xfs_log_format.h`).

/// Bits of `versionnum`.
pub mod versionnum {
    /// The bits that hold the version.
    pub const NUMBITS: u16 = 0x000f;
    /// Extended attributes exist.
    pub const ATTR: u16 = 0x0010;
    /// 32-bit link counts: inodes of version 2.
    pub const NLINK: u16 = 0x0020;
    /// Quotas have been used.
    pub const QUOTA: u16 = 0x0040;
    /// Inode chunks are aligned.
    pub const ALIGN: u16 = 0x0080;
    /// A stripe unit is set.
    pub const DALIGN: u16 = 0x0100;
    /// Shared superblock; supported nowhere.
    pub const SHARED: u16 = 0x0200;
    /// Log of version 2.
    pub const LOGV2: u16 = 0x0400;
    /// Sectors are larger than 512 bytes, or the log's size of sector is stated.
    pub const SECTOR: u16 = 0x0800;
    /// Unwritten extents.
    pub const EXTFLG: u16 = 0x1000;
    /// Directories of version 2.
    pub const DIRV2: u16 = 0x2000;
    /// Names are compared without regard to ASCII case.
    pub const BORG: u16 = 0x4000;
    /// `features2` holds bits.
    pub const MOREBITS: u16 = 0x8000;
    /// Every bit that kernels know, with the version's own.
    pub const KNOWN: u16 = !SHARED;
    /// Bits that version 5 demands.
    pub const V5_REQUIRED: u16 = NLINK | ALIGN | LOGV2 | EXTFLG | DIRV2 | MOREBITS;
}

/// Bits of `features2`.
pub mod features2 {
    /// Counters of the superblock are brought up to date at unmount only.
    pub const LAZYSBCOUNT: u32 = 0x0000_0002;
    /// The split between the forks of an inode moves.
    pub const ATTR2: u32 = 0x0000_0008;
    /// Parent pointers in the form of SGI's later IRIX; never used by Linux.
    pub const PARENT: u32 = 0x0000_0010;
    /// 32-bit project numbers.
    pub const PROJID32: u32 = 0x0000_0080;
    /// Metadata carry CRCs: set with version 5 alone.
    pub const CRC: u32 = 0x0000_0100;
    /// Directory entries carry the file type (version 4).
    pub const FTYPE: u32 = 0x0000_0200;
    /// Bits that a version 4 superblock may have.
    pub const KNOWN: u32 = LAZYSBCOUNT | ATTR2 | PROJID32 | FTYPE;
    /// Bits that version 5 demands.
    pub const V5_REQUIRED: u32 = LAZYSBCOUNT | ATTR2 | PROJID32 | CRC;
}

/// Bits of `features_compat`: none is defined.
pub mod compat {
    /// Every bit that Linux 7.3 knows.
    pub const KNOWN: u32 = 0;
}

/// Bits of `features_ro_compat`.
pub mod ro_compat {
    /// Btree of the free inodes.
    pub const FINOBT: u32 = 1 << 0;
    /// Reverse mapping btree.
    pub const RMAPBT: u32 = 1 << 1;
    /// Blocks may be shared by files.
    pub const REFLINK: u32 = 1 << 2;
    /// The AGI counts the blocks of the inode btrees.
    pub const INOBTCNT: u32 = 1 << 3;
    /// Every bit that Linux 7.3 knows.
    pub const KNOWN: u32 = FINOBT | RMAPBT | REFLINK | INOBTCNT;
}

/// Bits of `features_incompat`.
pub mod incompat {
    /// Directory entries carry the file type.
    pub const FTYPE: u32 = 1 << 0;
    /// Inode chunks may have holes.
    pub const SPINODES: u32 = 1 << 1;
    /// Metadata carry `meta_uuid` instead of `uuid`.
    pub const META_UUID: u32 = 1 << 2;
    /// Timestamps to the year 2486.
    pub const BIGTIME: u32 = 1 << 3;
    /// A repair was cut short.
    pub const NEEDSREPAIR: u32 = 1 << 4;
    /// Large extent counters.
    pub const NREXT64: u32 = 1 << 5;
    /// Mappings can be exchanged between files, as intents of the log.
    pub const EXCHRANGE: u32 = 1 << 6;
    /// Parent pointers.
    pub const PARENT: u32 = 1 << 7;
    /// Metadata directory tree and realtime groups.
    pub const METADIR: u32 = 1 << 8;
    /// Realtime groups are zones.
    pub const ZONED: u32 = 1 << 9;
    /// The capacity of a zone is smaller than its size.
    pub const ZONE_GAPS: u32 = 1 << 10;
    /// Every bit that Linux 7.3 knows.
    pub const KNOWN: u32 = FTYPE
        | SPINODES
        | META_UUID
        | BIGTIME
        | NEEDSREPAIR
        | NREXT64
        | EXCHRANGE
        | PARENT
        | METADIR
        | ZONED
        | ZONE_GAPS;
}

/// Bits of `features_log_incompat`.
pub mod log_incompat {
    /// The log may hold attribute intents.
    pub const XATTRS: u32 = 1 << 0;
    /// Every bit that Linux 7.3 knows.
    pub const KNOWN: u32 = XATTRS;
}

/// Bits of `qflags`.
pub mod qflags {
    /// User quota is accounted.
    pub const UQUOTA_ACCT: u16 = 0x0001;
    /// User quota limits are enforced.
    pub const UQUOTA_ENFD: u16 = 0x0002;
    /// User quota has been counted.
    pub const UQUOTA_CHKD: u16 = 0x0004;
    /// Project quota is accounted.
    pub const PQUOTA_ACCT: u16 = 0x0008;
    /// Group or project quota limits are enforced (version 4).
    pub const OQUOTA_ENFD: u16 = 0x0010;
    /// Group or project quota has been counted (version 4).
    pub const OQUOTA_CHKD: u16 = 0x0020;
    /// Group quota is accounted.
    pub const GQUOTA_ACCT: u16 = 0x0040;
    /// Group quota limits are enforced (version 5).
    pub const GQUOTA_ENFD: u16 = 0x0080;
    /// Group quota has been counted (version 5).
    pub const GQUOTA_CHKD: u16 = 0x0100;
    /// Project quota limits are enforced (version 5).
    pub const PQUOTA_ENFD: u16 = 0x0200;
    /// Project quota has been counted (version 5).
    pub const PQUOTA_CHKD: u16 = 0x0400;
}

/// Bits of `flags`.
pub mod sb_flags {
    /// Only read-only mounts are allowed.
    pub const READONLY: u8 = 0x01;
}
