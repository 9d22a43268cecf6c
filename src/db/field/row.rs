//! The rows of a field table.

use super::format::Format;
use super::object::Object;
use crate::db::types::TypeId;

/// A place or a size in bits.
pub type Bits = usize;

/// Where a field lies, from the start of the structure that it is in.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Here; the elements of an array follow each other.
    At(Bits),
    /// Where the function says: of the object, the start of the structure, and the index of the element.
    Computed(fn(&Object<'_>, Bits, usize) -> Bits),
}

/// How many elements a field has. A field that has none is not there.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// So many.
    Fixed(usize),
    /// As many as the function says: of the object and the start of the structure.
    Computed(fn(&Object<'_>, Bits) -> usize),
}

/// A field.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What it holds, or each of its elements.
    pub format: Format,
    /// Where it lies.
    pub place: Place,
    /// How many elements it has.
    pub count: Count,
    /// The index of the first element of an array; `None` for what is not one.
    pub base: Option<usize>,
    /// Whether it is shown only when it is named.
    pub hidden: bool,
    /// What the block is taken for that `addr` leads to.
    pub next: Option<TypeId>,
}

impl Row {
    /// One field at `place`.
    pub const fn new(name: &'static str, place: Bits, format: Format) -> Self {
        Row { name, format, place: Place::At(place), count: Count::Fixed(1), base: None, hidden: false, next: None }
    }

    /// One field whose place is computed.
    pub const fn computed(name: &'static str, place: fn(&Object<'_>, Bits, usize) -> Bits, format: Format) -> Self {
        Row { place: Place::Computed(place), ..Row::new(name, 0, format) }
    }

    /// The same with so many elements, without being an array: characters.
    #[must_use]
    pub const fn times(mut self, count: usize) -> Self {
        self.count = Count::Fixed(count);
        self
    }

    /// The same with as many elements as the function says; 0 or 1 for a field that may not be there.
    #[must_use]
    pub const fn counted(mut self, count: fn(&Object<'_>, Bits) -> usize) -> Self {
        self.count = Count::Computed(count);
        self
    }

    /// The same as an array whose first index is 0.
    #[must_use]
    pub const fn array(mut self) -> Self {
        self.base = Some(0);
        self
    }

    /// The same as an array whose first index is 1.
    #[must_use]
    pub const fn array_from_one(mut self) -> Self {
        self.base = Some(1);
        self
    }

    /// The same, shown only when it is named.
    #[must_use]
    pub const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// The same, leading to a block of this type.
    #[must_use]
    pub const fn leads_to(mut self, next: TypeId) -> Self {
        self.next = Some(next);
        self
    }

    /// How many elements it has in the structure at `start`; never more than the object has bits.
    pub fn count(&self, object: &Object<'_>, start: Bits) -> usize {
        let count = match self.count {
            Count::Fixed(count) => count,
            Count::Computed(count) => count(object, start),
        };
        count.min(object.bits())
    }

    /// Where element `index` lies in the structure at `start`, from the start of the object.
    pub fn offset(&self, object: &Object<'_>, start: Bits, index: usize) -> Bits {
        let within = match self.place {
            Place::At(place) => {
                let before = self.base.map_or(0, |base| index.saturating_sub(base));
                place.saturating_add(before.saturating_mul(self.size(object, start, index)))
            }
            Place::Computed(place) => place(object, start, index),
        };
        start.saturating_add(within)
    }

    /// Size of element `index`.
    pub fn size(&self, object: &Object<'_>, start: Bits, index: usize) -> Bits {
        self.format.size(object, start, index)
    }
}

/// The place of a field in bits, taken from the declaration of its structure: `at!(RawAgf, magic)`.
macro_rules! at {
    ($structure:ty, $($field:ident).+) => {
        ::std::mem::offset_of!($structure, $($field).+) * 8
    };
}

pub(in crate::db) use at;
