//! What is known about the CRC of a block.

/// What is known about the CRC of the block under the current position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrcState {
    /// Blocks of this type have none, or it was not looked at.
    #[default]
    Unchecked,
    /// It is not that of the contents.
    Bad,
    /// It is that of the contents.
    Correct,
}

impl CrcState {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            CrcState::Unchecked => "unchecked",
            CrcState::Bad => "bad",
            CrcState::Correct => "correct",
        }
    }
}
