//! One engine for the btrees of XFS.
