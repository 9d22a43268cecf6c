//! How much log each kind of transaction reserves.
//!
//! Pure functions of the superblock's numbers, so that a formatter can ask before there is a superblock. The rules are
//! those of Linux `xfs_trans_resv.c`; what counts here is to get the very same numbers, since the kernel refuses a log
//! that is smaller than they ask for.

mod formulas;
mod inputs;
mod kinds;

pub(super) use formulas::{DA_DEPTH, Formulas, OP_HEADER, Purpose};
pub use inputs::ReservationInputs;
pub use kinds::{Reservation, Reservations};
