//! Scans over whole filesystems: free space, fragmentation, owners of space, and what every block is used for.
//!
//! | file | what it holds |
//! |---|---|
//! | `blockget` | the scan of all groups, on all processors |
//! | `group`, `group_tree` | a group: its headers and btrees |
//! | `inode_chunk`, `inode`, `fork`, `file_map`, `special_files` | its inodes |
//! | `directory`, `dir_data`, `dir_index`, `dir_hashes` | the directories among them |
//! | `events` | what the scan of a part comes upon: claims of blocks, and messages |
//! | `board`, `page_map`, `palette` | claims noted as they come, as long as all fit together |
//! | `replay`, `run_map` | claims brought together in order, when some do not |
//! | `message`, `report` | what is said, as data |
//! | `freesp`, `histogram`, `freelist` | free space |
//! | `frag` | extents of files |
//! | `fsmap` | reverse mappings |
//! | `usage`, `block_type`, `name_table`, `names` | what is known afterwards |

mod block_type;
mod blockget;
mod board;
mod dir_data;
mod dir_hashes;
mod dir_index;
mod directory;
mod events;
mod file_map;
mod fork;
mod frag;
mod freelist;
mod freesp;
mod fsmap;
mod group;
mod group_tree;
mod histogram;
mod inode;
mod inode_chunk;
mod message;
mod name_table;
mod names;
mod options;
mod page_map;
mod palette;
mod reader;
mod replay;
mod report;
mod run_map;
mod special_files;
mod usage;

pub use block_type::BlockType;
pub use blockget::scan_usage;
pub use frag::{ExtentCount, FragOptions, Fragmentation, fragmentation};
pub use freesp::{FreeSpace, FreeSpaceOptions, free_space};
pub use fsmap::{SpaceOwners, realtime_owners, space_owners};
pub use histogram::{Buckets, Histogram, Tally};
pub use message::{Claimant, Links, Message, Space};
pub use name_table::{NameTable, NamedInode};
pub use options::ScanOptions;
pub use report::ScanReport;
pub use run_map::RunMap;
pub use usage::{BlockUsage, BlockUse};
