//! The free list of a group: a ring of blocks.

use crate::ondisk::{Be32, RawAgf};

/// The blocks of the free list that `agf` describes, in order; `None` when its ends lie outside of `entries`. A list of
/// no blocks is empty whatever its ends are.
pub(super) fn entries_of<'a>(agf: &RawAgf, entries: &'a [Be32]) -> Option<impl Iterator<Item = u32> + use<'a>> {
    let index = |value: Be32| usize::try_from(value.get()).ok().filter(|&index| index < entries.len());
    let (first, last) = (index(agf.flfirst)?, index(agf.fllast)?);
    let count = if agf.flcount.get() == 0 {
        0
    } else if last >= first {
        last - first + 1
    } else {
        entries.len() - first + last + 1
    };
    Some(entries.iter().cycle().skip(first).take(count).map(|entry| entry.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn the_list_is_a_ring() {
        let entries: Vec<Be32> = (10..16).map(Be32::new).collect();
        let mut agf = RawAgf::new_zeroed();
        let list = |agf: &RawAgf| entries_of(agf, &entries).map(|list| list.collect::<Vec<_>>());
        assert_eq!(list(&agf), Some(vec![]));
        (agf.flfirst, agf.fllast, agf.flcount) = (1.into(), 2.into(), 9.into());
        assert_eq!(list(&agf), Some(vec![11, 12]));
        (agf.flfirst, agf.fllast) = (4.into(), 1.into());
        assert_eq!(list(&agf), Some(vec![14, 15, 10, 11]));
        agf.fllast = 6.into();
        assert_eq!(list(&agf), None);
    }
}
