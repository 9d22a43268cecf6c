//! The features of a filesystem as a configuration file of mkfs.xfs, in the form of its `-c makecfg` and of xfs_db's
//! `makecfg` (xfsprogs `libfrog/fsgeom.c`). Sizes and places are left out, unless they are unusual.

use std::fmt::{self, Display, Formatter};

use super::limits::MIN_RTEXT_BYTES;

/// What is counted, and whether limits are enforced, for one kind of quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaWish {
    /// Space is counted.
    pub counted: bool,
    /// Limits are enforced.
    pub enforced: bool,
}

/// Everything that a configuration file can say.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // each field is a line of the file
pub struct MkfsConfig<'a> {
    pub block_bytes: u32,
    pub blocks: u64,
    pub crc: bool,
    pub finobt: bool,
    pub rmapbt: bool,
    pub reflink: bool,
    pub inobtcount: bool,
    pub bigtime: bool,
    pub metadir: bool,
    pub autofsck: Option<&'a str>,
    /// User, group and project; only a filesystem with a metadata directory remembers them.
    pub quotas: [QuotaWish; 3],
    pub rt_inherit: bool,
    pub project: Option<u32>,
    /// In blocks.
    pub extent_size: Option<u32>,
    /// In blocks.
    pub cow_extent_size: Option<u32>,
    pub dax: bool,
    pub sparse: bool,
    pub nrext64: bool,
    pub exchange: bool,
    pub projid32: bool,
    pub imax_pct: u8,
    pub inode_bytes: u32,
    pub lazy_count: bool,
    pub parent: bool,
    pub ftype: bool,
    pub ascii_ci: bool,
    pub directory_block_bytes: u32,
    pub realtime_extent_bytes: u64,
}

/// The block size that goes without saying, also the least of a directory.
const USUAL_BLOCK: u32 = 4096;

/// The most space that inodes may take when nothing is said about it, in percent.
pub fn usual_imax_pct(blocks: u64, blocksize: u32) -> u8 {
    let terabytes = |count: u64| (count << 40) / u64::from(blocksize.max(1));
    match blocks {
        blocks if blocks < terabytes(1) => 25,
        blocks if blocks < terabytes(50) => 5,
        _ => 1,
    }
}

impl Display for MkfsConfig<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sections = [Self::block, Self::metadata, Self::data, Self::inode, Self::log, Self::naming, Self::realtime];
        for (index, section) in sections.into_iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            section(self, f)?;
        }
        Ok(())
    }
}

fn title(f: &mut Formatter<'_>, name: &str) -> fmt::Result {
    writeln!(f, "[{name}]")
}

fn line(f: &mut Formatter<'_>, name: &str, value: impl Display) -> fmt::Result {
    writeln!(f, "{name}={value}")
}

fn flags(f: &mut Formatter<'_>, lines: &[(&str, bool)]) -> fmt::Result {
    lines.iter().try_for_each(|(name, on)| line(f, name, u8::from(*on)))
}

fn unusual(f: &mut Formatter<'_>, condition: bool, name: &str, value: impl Display) -> fmt::Result {
    if condition { line(f, name, value) } else { Ok(()) }
}

impl MkfsConfig<'_> {
    fn block(&self, f: &mut Formatter<'_>) -> fmt::Result {
        title(f, "block")?;
        unusual(f, self.block_bytes != USUAL_BLOCK, "size", self.block_bytes)
    }

    fn metadata(&self, f: &mut Formatter<'_>) -> fmt::Result {
        title(f, "metadata")?;
        let lines = [
            ("crc", self.crc),
            ("finobt", self.finobt),
            ("rmapbt", self.rmapbt),
            ("reflink", self.reflink),
            ("inobtcount", self.inobtcount),
            ("bigtime", self.bigtime),
            ("metadir", self.metadir),
        ];
        flags(f, &lines)?;
        unusual(f, self.autofsck.is_some(), "autofsck", self.autofsck.unwrap_or_default())?;
        for (enforced, names) in
            [(true, ["uquota", "gquota", "pquota"]), (false, ["uqnoenforce", "gqnoenforce", "pqnoenforce"])]
        {
            for (quota, name) in self.quotas.iter().zip(names) {
                unusual(f, self.metadir && quota.counted && quota.enforced == enforced, name, 1)?;
            }
        }
        Ok(())
    }

    fn data(&self, f: &mut Formatter<'_>) -> fmt::Result {
        title(f, "data")?;
        unusual(f, self.rt_inherit, "rtinherit", 1)?;
        let numbers =
            [("projinherit", self.project), ("extszinherit", self.extent_size), ("cowextsize", self.cow_extent_size)];
        for (name, number) in numbers {
            unusual(f, number.is_some(), name, number.unwrap_or_default())?;
        }
        unusual(f, self.dax, "daxinherit", 1)
    }

    fn inode(&self, f: &mut Formatter<'_>) -> fmt::Result {
        title(f, "inode")?;
        flags(f, &[("sparse", self.sparse), ("nrext64", self.nrext64), ("exchange", self.exchange)])?;
        unusual(f, !self.projid32, "projid32bit", 0)?;
        unusual(f, self.imax_pct != usual_imax_pct(self.blocks, self.block_bytes), "maxpct", self.imax_pct)?;
        unusual(f, self.inode_bytes != if self.crc { 512 } else { 256 }, "size", self.inode_bytes)
    }

    fn log(&self, f: &mut Formatter<'_>) -> fmt::Result {
        title(f, "log")?;
        unusual(f, !self.lazy_count, "lazy-count", 0)
    }

    fn naming(&self, f: &mut Formatter<'_>) -> fmt::Result {
        title(f, "naming")?;
        flags(f, &[("parent", self.parent), ("ftype", self.ftype)])?;
        line(f, "version", if self.ascii_ci { "ci" } else { "2" })?;
        let usual = self.block_bytes.max(USUAL_BLOCK);
        unusual(f, self.directory_block_bytes > usual, "size", self.directory_block_bytes)
    }

    fn realtime(&self, f: &mut Formatter<'_>) -> fmt::Result {
        title(f, "realtime")?;
        let usual = u64::from(self.block_bytes).max(MIN_RTEXT_BYTES);
        unusual(f, self.realtime_extent_bytes > usual, "extsize", self.realtime_extent_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_share_of_inodes_falls_with_size() {
        assert_eq!(usual_imax_pct((1 << 28) - 1, 4096), 25);
        assert_eq!(usual_imax_pct(1 << 28, 4096), 5);
        assert_eq!(usual_imax_pct(50 << 28, 4096), 1);
        assert_eq!(usual_imax_pct(1, 0), 25);
    }
}
