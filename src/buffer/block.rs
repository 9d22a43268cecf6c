//! Blocks as they were read, and those that passed every check.

use std::ops::Deref;
use std::sync::Arc;

use super::kind::{BlockKind, Request};
use crate::error::{Error, Result, Verdict};
use crate::ondisk::{OnDisk, RawAgf, RawAgfl, RawAgi, RawRtSuperblock, RawSuperblock};

/// A block as it stands on the device, with every check that it fails.
#[derive(Clone, Debug)]
pub struct Block {
    request: Arc<Request>,
    bytes: Arc<[u8]>,
    verdict: Arc<Verdict>,
}

impl Block {
    pub(super) fn new(request: Request, bytes: Vec<u8>, verdict: Verdict) -> Self {
        Block { request: Arc::new(request), bytes: bytes.into(), verdict: Arc::new(verdict) }
    }

    /// A block that is being changed in memory: nothing is checked before it is written.
    pub fn in_memory(request: Request, bytes: Arc<[u8]>) -> Self {
        Block { request: Arc::new(request), bytes, verdict: Arc::default() }
    }

    /// What was asked for.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The bytes, sound or not.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Every check that the block fails.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The block as one that passed every check.
    ///
    /// # Errors
    /// `Corrupt` with the first check that it fails.
    pub fn sound(self) -> Result<SoundBlock> {
        if self.verdict.is_sound() {
            return Ok(SoundBlock(self));
        }
        self.verdict.as_ref().clone().into_result().map(|()| SoundBlock(self))
    }
}

/// A block that passed every check; only [`Block::sound`] makes one.
#[derive(Clone, Debug)]
pub struct SoundBlock(Block);

impl SoundBlock {
    /// What was asked for.
    pub fn request(&self) -> &Request {
        &self.0.request
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The structure that such a block starts with.
    ///
    /// # Errors
    /// `Internal` when blocks of this kind do not start with `T`.
    pub fn structure<T: VerifiedStructure>(&self) -> Result<Verified<T>> {
        let wrong = || Error::Internal(format!("{:?} read as {}", self.0.request.kind, T::NAME));
        if !T::starts(self.0.request.kind) {
            return Err(wrong());
        }
        T::prefix(self.bytes()).map(|(raw, _)| Verified(*raw)).ok_or_else(wrong)
    }
}

/// A structure whose every field passed its checks; only blocks that were verified give one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    pub(super) fn new(raw: T) -> Self {
        Verified(raw)
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Structures that blocks of some kind start with.
pub trait VerifiedStructure: OnDisk + Copy {
    /// Whether blocks of `kind` start with it.
    fn starts(kind: BlockKind) -> bool;
}

macro_rules! starts {
    ($($raw:ty => $kind:ident),* $(,)?) => { $(
        impl VerifiedStructure for $raw {
            fn starts(kind: BlockKind) -> bool {
                kind == BlockKind::$kind
            }
        }
    )* };
}

starts! {
    RawSuperblock => Superblock,
    RawAgf => Agf,
    RawAgi => Agi,
    RawAgfl => Agfl,
    RawRtSuperblock => RtSuperblock,
}
