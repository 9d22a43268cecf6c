//! The byte order of whoever wrote a journal.

use crate::ondisk::OnDisk;
use crate::ondisk::log_record::{RawTransHeader, TRANS_HEADER_MAGIC, fmt};

/// Evaluates an expression that is generic over the byte order, for an [`Order`] known at run time.
macro_rules! in_order {
    ($order:expr, $name:ident => $body:expr) => {
        match $order {
            $crate::journal::Order::Little => {
                type $name = $crate::ondisk::LittleEndian;
                $body
            }
            $crate::journal::Order::Big => {
                type $name = $crate::ondisk::BigEndian;
                $body
            }
        }
    };
}
pub(in crate::journal) use in_order;

/// Byte order of a writer: that of items and transaction headers. Record and operation headers are always big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// x86, ARM, and most others.
    Little,
    /// s390x, IRIX, and others of old.
    Big,
}

impl Order {
    /// The order that a record header's `fmt` names.
    pub fn of_format(format: u32) -> Option<Self> {
        match format {
            fmt::LINUX_LE => Some(Order::Little),
            fmt::LINUX_BE | fmt::IRIX_BE => Some(Order::Big),
            _ => None,
        }
    }

    /// The order in which `header` has the magic number of a transaction header.
    pub fn of_transaction_header(header: &[u8]) -> Option<Self> {
        let magic = |order: Order| in_order!(order, O => RawTransHeader::<O>::prefix(header).map(|(header, _)| header.magic.get()));
        [Order::Little, Order::Big].into_iter().find(|&order| magic(order) == Some(TRANS_HEADER_MAGIC))
    }
}
