//! What a field holds, and how it is shown and set.

use super::object::Object;
use super::row::{Bits, Row};

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radix {
    /// `12`.
    Decimal,
    /// `0xc`; zero is `0`.
    Hexadecimal,
    /// `014`; zero is `0`.
    Octal,
}

/// What a number of only ones means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Null {
    /// Itself.
    Number,
    /// Nothing: `null`.
    Word,
    /// Nothing: it is left out of a list.
    LeftOut,
}

/// The form of a field's elements.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A number.
    Number {
        /// How it is written.
        radix: Radix,
        /// Whether it may be negative.
        signed: bool,
        /// What only ones mean.
        null: Null,
        /// Whether zeroes are left out of a list.
        skip_zero: bool,
    },
    /// Characters, together a string in quotes.
    Characters,
    /// A UUID.
    Uuid,
    /// The seconds of an inode's timestamp, as a date.
    Time,
    /// The nanoseconds of the same.
    Nanoseconds,
    /// The end of a grace period in a quota record.
    QuotaTimer,
    /// A CRC, with what is known about it.
    Crc,
    /// A number that has a name: the names from 0 on.
    Named(&'static [&'static str]),
    /// Small structures, each shown in brackets on a line of its own.
    Records(&'static [Row]),
    /// A structure, whose fields are shown one by one.
    Structure(&'static [Row]),
}

/// Size of an element.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// Always this.
    Bits(Bits),
    /// What the function says: of the object, the start of the structure that the field is in, the index of the element.
    Computed(fn(&Object<'_>, Bits, usize) -> Bits),
}

/// What a number is the address of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A block of the current allocation group.
    AgBlock,
    /// An inode of the current allocation group.
    AgIno,
    /// A filesystem block; a directory block where the row leads to one.
    FsBlock,
    /// A block of the data device, counted from its start.
    DataBlock,
    /// A realtime block.
    RtBlock,
    /// A block of the current inode's data fork; a directory block where the row leads to one.
    DataFork,
    /// A block of the current inode's attribute fork.
    AttrFork,
    /// A block of the current directory; 0 is none.
    DirBlock,
    /// A block of the current attribute fork; 0 is none.
    AttrBlock,
    /// An inode.
    Ino,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Its form.
    pub shape: Shape,
    /// Size of an element.
    pub size: Size,
    /// What it is the address of.
    pub target: Option<Target>,
    /// Whether a structure of which no field is there is shown as `(empty)`.
    pub may_be_empty: bool,
}

impl Format {
    const fn of(shape: Shape, size: Size) -> Self {
        Format { shape, size, target: None, may_be_empty: false }
    }

    /// A number of so many bits.
    pub const fn number(bits: Bits, radix: Radix) -> Self {
        let shape = Shape::Number { radix, signed: false, null: Null::Number, skip_zero: false };
        Format::of(shape, Size::Bits(bits))
    }

    /// A decimal number of so many bits.
    pub const fn decimal(bits: Bits) -> Self {
        Format::number(bits, Radix::Decimal)
    }

    /// A hexadecimal number of so many bits.
    pub const fn hexadecimal(bits: Bits) -> Self {
        Format::number(bits, Radix::Hexadecimal)
    }

    /// A decimal number of so many bits that may be negative.
    pub const fn signed(bits: Bits) -> Self {
        let shape = Shape::Number { radix: Radix::Decimal, signed: true, null: Null::Number, skip_zero: false };
        Format::of(shape, Size::Bits(bits))
    }

    /// A decimal number of so many bits; only ones are `null`.
    pub const fn nullable(bits: Bits) -> Self {
        let shape = Shape::Number { radix: Radix::Decimal, signed: false, null: Null::Word, skip_zero: false };
        Format::of(shape, Size::Bits(bits))
    }

    /// What has this form and no other property, in so many bits.
    pub const fn shaped(shape: Shape, bits: Bits) -> Self {
        Format::of(shape, Size::Bits(bits))
    }

    /// A structure of these fields and so many bits.
    pub const fn structure(rows: &'static [Row], bits: Bits) -> Self {
        Format::of(Shape::Structure(rows), Size::Bits(bits))
    }

    /// A structure of these fields, whose size is computed.
    pub const fn structure_sized(rows: &'static [Row], size: fn(&Object<'_>, Bits, usize) -> Bits) -> Self {
        Format::of(Shape::Structure(rows), Size::Computed(size))
    }

    /// Records of these fields and so many bits each.
    pub const fn records(rows: &'static [Row], bits: Bits) -> Self {
        Format::of(Shape::Records(rows), Size::Bits(bits))
    }

    /// The same with zeroes left out.
    #[must_use]
    pub const fn without_zeroes(mut self) -> Self {
        if let Shape::Number { radix, signed, null, .. } = self.shape {
            self.shape = Shape::Number { radix, signed, null, skip_zero: true };
        }
        self
    }

    /// The same with numbers of only ones left out.
    #[must_use]
    pub const fn without_nulls(mut self) -> Self {
        if let Shape::Number { radix, signed, skip_zero, .. } = self.shape {
            self.shape = Shape::Number { radix, signed, null: Null::LeftOut, skip_zero };
        }
        self
    }

    /// The same as an address.
    #[must_use]
    pub const fn addressing(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// The same, shown as `(empty)` where none of its fields is there.
    #[must_use]
    pub const fn or_empty(mut self) -> Self {
        self.may_be_empty = true;
        self
    }

    /// Size of element `index` of a field in the structure at `start`.
    pub fn size(&self, object: &Object<'_>, start: Bits, index: usize) -> Bits {
        match self.size {
            Size::Bits(bits) => bits,
            Size::Computed(size) => size(object, start, index),
        }
    }

    /// The fields of a structure or a record.
    pub fn rows(&self) -> Option<&'static [Row]> {
        match self.shape {
            Shape::Records(rows) | Shape::Structure(rows) => Some(rows),
            _ => None,
        }
    }
}
