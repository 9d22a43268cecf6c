//! The blocks of directories, attributes and symbolic links, from what is to be in them: the counterpart of the readers.
//!
//! All of it is computation over bytes. A block is made without its address, since what is in it decides how many blocks
//! there are; [`BlockOwner::seal`] then stores address and CRC.
//!
//! | file | what it makes |
//! |---|---|
//! | `owner` | what version 5 blocks say of themselves |
//! | `dir_data` | blocks of directory entries |
//! | `dir_index` | leaves, and the index of free space |
//! | `da_node` | nodes over the leaves of directories and attributes |
//! | `attr_leaf` | attribute leaves |
//! | `remote` | values and targets in blocks of their own |
//! | `fork_offset` | where the attribute fork of an inode begins |

mod attr_leaf;
mod da_node;
mod dir_data;
mod dir_index;
mod fork_offset;
mod owner;
mod remote;
#[cfg(test)]
mod tests;

pub use attr_leaf::AttrLeafBuilder;
pub use da_node::encode_da_node;
pub use dir_data::DirDataBuilder;
pub use dir_index::{encode_dir_free, encode_dir_leaf, encode_only_dir_leaf, fits_only_leaf};
pub use fork_offset::{DataForkSize, block_attr_fork_offset, root_in_inode_len, short_attr_fork_offset};
pub use owner::{BlockOwner, Header, Siblings};
pub use remote::{encode_attr_value, encode_symlink_target};
