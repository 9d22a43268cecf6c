//! Going where a field leads.

use super::print;
use crate::db::field::{Expression, Node, Target, find};
use crate::db::session::Session;
use crate::db::types::{Body, TypeId, body};
use crate::error::{Error, Result};
use crate::forms::ForkKind;
use crate::geometry::{AgBlock, AgIno, Daddr, FileBlock, FsBlock, Ino, RtBlock};

/// Goes to what stands at the address in a field.
///
/// # Errors
/// `Usage` when the field is none, or leads nowhere; else those of reading.
pub(super) fn follow(session: &mut Session, text: &str) -> Result<()> {
    let position = session.require_position()?;
    let object = print::object(position, session.geometry());
    let Some(Body::Fields(format)) = body(position.ty, session.family()) else {
        return Err(Error::Usage("the current block has no fields".to_owned()));
    };
    let expression = Expression::parse(text)?;
    let nodes = find(format.rows().unwrap_or_default(), &expression, &object, 0)?;
    let node = single(&nodes).ok_or_else(|| Error::Usage(format!("{text} stands for more than one field")))?;
    let leads_nowhere = || Error::Usage(format!("{text} leads nowhere"));
    let target = node.row.format.target.ok_or_else(leads_nowhere)?;
    let next = node.row.next.ok_or_else(leads_nowhere)?;
    let size = node.size(&object);
    let value = object.number(node.offset, size).ok_or_else(leads_nowhere)?;
    let null = value == if size >= 64 { u64::MAX } else { (1 << size) - 1 };
    let next = match next {
        TypeId::Inodata => {
            let inode = session.open_inode()?;
            session.data_type(&inode).ok_or_else(leads_nowhere)?
        }
        other => other,
    };
    if null || (value == 0 && matches!(target, Target::DirBlock | Target::AttrBlock)) {
        return Err(Error::Usage(format!("{text} is null")));
    }
    go(session, target, value, next)
}

/// The only field of a tree without ranges.
fn single(nodes: &[Node]) -> Option<&Node> {
    let [node] = nodes else { return None };
    match node.children.as_slice() {
        [] => node.range.is_none_or(|(low, high)| low >= high).then_some(node),
        children => single(children),
    }
}

fn go(session: &mut Session, target: Target, value: u64, next: TypeId) -> Result<()> {
    let outside = || Error::Usage(format!("address {value} lies outside of the filesystem"));
    let blocks = if next == TypeId::Dir2 { session.geometry().directory.fsbcount } else { 1 };
    let group =
        || session.agno.ok_or_else(|| Error::Usage("there is no current group; agf and others set one".to_owned()));
    let small = || u32::try_from(value).map_err(|_| outside());
    let geometry = session.geometry();
    match target {
        Target::AgBlock => {
            let daddr = geometry.ag_daddr(group()?, AgBlock(small()?)).ok_or_else(outside)?;
            session.go(next, daddr, session.basic_blocks(1))
        }
        Target::AgIno => {
            let ino = geometry.ino(group()?, AgIno(small()?)).ok_or_else(outside)?;
            session.go_to_inode(ino)
        }
        Target::FsBlock => {
            let daddr = geometry.fsb_daddr(FsBlock(value)).ok_or_else(outside)?;
            session.go(next, daddr, session.basic_blocks(blocks))
        }
        Target::DataBlock => {
            let daddr = geometry.blocks_to_basic_blocks(value).map(Daddr).ok_or_else(outside)?;
            session.go(next, daddr, session.basic_blocks(1))
        }
        Target::RtBlock => {
            let daddr = geometry.rtb_daddr(RtBlock(value)).ok_or_else(outside)?;
            session.go_realtime(next, daddr, session.basic_blocks(1))
        }
        Target::DataFork | Target::DirBlock => session.go_to_file_block(ForkKind::Data, FileBlock(value), next),
        Target::AttrFork | Target::AttrBlock => session.go_to_file_block(ForkKind::Attr, FileBlock(value), next),
        Target::Ino => session.go_to_inode(Ino(value)),
    }
}
