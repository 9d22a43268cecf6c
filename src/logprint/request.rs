//! What is to be shown.

/// How the journal is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Record by record, the whole log.
    #[default]
    Records,
    /// Checkpoint by checkpoint, what a replay would see.
    Checkpoints,
    /// Where records begin and cycles change, block by block.
    Headers,
    /// The bytes of each block.
    Blocks,
    /// Intents, and what became of them.
    Intents,
    /// Sums over all of it.
    Summary,
}

/// What of the items' contents is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// What buffers hold, by fields.
    pub buffers: bool,
    /// The cores of inodes, and their forks.
    pub inodes: bool,
    /// Limits and counts of dquots.
    pub quotas: bool,
    /// The bytes of buffers and forks.
    pub bytes: bool,
}

impl Detail {
    /// All but the bytes.
    pub const FIELDS: Detail = Detail { buffers: true, inodes: true, quotas: true, bytes: false };
}

/// What is to be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// How the journal is looked at.
    pub view: View,
    /// What of the items' contents is shown.
    pub detail: Detail,
    /// Where to begin, in blocks of 512 bytes from the start of the log, instead of the tail or the oldest record.
    pub start: Option<u32>,
    /// Show what is behind the tail, too, where else only that counts which a replay would see.
    pub all: bool,
    /// End at the first thing that cannot be understood.
    pub stop: bool,
    /// Show the words that stand in the headers of records because cycles have taken their places.
    pub saved_words: bool,
    /// Do not look into records.
    pub headers_only: bool,
}
