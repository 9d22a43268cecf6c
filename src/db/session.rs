//! An opened image, and where in it one looks.

use std::path::PathBuf;
use std::sync::Arc;

use super::c_random::CRandom;
use super::crc_state::CrcState;
use super::position::Position;
use super::ring::{Ring, Visited};
use super::scan::BlockUsage;
use super::types::{Family, TypeId, body, checked_kind, crc_state};
use crate::buffer::{Fragment, Owner, Request};
use crate::device::Device;
use crate::error::{DeviceRole, Error, Place, Result, Verdict};
use crate::geometry::{AgNumber, Daddr, Geometry, Ino};
use crate::image::Image;
use crate::ondisk::{RawDinode, crc};
use crate::report::Observer;

/// Most bytes of a block that one looks at: a realtime extent of 1 GiB would be too much to hold.
const LONGEST: u64 = 64 << 20;

/// An entry of the stack of positions.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Where one looks; `None` at the beginning.
    pub position: Option<Position>,
    /// The inode that was gone to last.
    pub ino: Option<Ino>,
    /// The directory that was gone to last.
    pub directory: Option<Ino>,
}

/// What the devices are called.
#[derive(Clone, Debug, Default)]
pub struct DeviceNames {
    /// The data device.
    pub data: String,
    /// The external log device, if one is given.
    pub log: Option<String>,
    /// The realtime device, if one is given.
    pub realtime: Option<String>,
}

/// An opened image, and where in it one looks.
pub struct Session {
    /// The image.
    pub image: Image,
    /// What the devices are called.
    pub names: DeviceNames,
    /// Random numbers, as xfs_db has them.
    pub random: CRandom,
    /// Hears of progress and of what is damaged.
    pub observer: Arc<dyn Observer>,
    /// The allocation group that one was in last.
    pub agno: Option<AgNumber>,
    /// The positions, the current one last.
    stack: Vec<Frame>,
    /// The positions that were visited.
    pub ring: Ring,
    /// Lines of scripts that are to be run before anything else, the next one last.
    pub script: Vec<String>,
    /// Files that such lines were read from.
    pub sourced: u32,
    /// Where all output goes too.
    pub log: Option<PathBuf>,
    /// What every block is used for, once that has been found out.
    pub block_usage: Option<BlockUsage>,
    /// Whether no more commands are to be run.
    pub done: bool,
}

impl Session {
    /// A session that looks nowhere yet.
    pub fn new(image: Image, observer: Arc<dyn Observer>) -> Self {
        Session {
            image,
            names: DeviceNames::default(),
            random: CRandom::default(),
            observer,
            agno: None,
            stack: Vec::new(),
            ring: Ring::default(),
            script: Vec::new(),
            sourced: 0,
            log: None,
            block_usage: None,
            done: false,
        }
    }

    /// The filesystem's geometry.
    pub fn geometry(&self) -> &Geometry {
        self.image.geometry()
    }

    /// The set of types that it has.
    pub fn family(&self) -> Family {
        Family::of(&self.geometry().features)
    }

    /// The stack of positions, the current one last.
    pub fn stack(&self) -> &[Frame] {
        &self.stack
    }

    /// Where one looks.
    pub fn position(&self) -> Option<&Position> {
        self.stack.last().and_then(|frame| frame.position.as_ref())
    }

    /// Where one looks.
    ///
    /// # Errors
    /// `Usage` when that is nowhere yet.
    pub fn require_position(&self) -> Result<&Position> {
        self.position()
            .ok_or_else(|| Error::Usage("there is no current position; sb, inode and others set one".to_owned()))
    }

    /// Where one looks, if it is taken for a block of this type.
    ///
    /// # Errors
    /// `Usage` when it is not.
    pub fn require_type(&self, ty: TypeId) -> Result<&Position> {
        let position = self.require_position()?;
        if position.ty == ty {
            return Ok(position);
        }
        let name = |ty: TypeId| ty.name(self.family()).unwrap_or("of another kind");
        Err(Error::Usage(format!("the current type is {}, not {}", name(position.ty), name(ty))))
    }

    /// The inode that was gone to last.
    ///
    /// # Errors
    /// `Usage` when there was none.
    pub fn current_inode(&self) -> Result<Ino> {
        let ino = self.stack.last().and_then(|frame| frame.ino);
        ino.ok_or_else(|| Error::Usage("there is no current inode; inode sets one".to_owned()))
    }

    /// The directory that was gone to last.
    pub fn current_directory(&self) -> Option<Ino> {
        self.stack.last().and_then(|frame| frame.directory)
    }

    /// Goes to `position`, which is noted in the ring.
    pub fn set_position(&mut self, position: Position) {
        self.show(position);
        self.note_visit();
    }

    /// Goes to `position` without noting it.
    pub fn show(&mut self, position: Position) {
        self.frame().position = Some(position);
    }

    /// Notes the current position in the ring.
    pub fn note_visit(&mut self) {
        if let Some(Frame { position: Some(position), ino, .. }) = self.stack.last() {
            self.ring.add(Visited { position: position.clone(), ino: *ino });
        }
    }

    /// The current entry of the stack; the first one is made when it is needed.
    pub(super) fn frame(&mut self) -> &mut Frame {
        if self.stack.is_empty() {
            self.stack.push(Frame::default());
        }
        let last = self.stack.len() - 1;
        &mut self.stack[last]
    }

    /// Saves the position: a copy of it becomes the current one. Like in xfs_db that is a visit where it is an inode;
    /// elsewhere the copy is of the whole buffer.
    pub fn push(&mut self) {
        let mut copy = self.stack.last().cloned().unwrap_or_default();
        let is_inode = copy.position.as_ref().is_some_and(|position| position.ty == TypeId::Inode);
        if let Some(position) = copy.position.as_mut().filter(|_| !is_inode) {
            (position.offset, position.len) = (0, position.buffer.len());
        }
        self.stack.push(copy);
        if is_inode {
            self.note_visit();
        }
    }

    /// Goes back to the position that was saved last.
    ///
    /// # Errors
    /// `Usage` when there is none.
    pub fn pop(&mut self) -> Result<()> {
        match self.stack.pop() {
            Some(_) => Ok(()),
            None => Err(Error::Usage("there is no position to go back to".to_owned())),
        }
    }

    /// Goes to `basic_blocks` units of 512 bytes of the data device, taken for a block of this type.
    ///
    /// # Errors
    /// As [`Session::read`].
    pub fn go(&mut self, ty: TypeId, daddr: Daddr, basic_blocks: u64) -> Result<()> {
        let position = self.read(ty, DeviceRole::Data, daddr, basic_blocks)?;
        self.set_position(position);
        Ok(())
    }

    /// The position of `basic_blocks` units of 512 bytes of a device, taken for a block of this type. What is wrong with
    /// the block is told the observer.
    ///
    /// # Errors
    /// `Io`; `Usage` when the device is not there, or the filesystem has no such type.
    pub fn read(&self, ty: TypeId, device: DeviceRole, daddr: Daddr, basic_blocks: u64) -> Result<Position> {
        let len = basic_blocks.saturating_mul(512);
        let len = u32::try_from(len.min(LONGEST)).map_err(|_| Error::Internal("bounded lengths fit".to_owned()))?;
        let mut position = self.read_fragments(ty, device, vec![Fragment { daddr, len }])?;
        position.fragments = Vec::new();
        Ok(position)
    }

    /// The same of a block that lies in several pieces.
    ///
    /// # Errors
    /// As [`Session::read`].
    pub fn read_fragments(&self, ty: TypeId, device: DeviceRole, fragments: Vec<Fragment>) -> Result<Position> {
        if body(ty, self.family()).is_none() {
            return Err(Error::Usage("this filesystem has no blocks of this type".to_owned()));
        }
        let mut bytes = Vec::new();
        for fragment in &fragments {
            self.read_bytes(device, *fragment, &mut bytes)?;
        }
        let geometry = self.geometry();
        let kind = checked_kind(ty, &bytes, geometry);
        let verdict = kind.map_or_else(Verdict::new, |kind| {
            let owner = Owner::Unknown;
            let request = Request { kind, fragments: fragments.clone(), device, owner, level: None };
            self.image.cache().verifier().verify(&request, &bytes)
        });
        self.warn_of(&verdict);
        Ok(Position {
            ty,
            device,
            daddr: fragments.first().map_or(Daddr(0), |fragment| fragment.daddr),
            basic_blocks: u64::try_from(bytes.len() / 512).unwrap_or(u64::MAX),
            fragments,
            offset: 0,
            len: bytes.len(),
            crc: if ty == TypeId::Inode { self.crc_of_inode(&bytes) } else { crc_state(self.family(), kind, &verdict) },
            verdict: Arc::new(verdict),
            buffer: bytes.into(),
        })
    }

    fn read_bytes(&self, role: DeviceRole, fragment: Fragment, bytes: &mut Vec<u8>) -> Result<()> {
        let (device, start): (&dyn Device, u64) = match role {
            DeviceRole::Data => (self.image.data(), 0),
            DeviceRole::Log => (self.image.log()?, 0),
            DeviceRole::Realtime => self.image.realtime()?,
        };
        let outside = || {
            let place = Place::at_daddr(fragment.daddr.0).on(role);
            Error::io(place, std::io::Error::from(std::io::ErrorKind::UnexpectedEof))
        };
        let offset = self.geometry().daddr_offset(fragment.daddr).and_then(|offset| offset.checked_add(start));
        let offset = offset.ok_or_else(outside)?;
        let end = offset.checked_add(u64::from(fragment.len)).ok_or_else(outside)?;
        if end > device.len() {
            return Err(outside());
        }
        let before = bytes.len();
        bytes.resize(before + usize::try_from(fragment.len).map_err(|_| outside())?, 0);
        device.read_at(offset, &mut bytes[before..])
    }

    /// What is known about the CRC of the inode at the start of `bytes`.
    pub(super) fn crc_of_inode(&self, bytes: &[u8]) -> CrcState {
        let size = usize::try_from(self.geometry().inodes.size).unwrap_or(usize::MAX);
        match bytes.get(..size) {
            _ if !self.geometry().features.has_crc() => CrcState::Unchecked,
            Some(bytes) if crc::matches(bytes, RawDinode::CRC_OFFSET) => CrcState::Correct,
            _ => CrcState::Bad,
        }
    }

    /// Tells the observer of problems that cost a part of an answer alone. When there is no answer left, the last of
    /// them is the error.
    ///
    /// # Errors
    /// The last problem.
    pub fn settle(&self, mut problems: Vec<Error>, nothing_left: bool) -> Result<()> {
        let last = if nothing_left { problems.pop() } else { None };
        problems.iter().for_each(|problem| self.observer.warn(problem));
        last.map_or(Ok(()), Err)
    }

    /// Tells the observer every check of `verdict`.
    pub fn warn_of(&self, verdict: &Verdict) {
        for failure in verdict.failures() {
            self.observer.warn(&Error::Corrupt(Box::new(failure.clone())));
        }
    }
}
