//! Fields as values: what text, JSON and setting have in common.

use uuid::Uuid;

use super::object::Object;
use super::row::Bits;
use crate::ondisk::dquot::dqtype;
use crate::ondisk::timestamp::quota_timer_to_unix;
use crate::ondisk::{Be64, RawDinode, RawDiskDquot, Timestamp};

/// A number and the name that it has.
pub(super) struct NamedValue {
    pub(super) value: i64,
    pub(super) name: Option<&'static str>,
}

impl NamedValue {
    pub(super) fn of(names: &[&'static str], number: u64, _size: Bits) -> Self {
        let name = usize::try_from(number).ok().and_then(|index| names.get(index).copied());
        NamedValue { value: i64::try_from(number).unwrap_or(i64::MAX), name }
    }
}

/// The number of `size` bits as one with a sign.
pub(super) fn signed(value: u64, size: Bits) -> i64 {
    let unused = u32::try_from(64_usize.saturating_sub(size)).unwrap_or(0).min(63);
    (value << unused).cast_signed() >> unused
}

/// The UUID at `bit`; of zeroes where the bytes end before it.
pub(super) fn uuid(object: &Object<'_>, bit: Bits) -> Uuid {
    let bytes = object.from(bit).first_chunk::<16>().copied().unwrap_or_default();
    Uuid::from_bytes(bytes)
}

/// Whether the object is an inode whose timestamps have the bigtime form.
pub(super) fn is_bigtime_inode(object: &Object<'_>) -> bool {
    object.structure::<RawDinode>(0).is_some_and(RawDinode::has_bigtime)
}

/// The timestamp at `bit` of an inode.
pub(super) fn inode_time(object: &Object<'_>, bit: Bits) -> Timestamp {
    let raw = Be64::new(object.number(bit, 64).unwrap_or(0));
    Timestamp::decode(raw, is_bigtime_inode(object))
}

/// Whether the object is a quota record whose timers have the bigtime form.
pub(super) fn is_bigtime_dquot(object: &Object<'_>) -> bool {
    object.structure::<RawDiskDquot>(0).is_some_and(|dquot| dquot.dqtype & dqtype::BIGTIME != 0)
}

/// The timer at `bit` of a quota record in seconds, and whether it is a length of time (or none) instead of a date: in the
/// record of id 0 it is.
pub(super) fn quota_timer(object: &Object<'_>, bit: Bits) -> (u64, bool) {
    let raw = u32::try_from(object.number(bit, 32).unwrap_or(0)).unwrap_or(u32::MAX);
    let root = object.structure::<RawDiskDquot>(0).is_some_and(|dquot| dquot.id.get() == 0);
    // the defaults are lengths of time, which have no other unit
    let seconds = quota_timer_to_unix(raw, is_bigtime_dquot(object));
    (seconds, root || seconds == 0)
}
