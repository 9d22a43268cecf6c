//! The [`ondisk!`](macro@crate::ondisk) declaration and the field tables that it makes.

use zerocopy::byteorder::{ByteOrder, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// One integer of this many bytes.
    Int(usize),
    /// Raw bytes.
    Bytes(usize),
    /// `count` elements of `size` bytes each.
    Array {
        /// Bytes of one element.
        size: usize,
        /// Number of elements.
        count: usize,
    },
    /// A structure with a table of its own.
    Struct(&'static [Field]),
}

/// One field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in the specification, without the structure's prefix.
    pub name: &'static str,
    /// Offset in bytes from the start of the structure.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// What it holds.
    pub kind: FieldKind,
}

/// A type that can be a field of an on-disk structure.
pub trait FieldType {
    /// What the field tables say of it.
    const KIND: FieldKind;
}

impl FieldType for u8 {
    const KIND: FieldKind = FieldKind::Int(1);
}
impl FieldType for i8 {
    const KIND: FieldKind = FieldKind::Int(1);
}
impl<O: ByteOrder> FieldType for U16<O> {
    const KIND: FieldKind = FieldKind::Int(2);
}
impl<O: ByteOrder> FieldType for U32<O> {
    const KIND: FieldKind = FieldKind::Int(4);
}
impl<O: ByteOrder> FieldType for U64<O> {
    const KIND: FieldKind = FieldKind::Int(8);
}
impl<T: FieldType, const N: usize> FieldType for [T; N] {
    const KIND: FieldKind = match T::KIND {
        FieldKind::Int(1) => FieldKind::Bytes(N),
        _ => FieldKind::Array { size: size_of::<T>(), count: N },
    };
}

/// A structure as it stands on disk.
pub trait OnDisk: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Sized {
    /// Name of the structure, as errors and the field tables use it.
    const NAME: &'static str;
    /// Its fields in order.
    const FIELDS: &'static [Field];
    /// Its size in bytes.
    const SIZE: usize = size_of::<Self>();

    /// The structure at the start of `bytes`, and what follows; `None` when `bytes` are too few.
    fn prefix(bytes: &[u8]) -> Option<(&Self, &[u8])> {
        Self::ref_from_prefix(bytes).ok()
    }

    /// `count` structures at the start of `bytes`, and what follows; `None` when `bytes` are too few.
    fn prefix_slice(bytes: &[u8], count: usize) -> Option<(&[Self], &[u8])> {
        <[Self]>::ref_from_prefix_with_elems(bytes, count).ok()
    }

    /// The structure at the start of `bytes` for change, and what follows; `None` when `bytes` are too few.
    fn prefix_mut(bytes: &mut [u8]) -> Option<(&mut Self, &mut [u8])> {
        Self::mut_from_prefix(bytes).ok()
    }
}

/// Declares an on-disk structure.
///
/// ```ignore
/// ondisk! {
///     /// What it is, and where the fact comes from.
///     pub struct RawThing("thing"): 12 {
///         /// The magic number.
///         0 => magic: Be32,
///         /// Blocks, in filesystem blocks.
///         4 => blocks: Be64,
///     }
/// }
/// ```
///
/// `"thing"` is the name used in errors and field tables, `12` the size in bytes; both sizes and the offsets are
/// asserted at compile time. With `pub struct RawThing<O>("thing")` the integers are of either byte order, as the
/// items of the journal are: write them `U32<O>`.
#[macro_export]
macro_rules! ondisk {
    (
        $(#[$meta:meta])*
        pub struct $name:ident($text:literal): $size:literal {
            $( $(#[$fmeta:meta])* $offset:literal => $field:ident: $ty:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[derive(::zerocopy::FromBytes, ::zerocopy::IntoBytes, ::zerocopy::KnownLayout, ::zerocopy::Immutable, ::zerocopy::Unaligned)]
        #[repr(C)]
        pub struct $name { $( $(#[$fmeta])* pub $field: $ty, )* }

        const _: () = {
            assert!(size_of::<$name>() == $size, concat!("size of ", stringify!($name)));
            $( assert!(::std::mem::offset_of!($name, $field) == $offset, concat!("offset of ", stringify!($field))); )*
        };

        impl $crate::ondisk::FieldType for $name {
            const KIND: $crate::ondisk::FieldKind =
                $crate::ondisk::FieldKind::Struct(<$name as $crate::ondisk::OnDisk>::FIELDS);
        }

        impl $crate::ondisk::OnDisk for $name {
            const NAME: &'static str = $text;
            const FIELDS: &'static [$crate::ondisk::Field] = &[ $( $crate::ondisk::Field {
                name: stringify!($field),
                offset: $offset,
                size: size_of::<$ty>(),
                kind: <$ty as $crate::ondisk::FieldType>::KIND,
            }, )* ];
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident<O>($text:literal): $size:literal {
            $( $(#[$fmeta:meta])* $offset:literal => $field:ident: $ty:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[derive(::zerocopy::FromBytes, ::zerocopy::IntoBytes, ::zerocopy::KnownLayout, ::zerocopy::Immutable, ::zerocopy::Unaligned)]
        #[repr(C)]
        pub struct $name<O: ::zerocopy::byteorder::ByteOrder> { $( $(#[$fmeta])* pub $field: $ty, )* }

        const _: () = {
            type Checked = $name<$crate::ondisk::BigEndian>;
            assert!(size_of::<Checked>() == $size, concat!("size of ", stringify!($name)));
            $( assert!(::std::mem::offset_of!(Checked, $field) == $offset, concat!("offset of ", stringify!($field))); )*
        };

        impl<O: ::zerocopy::byteorder::ByteOrder> $crate::ondisk::FieldType for $name<O> {
            const KIND: $crate::ondisk::FieldKind =
                $crate::ondisk::FieldKind::Struct(<$name<O> as $crate::ondisk::OnDisk>::FIELDS);
        }

        impl<O: ::zerocopy::byteorder::ByteOrder> $crate::ondisk::OnDisk for $name<O> {
            const NAME: &'static str = $text;
            const FIELDS: &'static [$crate::ondisk::Field] = &[ $( $crate::ondisk::Field {
                name: stringify!($field),
                offset: $offset,
                size: size_of::<$ty>(),
                kind: <$ty as $crate::ondisk::FieldType>::KIND,
            }, )* ];
        }
    };
}
