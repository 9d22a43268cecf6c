//! Files into a filesystem that was just made and lacks nothing but its primary superblock.
//!
//! Data are laid out while the source is read, contiguously and spread over the groups. When the tree is complete, each file gets
//! its inode, near the data of its folder; folders, attributes and lists of extents are built in their final form; and the
//! btrees of every group are loaded from sorted records. The primary superblock is written last.
//!
//! | file | what it holds |
//! |---|---|
//! | `builder` | the sink that takes data, and what the image is while it is built |
//! | `group`, `free_space`, `space` | what is free, and who gets it |
//! | `stored` | where data lie |
//! | `inodes`, `numbering` | chunks of inodes, and which file gets which |
//! | `file`, `fork`, `dinode` | a file: the forms that fit, its extents, its inode |
//! | `directory`, `attributes`, `hash_tree`, `file_blocks` | blocks of folders and attributes |
//! | `trees`, `finish` | the groups, and the end |
//! | `output` | writes, neighbours together |

mod attributes;
mod builder;
mod dinode;
mod directory;
mod file;
mod file_blocks;
mod finish;
mod fork;
mod free_space;
mod group;
mod hash_tree;
mod inodes;
mod numbering;
mod output;
mod space;
mod stored;
mod trees;

pub use builder::{BuildOptions, Builder, Summary};
