//! Walkers over raw blocks: one parser of every structure.
