//! The hash btree over the leaves of a large directory, as far as it is kept beside the blocks.

/// Root of the hash btree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// The only leaf is the root.
    Leaf,
    /// A node over the leaves.
    Node,
}
