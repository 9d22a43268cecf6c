//! `xfskit-mkfs` against outside judges: mkfs.xfs 7.2 for every byte, `xfs_repair -n`, this machine's kernel, and guests
//! with other kernels. `tests/oracle/setup` installs them; the argument sets are data in `tests/oracle/mkfs`.
//!
//! | variable | meaning |
//! |---|---|
//! | `XFSKIT_FULL=1` | every set instead of a fixed share |
//! | `XFSKIT_SETS=A,B` | only sets whose name contains one of these; `=NAME` is a whole name |
//! | `XFSKIT_REPORT=FOLDER` | what failed is also written there, one file a test |
//! | `XFSKIT_MKFS=PATH` | the binary to test instead of the one Cargo has built |
//! | `XFSKIT_ORACLE=FOLDER` | where the references lie, default `~/.cache/xfskit-oracle` |
//! | `XFSKIT_WORK=FOLDER` | where images are made, default the folder for temporary files |
//! | `CI=true` | a missing reference is an error, not a skipped test |

#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[path = "oracle/compare.rs"]
mod compare;
#[path = "oracle/damage.rs"]
mod damage;
#[path = "oracle/fields.rs"]
mod fields;
#[path = "oracle/format.rs"]
mod format;
#[path = "oracle/guest.rs"]
mod guest;
#[path = "oracle/host_kernel.rs"]
mod host_kernel;
#[path = "oracle/matrix.rs"]
mod matrix;
#[path = "oracle/place.rs"]
mod place;
#[path = "oracle/printed.rs"]
mod printed;
#[path = "oracle/reference.rs"]
#[allow(dead_code, reason = "other tests use other parts of it")]
mod reference;
#[path = "oracle/refusal.rs"]
mod refusal;
#[path = "oracle/sets.rs"]
mod sets;
#[path = "oracle/striped.rs"]
mod striped;
#[path = "oracle/tally.rs"]
mod tally;
