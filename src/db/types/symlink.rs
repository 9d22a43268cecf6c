//! Blocks of symbolic links, version 5. Version 4 has no header there.

use crate::db::field::at;
use crate::db::field::formats::{CHARACTERS, CRC, FS_BLOCK, INO, U32, UUID, X32, X64};
use crate::db::field::{Bits, Format, Object, Row};
use crate::db::types::TypeId;
use crate::ondisk::OnDisk;
use crate::ondisk::remote::{RawDsymlinkHdr, SYMLINK_MAGIC};

/// Bytes of the target in this block.
fn target_length(object: &Object<'_>, _: Bits) -> usize {
    let header: Option<&RawDsymlinkHdr> = object.structure(0);
    let Some(header) = header.filter(|header| header.magic.get() == SYMLINK_MAGIC) else { return 0 };
    let room = usize::try_from(object.geometry.blocksize).map_or(0, |size| size.saturating_sub(RawDsymlinkHdr::SIZE));
    usize::try_from(header.bytes.get()).unwrap_or(usize::MAX).min(room)
}

fn bits(object: &Object<'_>, start: Bits, _: usize) -> Bits {
    (RawDsymlinkHdr::SIZE + target_length(object, start)) * 8
}

/// A block of a symbolic link.
pub static SYMLINK: Format = Format::structure_sized(
    &[
        Row::new("magic", at!(RawDsymlinkHdr, magic), X32),
        Row::new("offset", at!(RawDsymlinkHdr, offset), U32),
        Row::new("bytes", at!(RawDsymlinkHdr, bytes), U32),
        Row::new("crc", at!(RawDsymlinkHdr, crc), CRC),
        Row::new("uuid", at!(RawDsymlinkHdr, uuid), UUID),
        Row::new("owner", at!(RawDsymlinkHdr, owner), INO),
        Row::new("bno", at!(RawDsymlinkHdr, blkno), FS_BLOCK).leads_to(TypeId::Bmapbtd),
        Row::new("lsn", at!(RawDsymlinkHdr, lsn), X64),
        Row::new("data", RawDsymlinkHdr::SIZE * 8, CHARACTERS).counted(target_length),
    ],
    bits,
);
