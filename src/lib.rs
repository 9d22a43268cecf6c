//! xfskit: an offline toolkit for XFS images and devices.
//!
//! The crate is layered; a module uses only what stands below it:
//!
//! | module | what it holds |
//! |---|---|
//! | [`cli`] | one file per tool: arguments to options to engine to report |
//! | [`mkfs`] | formatting: configuration, plan, write |
//! | [`info`] | describing a filesystem |
//! | [`db`] | looking into a filesystem: commands, field tables, navigation, print |
//! | [`files`] | files of an image that nothing mounts: list, read, extract, archive, who owns a block |
//! | [`populate`] | files for a new image: from a folder, a prototype file, archives |
//! | [`logprint`] | the journal as text and JSON |
//! | [`volume`] | what is done to an opened filesystem, in transactions: inodes, mappings, space, directories, attributes |
//! | [`transaction`] | changes in transactions: blocks newer in memory, deferred operations, checkpoints and write-back |
//! | [`image`] | the devices of a filesystem, opened to be read whatever state it is in |
//! | [`journal`] | reading the journal: head, tail, records, checkpoints, items |
//! | [`forms`] | walkers over raw blocks: inodes, forks, directories, attributes |
//! | [`btree`] | one engine for the btrees of XFS |
//! | [`buffer`] | blocks verified on read and stamped on write |
//! | [`device`] | the storage trait and its stack |
//! | [`readers`] | which kernels and GRUBs read which features, as data |
//! | [`geometry`] | validated geometry, features, kinds of address |
//! | [`mod@ondisk`] | every on-disk structure, declared once; no I/O |
//! | [`report`] | progress and warnings of long work, as data |
//! | [`error`] | the errors of the library, and where on disk they happened |

pub mod btree;
pub mod buffer;
pub mod cli;
pub mod db;
pub mod device;
pub mod error;
pub mod files;
pub mod forms;
pub mod geometry;
pub mod image;
pub mod info;
pub mod journal;
pub mod logprint;
pub mod metadump;
pub mod mkfs;
pub mod ondisk;
pub mod populate;
pub mod readers;
pub mod report;
pub mod transaction;
pub mod tree;
pub mod volume;
