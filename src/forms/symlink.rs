//! Targets of symbolic links (Linux `fs/xfs/libxfs/xfs_symlink_remote.c`).

use super::fork::{ForkForm, ForkKind};
use super::inode::{FileType, Inode};
use super::source::{BlockSource, Piece, corrupt, demand_sound, place_of, read_pieces};
use crate::buffer::{Block, BlockKind};
use crate::error::{Check, Error, Result, Rule};
use crate::geometry::FsBlock;
use crate::ondisk::OnDisk;
use crate::ondisk::remote::{RawDsymlinkHdr, SYMLINK_MAXLEN};

/// The target of a symbolic link: bytes that need not be UTF-8.
///
/// # Errors
/// `Usage` when `inode` is no symbolic link; `Io`; `Corrupt` when the target is empty, too long, holds a zero byte, or
/// its blocks fail a check.
pub fn read_symlink(source: &dyn BlockSource, inode: &Inode) -> Result<Vec<u8>> {
    if inode.file_type() != Some(FileType::Symlink) {
        return Err(Error::Usage(format!("inode {} is not a symbolic link", inode.ino)));
    }
    let failed = |field, rule| corrupt(Check::new("symlink", field, rule), &inode.place, inode.size().to_string());
    if inode.size() == 0 || inode.size() > u64::from(SYMLINK_MAXLEN) {
        return Err(failed("size", Rule::Range));
    }
    let size = usize::try_from(inode.size()).map_err(|_| failed("size", Rule::Range))?;
    let fork = inode.fork(ForkKind::Data)?.ok_or_else(|| failed("format", Rule::Mismatch))?;
    let target = match fork.form {
        ForkForm::Local(bytes) => bytes.to_vec(),
        ForkForm::Extents(_) => {
            let mut target = Vec::with_capacity(size);
            for extent in fork.extents(source) {
                let extent = extent?;
                if target.len() >= size {
                    break;
                }
                let pieces = [Piece { start: FsBlock(extent.startblock), count: extent.blockcount.min(most(source)) }];
                let block = read_pieces(source, BlockKind::Symlink, inode.ino, &pieces)?;
                piece(source, &block, size, &mut target)?;
            }
            target
        }
        ForkForm::Btree(_) | ForkForm::Device(_) | ForkForm::MetaBtree(_) => {
            return Err(failed("format", Rule::Mismatch));
        }
    };
    if target.len() < size {
        return Err(failed("size", Rule::Truncated));
    }
    if target.contains(&0) { Err(failed("target", Rule::Range)) } else { Ok(target) }
}

/// Filesystem blocks that the longest target can take, with a header in each.
fn most(source: &dyn BlockSource) -> u32 {
    SYMLINK_MAXLEN.div_ceil(source.geometry().blocksize) + 1
}

/// Appends what `block` has of a target of `size` bytes. Each extent has one header, in version 5.
fn piece(source: &dyn BlockSource, block: &Block, size: usize, target: &mut Vec<u8>) -> Result<()> {
    let failed = |field, rule| corrupt(Check::new("symlink", field, rule), &place_of(source, block), "");
    let left = size - target.len();
    if !source.geometry().features.has_crc() {
        target.extend_from_slice(&block.bytes()[..left.min(block.bytes().len())]);
        return Ok(());
    }
    demand_sound(block)?;
    let (header, bytes) = RawDsymlinkHdr::prefix(block.bytes()).ok_or_else(|| failed("magic", Rule::Truncated))?;
    let wanted = left.min(bytes.len());
    if usize::try_from(header.offset.get()).ok() != Some(target.len()) {
        return Err(failed("offset", Rule::Mismatch));
    }
    if usize::try_from(header.bytes.get()).ok() != Some(wanted) {
        return Err(failed("bytes", Rule::Mismatch));
    }
    target.extend_from_slice(&bytes[..wanted]);
    Ok(())
}
