//! Formatting: configuration, plan, write.
