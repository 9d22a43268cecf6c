//! Files created, linked, moved, changed and removed: whole operations, each in its transactions and with the reservations
//! that Linux takes for them (`xfs_inode.c`, `xfs_iops.c`, `xfs_symlink.c`, `libxfs/xfs_dir2.c`).
//!
//! | file | what it holds |
//! |---|---|
//! | `volume` | a filesystem opened for such operations |
//! | `inode_change` | the parts of an inode that many operations change: times, link counts, owner |
//! | `create` | files, directories and symbolic links created, and links added |
//! | `remove` | links and directories removed, and what no link leads to any more freed |
//! | `rename` | links moved |
//! | `set_attributes` | owner, mode, times, attributes |
//! | `label` | the label |
//! | `contents` | contents written, cut, punched, shared |

mod contents;
mod create;
mod inode_change;
mod label;
mod remove;
mod rename;
mod set_attributes;
mod volume;

pub use create::NewFile;
pub use set_attributes::Properties;
pub use volume::Volume;
