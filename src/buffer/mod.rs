//! Blocks verified on read and stamped on write.
