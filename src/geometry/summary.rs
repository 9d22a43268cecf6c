//! The geometry in the words of xfs_info, which mkfs.xfs shares (xfsprogs `libfrog/fsgeom.c`).

use std::fmt::{self, Display};

use super::Geometry;
use crate::ondisk::RawSuperblock;

/// What the text says. Sizes are in bytes where they are called so, else in blocks; flags are features in use.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // each field is a word of the text
pub struct GeometrySummary<'a> {
    /// The data device, or the mount point.
    pub device: &'a str,
    pub inode_bytes: u32,
    pub agcount: u32,
    pub agblocks: u32,
    pub sector_bytes: u32,
    pub projid32: bool,
    pub crc: bool,
    pub finobt: bool,
    pub sparse: bool,
    pub rmapbt: bool,
    pub reflink: bool,
    pub bigtime: bool,
    pub inobtcount: bool,
    pub nrext64: bool,
    pub exchange: bool,
    pub metadir: bool,
    pub block_bytes: u32,
    pub blocks: u64,
    pub imax_pct: u8,
    pub stripe_unit: u32,
    pub stripe_width: u32,
    pub directory_block_bytes: u32,
    pub ascii_ci: bool,
    pub ftype: bool,
    pub parent: bool,
    pub log_internal: bool,
    /// The external log device, if its name is known.
    pub log_device: Option<&'a str>,
    pub log_blocks: u32,
    pub log_version: u32,
    pub log_sector_bytes: u32,
    /// In blocks.
    pub log_stripe_unit: u32,
    pub lazy_count: bool,
    /// The realtime device, if its name is known.
    pub realtime_device: Option<&'a str>,
    pub realtime_extent_bytes: u64,
    pub realtime_blocks: u64,
    pub realtime_extents: u64,
    pub realtime_groups: u32,
    pub realtime_group_extents: u32,
    pub zoned: bool,
    /// First block of the realtime section on the data device; 0 when it has a device of its own.
    pub realtime_start: u64,
    pub realtime_reserved: u64,
}

impl GeometrySummary<'_> {
    /// That of a filesystem, without the names of its devices.
    pub fn of(geometry: &Geometry, sb: &RawSuperblock) -> Self {
        let Geometry { features, log, realtime, .. } = geometry;
        GeometrySummary {
            device: "",
            inode_bytes: geometry.inodes.size,
            agcount: geometry.agcount,
            agblocks: geometry.agblocks,
            sector_bytes: geometry.sectsize,
            projid32: features.has_projid32(),
            crc: features.has_crc(),
            finobt: features.has_finobt(),
            sparse: features.has_sparseinodes(),
            rmapbt: features.has_rmapbt(),
            reflink: features.has_reflink(),
            bigtime: features.has_bigtime(),
            inobtcount: features.has_inobtcount(),
            nrext64: features.has_nrext64(),
            exchange: features.has_exchange(),
            metadir: features.has_metadir(),
            block_bytes: geometry.blocksize,
            blocks: geometry.dblocks,
            imax_pct: geometry.imax_pct,
            stripe_unit: sb.unit.get(),
            stripe_width: sb.width.get(),
            directory_block_bytes: geometry.directory.blksize,
            ascii_ci: features.has_asciici(),
            ftype: features.has_ftype(),
            parent: features.has_parent(),
            log_internal: log.start.is_some(),
            log_device: None,
            log_blocks: log.blocks,
            log_version: log.version,
            log_sector_bytes: log.sectsize,
            log_stripe_unit: log.stripe_unit / geometry.blocksize,
            lazy_count: features.has_lazysbcount(),
            realtime_device: None,
            realtime_extent_bytes: u64::from(realtime.extent_blocks) * u64::from(geometry.blocksize),
            realtime_blocks: realtime.blocks,
            realtime_extents: realtime.extents,
            realtime_groups: realtime.groups.map_or(0, |groups| groups.count),
            realtime_group_extents: if features.has_metadir() { sb.rgextents.get() } else { 0 },
            zoned: features.has_zoned(),
            realtime_start: realtime.start,
            realtime_reserved: realtime.reserved,
        }
    }

    fn log_name(&self) -> &str {
        if self.log_internal { "internal log" } else { self.log_device.unwrap_or("external") }
    }

    fn realtime_name(&self) -> &str {
        match (self.realtime_blocks, self.realtime_start) {
            (0, _) => "none",
            (_, 1..) => "internal",
            _ => self.realtime_device.unwrap_or("external"),
        }
    }
}

/// A feature as the text has it: 1 or 0.
fn on(feature: bool) -> u8 {
    u8::from(feature)
}

impl Display for GeometrySummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |title: &str, name: &str, rest: fmt::Arguments<'_>| writeln!(f, "{title:9}={name:<22} {rest}");
        let (isize, agcount, agsize) = (self.inode_bytes, self.agcount, self.agblocks);
        line("meta-data", self.device, format_args!("isize={isize:<6} agcount={agcount}, agsize={agsize} blks"))?;
        // the kernel, and xfsprogs with it, no longer tells the versions of attributes apart
        line("", "", format_args!("sectsz={:<5} attr=2, projid32bit={}", self.sector_bytes, on(self.projid32)))?;
        let (finobt, sparse, rmapbt) = (on(self.finobt), on(self.sparse), on(self.rmapbt));
        line("", "", format_args!("crc={:<8} finobt={finobt}, sparse={sparse}, rmapbt={rmapbt}", on(self.crc)))?;
        let (reflink, bigtime, inobtcount) = (on(self.reflink), on(self.bigtime), on(self.inobtcount));
        let nrext64 = on(self.nrext64);
        line("", "", format_args!("reflink={reflink:<4} bigtime={bigtime} inobtcount={inobtcount} nrext64={nrext64}"))?;
        line("", "", format_args!("exchange={:<3} metadir={}", on(self.exchange), on(self.metadir)))?;
        let bsize = self.block_bytes;
        line("data", "", format_args!("bsize={bsize:<6} blocks={}, imaxpct={}", self.blocks, self.imax_pct))?;
        line("", "", format_args!("sunit={:<6} swidth={} blks", self.stripe_unit, self.stripe_width))?;
        let (ci, ftype, parent) = (on(self.ascii_ci), on(self.ftype), on(self.parent));
        let dirblock = self.directory_block_bytes;
        let rest = format_args!("bsize={dirblock:<6} ascii-ci={ci}, ftype={ftype}, parent={parent}");
        line("naming", "version 2", rest)?;
        let (blocks, version) = (self.log_blocks, self.log_version);
        line("log", self.log_name(), format_args!("bsize={bsize:<6} blocks={blocks}, version={version}"))?;
        let (sector, unit, lazy) = (self.log_sector_bytes, self.log_stripe_unit, on(self.lazy_count));
        line("", "", format_args!("sectsz={sector:<5} sunit={unit} blks, lazy-count={lazy}"))?;
        let (extsz, blocks, extents) = (self.realtime_extent_bytes, self.realtime_blocks, self.realtime_extents);
        line("realtime", self.realtime_name(), format_args!("extsz={extsz:<6} blocks={blocks}, rtextents={extents}"))?;
        let (count, size) = (self.realtime_groups, self.realtime_group_extents);
        line("", "", format_args!("rgcount={count:<4} rgsize={size} extents"))?;
        let (start, reserved) = (self.realtime_start, self.realtime_reserved);
        line("", "", format_args!("zoned={:<6} start={start} reserved={reserved}", on(self.zoned)))
    }
}
