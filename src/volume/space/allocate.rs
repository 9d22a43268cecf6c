//! An extent chosen and taken (Linux `xfs_alloc_vextent_*`).

use super::fix_up::{Need, for_allocation};
use super::free_extents;
use super::hold::pay;
use super::request::{AllocationRequest, Purpose, Target};
use super::reverse;
use super::search::{Choice, Search, Wish};
use crate::error::{Error, Result};
use crate::geometry::{AgBlock, AgNumber, FsBlock, Geometry};
use crate::transaction::Transaction;

/// How a group is searched.
#[derive(Clone, Copy)]
enum Manner {
    Exact(u32),
    Near(u32),
    BySize,
}

/// Allocates one extent: first block and length. `None` when there is none of the kind that is asked for; then nothing but
/// free lists may have changed, and other wishes can be tried.
///
/// The blocks come out of those that the transaction has reserved, or out of those that the group holds for its btrees.
/// Blocks that were freed since the journal was last pushed are left out, so that there may be room after a push.
///
/// # Errors
/// `Corrupt` when the group is damaged; `Io`; `Usage` when the request contradicts itself.
pub fn allocate(tx: &mut Transaction<'_>, request: &AllocationRequest) -> Result<Option<(FsBlock, u32)>> {
    let geometry = tx.store().geometry();
    let places = places(geometry, request)?;
    let sound = request.min > 0
        && request.min <= request.max
        && request.min <= geometry.agblocks
        && request.modulo < request.multiple.max(1);
    if !sound {
        return Err(Error::Usage(format!("an allocation that contradicts itself: {request:?}")));
    }
    for (agno, manner) in places {
        if let Some(taken) = allocate_in(tx, agno, manner, request)? {
            return settle(tx, agno, request, &taken).map(Some);
        }
    }
    Ok(None)
}

/// The groups that are searched, in order.
fn places(geometry: &Geometry, request: &AllocationRequest) -> Result<Vec<(AgNumber, Manner)>> {
    let outside = || Error::Usage(format!("there is no place {:?}", request.target));
    let parts = |block: FsBlock| geometry.fsb_parts(block).ok_or_else(outside);
    Ok(match request.target {
        Target::Exact(block) => parts(block).map(|(agno, agbno)| vec![(agno, Manner::Exact(agbno.0))])?,
        Target::Near(block) => parts(block).map(|(agno, agbno)| vec![(agno, Manner::Near(agbno.0))])?,
        Target::InGroup(agno) if agno.0 < geometry.agcount => vec![(agno, Manner::BySize)],
        Target::InGroup(_) => return Err(outside()),
        Target::StartingAt(block) => {
            let (start, agbno) = parts(block)?;
            let first = if agbno.0 == 0 { Manner::BySize } else { Manner::Near(agbno.0) };
            let others = (start.0 + 1..geometry.agcount).chain(0..start.0);
            let others = others.map(|agno| (AgNumber(agno), Manner::BySize));
            std::iter::once((start, first)).chain(others).collect()
        }
    })
}

fn allocate_in(
    tx: &mut Transaction<'_>,
    agno: AgNumber,
    manner: Manner,
    request: &AllocationRequest,
) -> Result<Option<Choice>> {
    let need = Need {
        min: request.min,
        align: request.align.max(1),
        align_slop: request.align_slop,
        min_left: request.min_left,
        total: request.total,
        purpose: request.purpose,
    };
    let Some(most) = for_allocation(tx, agno, &need)? else { return Ok(None) };
    let last = AgBlock(tx.store().geometry().agblocks - 1);
    let (low, high) = request.range.unwrap_or((AgBlock(0), last));
    let mut wish = Wish {
        min: request.min,
        max: request.max.min(most).max(request.min),
        align: request.align.max(1),
        multiple: request.multiple.max(1),
        modulo: request.modulo,
        range: (low.0.min(last.0), high.0.min(last.0)),
        user_data: request.purpose == Purpose::UserData,
        avoid_busy: true,
    };
    let search = |tx: &Transaction<'_>, wish| {
        let search = Search::new(tx, agno, wish)?;
        match manner {
            Manner::Exact(start) => search.exact(start),
            Manner::Near(target) => search.near(target),
            Manner::BySize => search.by_size(),
        }
    };
    let mut found = search(tx, wish)?;
    if found.choice.is_none() && found.busy && request.purpose != Purpose::UserData {
        // metadata is not written to its place before the journal holds what freed the blocks
        wish.avoid_busy = false;
        found = search(tx, wish)?;
    }
    if let Some(choice) = &found.choice {
        free_extents::take(tx, agno, choice)?;
    }
    Ok(found.choice)
}

/// Notes the owner, and pays.
fn settle(
    tx: &mut Transaction<'_>,
    agno: AgNumber,
    request: &AllocationRequest,
    taken: &Choice,
) -> Result<(FsBlock, u32)> {
    let start = AgBlock(taken.start);
    if !request.owner.is_skip() && tx.store().geometry().features.has_rmapbt() {
        reverse::add(tx, agno, start, taken.len, &request.owner, false)?;
    }
    free_extents::count(tx, agno, -i64::from(taken.len))?;
    pay(tx, agno, request.purpose, taken.len)?;
    let block = tx.store().geometry().fsb(agno, start);
    Ok((block.ok_or_else(|| Error::Internal("a block in no group".to_owned()))?, taken.len))
}
