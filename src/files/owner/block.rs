//! Which block is meant.

use crate::geometry::{AgBlock, AgNumber, Daddr, FsBlock, Geometry, RgBlock, RgNumber, RtBlock};

/// A block of the filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockAddress {
    /// Of the data device: its group, and the block in that.
    Data(AgNumber, AgBlock),
    /// Of the realtime section.
    Realtime(RtBlock),
}

impl BlockAddress {
    /// The block that `text` names: `N` or `fsb:N`, a filesystem block as XFS numbers it; `GROUP/N`, a block of a group;
    /// `daddr:N`, the block that holds this unit of 512 bytes of the data device; `byte:N`, the one that holds this byte;
    /// `rt:N` and `rt:GROUP/N`, a block of the realtime section. `None` where there is none.
    pub fn parse(geometry: &Geometry, text: &str) -> Option<Self> {
        let data = |parts: Option<(AgNumber, AgBlock)>| parts.map(|(agno, agbno)| BlockAddress::Data(agno, agbno));
        let (kind, value) = text.split_once(':').unwrap_or(("fsb", text));
        match (kind, value.split_once('/')) {
            ("fsb", Some((group, block))) => {
                let (agno, agbno) = (AgNumber(small(group)?), AgBlock(small(block)?));
                data(geometry.fsb(agno, agbno).map(|_| (agno, agbno)))
            }
            ("fsb", None) => data(geometry.fsb_parts(FsBlock(number(value)?))),
            ("daddr", None) => data(geometry.daddr_parts(Daddr(number(value)?))),
            ("byte", None) => data(geometry.daddr_parts(Daddr(number(value)? >> 9))),
            ("rt", Some((group, block))) => {
                geometry.rtb(RgNumber(small(group)?), RgBlock(small(block)?)).map(BlockAddress::Realtime)
            }
            ("rt", None) => {
                let rtb = RtBlock(number(value)?);
                geometry.rtb_extent(rtb).map(|_| BlockAddress::Realtime(rtb))
            }
            _ => None,
        }
    }
}

/// A number, decimal or hexadecimal.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn small(text: &str) -> Option<u32> {
    u32::try_from(number(text)?).ok()
}
