//! Attributes added to the bytes of a leaf, taken out and changed (Linux `libxfs/xfs_attr_leaf.c`).
//!
//! Free ranges are computed from the entries, so that none is ever lost; the header gets the three longest.

use zerocopy::{FromZeros, IntoBytes};

use crate::error::{Check, Error, Result, Rule};
use crate::forms::encode::{AttrLeafBuilder, BlockOwner, Siblings};
use crate::geometry::Geometry;
use crate::ondisk::attr_leaf::{
    AttrLeaf, AttrLeafName, AttrLeafValue, RawAttr3LeafHdr, RawAttrLeafEntry, RawAttrLeafHdr, RawAttrLeafMap,
    header_len, local_len, put_name, remote_len,
};
use crate::ondisk::attr_short::{ATTR_INCOMPLETE, ATTR_LOCAL};
use crate::ondisk::{Be16, OnDisk};
use crate::volume::da_btree::{Leaves, NewLeaf};

/// Share of a leaf's bytes, in percent, below which it is looked at whether it can be merged with another.
const MERGE_BELOW: usize = 37;

type Checked<T> = std::result::Result<T, Check>;

const fn failed(field: &'static str, rule: Rule) -> Check {
    Check::new("attr_leaf", field, rule)
}

/// An attribute as it is put into a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewAttribute<'a> {
    pub(super) hash: u32,
    /// Namespace, and whether readers must not see it.
    pub(super) flags: u8,
    pub(super) name: AttrLeafName<'a>,
}

impl NewAttribute<'_> {
    /// Bytes that name and value take in the leaf.
    pub(super) fn len(&self) -> usize {
        name_len(&self.name)
    }

    fn flags(&self) -> u8 {
        let local = if matches!(self.name.value, AttrLeafValue::Local(_)) { ATTR_LOCAL } else { 0 };
        self.flags & !ATTR_LOCAL | local
    }
}

fn name_len(name: &AttrLeafName<'_>) -> usize {
    match name.value {
        AttrLeafValue::Local(value) => local_len(name.name.len(), value.len()),
        AttrLeafValue::Remote { .. } => remote_len(name.name.len()),
    }
}

/// Whether a value stands beside its name in a leaf of blocks of this size.
pub(super) fn is_local(geometry: &Geometry, namelen: usize, valuelen: usize) -> bool {
    let limit = usize::try_from(geometry.attributes.local_limit).unwrap_or(0);
    local_len(namelen, valuelen) < limit
}

/// The entries of a leaf, with what they point to, and its size.
struct Decoded<'a> {
    leaf: AttrLeaf<'a>,
    crc: bool,
    size: usize,
}

impl<'a> Decoded<'a> {
    fn new(block: &'a [u8], crc: bool) -> Checked<Self> {
        Ok(Decoded { leaf: AttrLeaf::decode(block, crc)?, crc, size: block.len() })
    }

    /// Where the table of entries ends.
    fn end(&self) -> usize {
        header_len(self.crc) + size_of_val(self.leaf.entries)
    }

    fn attributes(&self) -> impl Iterator<Item = Checked<(RawAttrLeafEntry, AttrLeafName<'a>)>> + '_ {
        self.leaf.entries.iter().map(|entry| Ok((*entry, self.leaf.name(entry)?)))
    }

    /// The bytes of names and values, as ranges in order of their places.
    fn used(&self) -> Checked<Vec<(usize, usize)>> {
        let ranges: Checked<Vec<_>> = self
            .attributes()
            .map(|attribute| attribute.map(|(entry, name)| (usize::from(entry.nameidx.get()), name_len(&name))))
            .collect();
        let mut ranges = ranges?;
        ranges.sort_unstable();
        if ranges.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
            return Err(failed("nameidx", Rule::Mismatch));
        }
        Ok(ranges)
    }

    /// What lies between them, the range behind the entries first.
    fn gaps(&self) -> Checked<Vec<(usize, usize)>> {
        let mut gaps = Vec::new();
        let mut at = self.end();
        for (start, len) in self.used()?.into_iter().chain([(self.size, 0)]) {
            if start > at || gaps.is_empty() {
                gaps.push((at, start.checked_sub(at).ok_or(failed("nameidx", Rule::Range))?));
            }
            at = start + len;
        }
        if at > self.size { Err(failed("nameidx", Rule::Range)) } else { Ok(gaps) }
    }
}

/// Brings the header up to date with the entries.
fn store_header(block: &mut [u8], crc: bool, count: usize) -> Checked<()> {
    let short = |value: usize| u16::try_from(value).map_err(|_| failed("count", Rule::Range));
    let count = Be16::new(short(count)?);
    let truncated = failed("hdr", Rule::Truncated);
    if crc {
        RawAttr3LeafHdr::prefix_mut(block).ok_or(truncated)?.0.count = count;
    } else {
        RawAttrLeafHdr::prefix_mut(block).ok_or(truncated)?.0.count = count;
    }
    let decoded = Decoded::new(block, crc)?;
    let used = decoded.used()?;
    let bytes: usize = used.iter().map(|range| range.1).sum();
    let first = used.first().map_or(decoded.size, |range| range.0);
    let mut gaps = decoded.gaps()?;
    gaps.retain(|gap| gap.1 > 0);
    let holes = u8::from(gaps.len() > 1);
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.1));
    let mut freemap = [RawAttrLeafMap::new_zeroed(); 3];
    for (slot, gap) in freemap.iter_mut().zip(&gaps) {
        *slot = RawAttrLeafMap { base: short(gap.0)?.into(), size: short(gap.1)?.into() };
    }
    let usedbytes = Be16::new(short(bytes)?);
    // 0 stands for the end of a block of 64 KiB
    let firstused = Be16::new(u16::try_from(first).unwrap_or(0));
    if crc {
        let head = RawAttr3LeafHdr::prefix_mut(block).ok_or(truncated)?.0;
        (head.usedbytes, head.firstused, head.holes, head.freemap) = (usedbytes, firstused, holes, freemap);
    } else {
        let head = RawAttrLeafHdr::prefix_mut(block).ok_or(truncated)?.0;
        (head.usedbytes, head.firstused, head.holes, head.freemap) = (usedbytes, firstused, holes, freemap);
    }
    Ok(())
}

/// Stores the table of entries, and brings the header up to date.
fn store_entries(block: &mut [u8], crc: bool, entries: &[RawAttrLeafEntry]) -> Checked<()> {
    let start = header_len(crc);
    let place = block.get_mut(start..start + size_of_val(entries)).ok_or(failed("count", Rule::Count))?;
    place.copy_from_slice(entries.as_bytes());
    store_header(block, crc, entries.len())
}

/// Adds an attribute. `false`, and nothing has changed, when there is no room for it.
pub(super) fn add(block: &mut Vec<u8>, crc: bool, new: &NewAttribute<'_>) -> Result<bool> {
    let broken = |check| Error::corrupt(check, Default::default());
    let Some(at) = find_room(block, crc, new.len()).map_err(broken)? else {
        let total: usize =
            Decoded::new(block, crc).and_then(|leaf| leaf.gaps()).map_err(broken)?.iter().map(|gap| gap.1).sum();
        if total < new.len() + RawAttrLeafEntry::SIZE {
            return Ok(false);
        }
        let mut compacted = compact(block, crc).map_err(broken)?;
        let Some(at) = find_room(&compacted, crc, new.len()).map_err(broken)? else { return Ok(false) };
        put(&mut compacted, crc, new, at).map_err(broken)?;
        *block = compacted;
        return Ok(true);
    };
    put(block, crc, new, at).map_err(broken)?;
    Ok(true)
}

/// Where a name of `len` bytes goes, with room for one more entry: at the end of the shortest range that holds it.
fn find_room(block: &[u8], crc: bool, len: usize) -> Checked<Option<usize>> {
    let mut gaps = Decoded::new(block, crc)?.gaps()?;
    let Some(rest) = gaps[0].1.checked_sub(RawAttrLeafEntry::SIZE) else { return Ok(None) };
    gaps[0] = (gaps[0].0 + RawAttrLeafEntry::SIZE, rest);
    let best = gaps.into_iter().filter(|gap| gap.1 >= len).min_by_key(|gap| gap.1);
    Ok(best.map(|(start, room)| start + room - len))
}

fn put(block: &mut [u8], crc: bool, new: &NewAttribute<'_>, at: usize) -> Checked<()> {
    let range = failed("nameidx", Rule::Range);
    put_name(block, at, &new.name).ok_or(range)?;
    let mut entries = Decoded::new(block, crc)?.leaf.entries.to_vec();
    let place = entries.partition_point(|entry| entry.hashval.get() < new.hash);
    let nameidx = u16::try_from(at).map_err(|_| range)?.into();
    entries.insert(place, RawAttrLeafEntry { hashval: new.hash.into(), nameidx, flags: new.flags(), pad2: 0 });
    store_entries(block, crc, &entries)
}

/// Takes out the attribute at `index`.
pub(super) fn remove(block: &mut [u8], crc: bool, index: usize) -> Checked<()> {
    let decoded = Decoded::new(block, crc)?;
    let mut entries = decoded.leaf.entries.to_vec();
    let entry = *entries.get(index).ok_or(failed("count", Rule::Range))?;
    let len = name_len(&decoded.leaf.name(&entry)?);
    let at = usize::from(entry.nameidx.get());
    entries.remove(index);
    block.get_mut(at..at + len).ok_or(failed("nameidx", Rule::Range))?.fill(0);
    store_entries(block, crc, &entries)
}

/// The names packed at the end of the block, and what is free behind the entries.
fn compact(block: &[u8], crc: bool) -> Checked<Vec<u8>> {
    let decoded = Decoded::new(block, crc)?;
    let mut packed = block.to_vec();
    let mut entries = Vec::with_capacity(decoded.leaf.entries.len());
    let mut at = block.len();
    packed[decoded.end()..].fill(0);
    for attribute in decoded.attributes() {
        let (mut entry, name) = attribute?;
        at = at.checked_sub(name_len(&name)).ok_or(failed("nameidx", Rule::Range))?;
        put_name(&mut packed, at, &name).ok_or(failed("nameidx", Rule::Range))?;
        entry.nameidx = u16::try_from(at).map_err(|_| failed("nameidx", Rule::Range))?.into();
        entries.push(entry);
    }
    store_entries(&mut packed, crc, &entries)?;
    Ok(packed)
}

/// Shows the attribute at `index` to readers; if its value is remote, the place is set.
pub(super) fn set_complete(block: &mut [u8], crc: bool, index: usize, remote: Option<(u32, u32)>) -> Checked<()> {
    change(block, crc, index, |flags| flags & !ATTR_INCOMPLETE, remote)
}

/// Hides the attribute at `index` from readers; a remote value has no place from now on.
pub(super) fn set_incomplete(block: &mut [u8], crc: bool, index: usize) -> Checked<()> {
    change(block, crc, index, |flags| flags | ATTR_INCOMPLETE, Some((0, 0)))
}

fn change(
    block: &mut [u8],
    crc: bool,
    index: usize,
    flags: impl FnOnce(u8) -> u8,
    remote: Option<(u32, u32)>,
) -> Checked<()> {
    let decoded = Decoded::new(block, crc)?;
    let mut entry = *decoded.leaf.entries.get(index).ok_or(failed("count", Rule::Range))?;
    let name = decoded.leaf.name(&entry)?;
    if let (AttrLeafValue::Remote { .. }, Some((valueblk, valuelen))) = (name.value, remote) {
        let bytes = name.name.to_vec();
        let name = AttrLeafName { name: &bytes, value: AttrLeafValue::Remote { valueblk, valuelen } };
        put_name(block, usize::from(entry.nameidx.get()), &name).ok_or(failed("nameidx", Rule::Range))?;
    }
    entry.flags = flags(entry.flags);
    let at = header_len(crc) + index * RawAttrLeafEntry::SIZE;
    block
        .get_mut(at..at + RawAttrLeafEntry::SIZE)
        .ok_or(failed("count", Rule::Count))?
        .copy_from_slice(entry.as_bytes());
    Ok(())
}

/// The leaves into which one is split that has no room for `new`: two, or three when the new one is large.
pub(super) fn split(
    geometry: &Geometry,
    owner: &BlockOwner,
    block: &[u8],
    new: &NewAttribute<'_>,
) -> Result<Vec<NewLeaf>> {
    let broken = |check| Error::corrupt(check, Default::default());
    let decoded = Decoded::new(block, owner.crc).map_err(broken)?;
    let mut all = Vec::with_capacity(decoded.leaf.entries.len() + 1);
    for attribute in decoded.attributes() {
        let (entry, name) = attribute.map_err(broken)?;
        all.push(NewAttribute { hash: entry.hashval.get(), flags: entry.flags, name });
    }
    let place = all.partition_point(|attribute| attribute.hash < new.hash);
    all.insert(place, *new);
    for cuts in cuts_of(&all, place) {
        let parts = cuts.windows(2).map(|cut| build(geometry, owner, &all[cut[0]..cut[1]]));
        if let Some(leaves) = parts.collect::<Option<Vec<_>>>() {
            return Ok(leaves);
        }
    }
    Err(Error::NoSpace("an attribute is larger than a leaf".to_owned()))
}

/// Ways to cut `all`: in two, the most even first, and in three around the new one.
fn cuts_of(all: &[NewAttribute<'_>], new: usize) -> Vec<Vec<usize>> {
    let lens: Vec<usize> = all.iter().map(|attribute| attribute.len() + RawAttrLeafEntry::SIZE).collect();
    let total: usize = lens.iter().sum();
    let mut before = 0;
    let mut ways: Vec<(usize, usize)> = Vec::with_capacity(all.len());
    for at in 1..all.len() {
        before += lens[at - 1];
        ways.push(((2 * before).abs_diff(total), at));
    }
    ways.sort_unstable();
    let mut cuts: Vec<Vec<usize>> = ways.into_iter().map(|(_, at)| vec![0, at, all.len()]).collect();
    let mut three = vec![0, new, new + 1, all.len()];
    three.dedup();
    cuts.push(three);
    cuts
}

fn build(geometry: &Geometry, owner: &BlockOwner, attributes: &[NewAttribute<'_>]) -> Option<NewLeaf> {
    let mut leaf = AttrLeafBuilder::new(geometry);
    for attribute in attributes {
        if !leaf.push(attribute.hash, attribute.flags & !ATTR_LOCAL, &attribute.name) {
            return None;
        }
    }
    let last_hash = leaf.last_hash()?;
    Some(NewLeaf { bytes: leaf.into_leaf(owner, Siblings::default()), last_hash })
}

/// Leaves below nodes.
pub(super) struct AttrLeaves<'g> {
    pub(super) geometry: &'g Geometry,
    pub(super) owner: BlockOwner,
}

impl AttrLeaves<'_> {
    fn decode<'a>(&self, leaf: &'a [u8]) -> Result<Decoded<'a>> {
        Decoded::new(leaf, self.owner.crc).map_err(|check| Error::corrupt(check, Default::default()))
    }

    /// Bytes of entries and names.
    fn bytes(&self, leaf: &[u8]) -> Result<usize> {
        let decoded = self.decode(leaf)?;
        let used = decoded.used().map_err(|check| Error::corrupt(check, Default::default()))?;
        Ok(size_of_val(decoded.leaf.entries) + used.iter().map(|range| range.1).sum::<usize>())
    }

    /// Whether there is so little in a leaf that it may be merged with another.
    pub(super) fn is_small(&self, leaf: &[u8]) -> Result<bool> {
        Ok(header_len(self.owner.crc) + self.bytes(leaf)? < leaf.len() * MERGE_BELOW / 100)
    }
}

impl Leaves for AttrLeaves<'_> {
    fn is_empty(&self, leaf: &[u8]) -> Result<bool> {
        Ok(self.decode(leaf)?.leaf.entries.is_empty())
    }

    fn is_sparse(&self, leaf: &[u8]) -> Result<bool> {
        Ok(header_len(self.owner.crc) + self.bytes(leaf)? <= leaf.len() / 2)
    }

    fn fit_in_one(&self, a: &[u8], b: &[u8]) -> Result<bool> {
        let used = header_len(self.owner.crc) + self.bytes(a)? + self.bytes(b)?;
        Ok(used <= a.len() - a.len() / 4)
    }

    fn merge(&self, first: &[u8], second: &[u8], into: &mut Vec<u8>) -> Result<()> {
        let broken = |check| Error::corrupt(check, Default::default());
        let mut all = Vec::new();
        let (first, second) = (self.decode(first)?, self.decode(second)?);
        for attribute in first.attributes().chain(second.attributes()) {
            let (entry, name) = attribute.map_err(broken)?;
            all.push(NewAttribute { hash: entry.hashval.get(), flags: entry.flags, name });
        }
        let merged = build(self.geometry, &self.owner, &all);
        let merged = merged.ok_or_else(|| Error::Internal("two leaves that fit in one".to_owned()))?;
        // the identity of the block stays; links, magic number and identity come before the count
        let head = if self.owner.crc {
            std::mem::offset_of!(RawAttr3LeafHdr, count)
        } else {
            std::mem::offset_of!(RawAttrLeafHdr, count)
        };
        into[head..].copy_from_slice(&merged.bytes[head..]);
        Ok(())
    }

    fn last_hash(&self, leaf: &[u8]) -> Result<u32> {
        Ok(self.decode(leaf)?.leaf.entries.last().map_or(0, |entry| entry.hashval.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Ino;
    use crate::geometry::samples::superblock;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Model = BTreeMap<Vec<u8>, (u8, Vec<u8>)>;

    fn read(block: &[u8]) -> Model {
        let leaf = AttrLeaf::decode(block, true).expect("decodes");
        assert_eq!(leaf.verify(), []);
        let all = leaf.entries.iter().map(|entry| {
            let name = leaf.name(entry).expect("sound");
            let AttrLeafValue::Local(value) = name.value else { panic!("no remote values here") };
            (name.name.to_vec(), (entry.flags & !ATTR_LOCAL, value.to_vec()))
        });
        all.collect()
    }

    proptest! {
        #[test]
        fn a_leaf_is_a_map(steps in prop::collection::vec((0_u32..3, 0_usize..40, 1_usize..30, 0_usize..400), 1..200)) {
            let geometry = Geometry::assume(&superblock("default"));
            let owner = BlockOwner::new(&geometry, Ino(131));
            let mut block = AttrLeafBuilder::new(&geometry).into_leaf(&owner, Siblings::default());
            let mut model = Model::new();
            for (action, pick, namelen, valuelen) in steps {
                let name: Vec<u8> = format!("{pick}").into_bytes().into_iter().cycle().take(namelen).collect();
                let value = vec![b'v'; valuelen];
                let hash = crate::ondisk::name_hash::hash_name(&name);
                let position = |block: &[u8]| {
                    let leaf = AttrLeaf::decode(block, true).expect("decodes");
                    leaf.entries.iter().position(|entry| leaf.name(entry).expect("sound").name == name)
                };
                match (action, model.contains_key(&name)) {
                    (0 | 1, false) => {
                        let new = NewAttribute {
                            hash,
                            flags: 0,
                            name: AttrLeafName { name: &name, value: AttrLeafValue::Local(&value) },
                        };
                        if add(&mut block, true, &new).expect("sound") {
                            model.insert(name.clone(), (0, value));
                        } else {
                            let mut wanted = model.clone();
                            wanted.insert(name.clone(), (0, value.clone()));
                            let halves = split(&geometry, &owner, &block, &new).expect("two leaves hold it");
                            let mut found = Model::new();
                            let mut last = 0;
                            for half in &halves {
                                let leaf = AttrLeaf::decode(&half.bytes, true).expect("decodes");
                                prop_assert!(leaf.entries[0].hashval.get() >= last);
                                last = half.last_hash;
                                found.append(&mut read(&half.bytes));
                            }
                            prop_assert_eq!(found, wanted);
                            let leaves = AttrLeaves { geometry: &geometry, owner };
                            prop_assert!(!leaves.fit_in_one(&halves[0].bytes, &halves[1].bytes).expect("sound"));
                        }
                    }
                    (0 | 1, true) => {
                        let at = position(&block).expect("is there");
                        set_incomplete(&mut block, true, at).expect("sound");
                        prop_assert_eq!(read(&block)[&name].0, ATTR_INCOMPLETE);
                        set_complete(&mut block, true, at, None).expect("sound");
                    }
                    (_, true) => {
                        let at = position(&block).expect("is there");
                        remove(&mut block, true, at).expect("sound");
                        model.remove(&name);
                    }
                    (_, false) => prop_assert_eq!(position(&block), None),
                }
                prop_assert_eq!(&read(&block), &model);
            }
        }
    }
}
