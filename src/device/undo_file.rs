//! An undo file as it is read back: checked as a whole, then put onto the device.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use uuid::Uuid;
use zerocopy::{FromZeros, IntoBytes};

use super::contract::{ByteRange, Device};
use super::undo::role_number;
use crate::error::{Check, Corruption, Error, Place, Result, Rule};
use crate::ondisk::undo::{RawUndoHeader, RawUndoRecord};
use crate::ondisk::{OnDisk, crc};

/// An undo file whose records have all been checked.
pub struct UndoFile {
    file: File,
    header: RawUndoHeader,
    records: Vec<Record>,
    finished: bool,
    cut: bool,
}

/// A range and where its old contents are.
#[derive(Clone, Copy)]
struct Record {
    range: ByteRange,
    /// Place of the old bytes in the file; `None` if they were zero.
    data: Option<u64>,
}

impl UndoFile {
    /// Opens an undo file and checks all of it.
    ///
    /// A file that ends in the middle of a record is sound: the change that the record was for had not begun. A
    /// damaged record with others behind it is not.
    ///
    /// # Errors
    /// `Io`; `Corrupt` with a place in the undo file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| Error::io(Place::default(), error))?;
        let mut header = RawUndoHeader::new_zeroed();
        if !read(&file, 0, header.as_mut_bytes())? {
            return Err(damage(RawUndoHeader::NAME, "magic", Rule::Truncated, 0));
        }
        let checks = [
            (header.magic == RawUndoHeader::MAGIC, "magic", Rule::Magic),
            (crc::matches(header.as_bytes(), RawUndoHeader::CRC_OFFSET), "crc", Rule::Crc),
            (header.version.get() == RawUndoHeader::VERSION, "version", Rule::Version),
        ];
        if let Some((_, field, rule)) = checks.into_iter().find(|(holds, ..)| !holds) {
            return Err(damage(RawUndoHeader::NAME, field, rule, 0));
        }
        let mut undo = UndoFile { file, header, records: Vec::new(), finished: false, cut: false };
        undo.read_records()?;
        Ok(undo)
    }

    /// UUID of the filesystem that was changed, where the writer knew it.
    pub fn fs_uuid(&self) -> Option<Uuid> {
        Some(Uuid::from_bytes(self.header.fs_uuid)).filter(|uuid| !uuid.is_nil())
    }

    /// Whether the change was made to its end; if not, the device is somewhere between old and new.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether the file ends in the middle of a record.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// How many bytes of the device would be put back.
    pub fn bytes(&self) -> u64 {
        self.records.iter().fold(0, |sum, record| sum.saturating_add(record.range.len))
    }

    /// Puts the old contents back. To do it again, also after it was cut short, does no harm.
    ///
    /// # Errors
    /// `Usage` if the file was not made for such a device; `Io`.
    pub fn apply(&self, device: &dyn Device) -> Result<()> {
        let (size, role) = (self.header.device_size.get(), self.header.role.get());
        if size != device.len() || role != role_number(device.role()) {
            let what = format!("the undo file is for another device, of {size} bytes, not {}", device.len());
            return Err(Error::Usage(what));
        }
        let mut buffer = Vec::new();
        // Backwards: should a range have been kept twice, its first contents are the old ones.
        for record in self.records.iter().rev() {
            match record.data {
                None => device.write_zeroes(record.range.start, record.range.len)?,
                Some(place) => {
                    self.read_data(*record, place, &mut buffer)?;
                    device.write_at(record.range.start, &buffer)?;
                }
            }
        }
        device.flush()
    }

    fn read_data(&self, record: Record, place: u64, buffer: &mut Vec<u8>) -> Result<bool> {
        buffer.resize(usize::try_from(record.range.len).expect("invariant: records were checked to be small"), 0);
        read(&self.file, place, buffer)
    }

    fn read_records(&mut self) -> Result<()> {
        let mut at = RawUndoRecord::UNIT;
        let mut sequence = 0;
        let mut buffer = Vec::new();
        loop {
            let Some(raw) = self.record_at(at)? else { return self.end_at(at, sequence) };
            if raw.sequence.get() != sequence {
                return Err(damage(RawUndoRecord::NAME, "sequence", Rule::Order, at));
            }
            let behind = self.accept(&raw, at, &mut buffer)?;
            let Some(behind) = behind else { return self.end_at(at, sequence + 1) };
            at = behind;
            sequence += 1;
        }
    }

    /// Takes a record; `None` if its data are not all there. Returns where the next one begins.
    fn accept(&mut self, raw: &RawUndoRecord, at: u64, buffer: &mut Vec<u8>) -> Result<Option<u64>> {
        let wrong = |field, rule| Err(damage(RawUndoRecord::NAME, field, rule, at));
        let range = ByteRange { start: raw.offset.get(), len: raw.len.get() };
        if range.start.checked_add(range.len).is_none_or(|end| end > self.header.device_size.get()) {
            return wrong("len", Rule::Range);
        }
        let place = at + RawUndoRecord::UNIT;
        match raw.kind.get() {
            RawUndoRecord::FINISHED => self.finished = true,
            RawUndoRecord::ZEROES => self.records.push(Record { range, data: None }),
            RawUndoRecord::DATA if range.len > RawUndoRecord::MAX_DATA => return wrong("len", Rule::Count),
            RawUndoRecord::DATA => {
                let record = Record { range, data: Some(place) };
                if !self.read_data(record, place, buffer)? || crc32c::crc32c(buffer) != raw.data_crc.get() {
                    return Ok(None);
                }
                self.records.push(record);
                return Ok(Some(place + range.len.next_multiple_of(RawUndoRecord::UNIT)));
            }
            _ => return wrong("kind", Rule::Range),
        }
        Ok(Some(place))
    }

    /// The record at `at`, if a sound one of this file is there.
    fn record_at(&self, at: u64) -> Result<Option<RawUndoRecord>> {
        let mut raw = RawUndoRecord::new_zeroed();
        let sound = read(&self.file, at, raw.as_mut_bytes())?
            && raw.magic.get() == RawUndoRecord::MAGIC
            && crc::matches(raw.as_bytes(), RawUndoRecord::CRC_OFFSET)
            && raw.uuid == self.header.uuid;
        Ok(sound.then_some(raw))
    }

    /// There is no whole record at `at`. That is the end of the file, unless a later record follows.
    fn end_at(&mut self, at: u64, sequence: u64) -> Result<()> {
        let size = self.file.metadata().map_err(|error| Error::io(Place::default(), error))?.len();
        self.cut = size > at;
        let mut place = at + RawUndoRecord::UNIT;
        while place + RawUndoRecord::UNIT <= size {
            if let Some(raw) = self.record_at(place)?
                && raw.sequence.get() >= sequence
            {
                return Err(damage(RawUndoRecord::NAME, "crc", Rule::Crc, at));
            }
            place += RawUndoRecord::UNIT;
        }
        Ok(())
    }
}

/// Fills `bytes` from the file; `false` if the file ends before.
fn read(file: &File, at: u64, bytes: &mut [u8]) -> Result<bool> {
    match file.read_exact_at(bytes, at) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(Error::io(Place::at_offset(at), error)),
    }
}

fn damage(structure: &'static str, field: &'static str, rule: Rule, at: u64) -> Error {
    let detail = format!("at byte {at} of the undo file");
    let corruption = Corruption { check: Check::new(structure, field, rule), place: Place::default(), detail };
    Error::Corrupt(Box::new(corruption))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::device::contract::length_of;
    use crate::device::model::{SIZE, contents, operation, pattern, step};
    use crate::device::{Effect, Event, Fault, FaultDevice, MemoryDevice, Operation, UndoDevice};
    use crate::error::DeviceRole;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Folder(tempfile::tempdir().expect("invariant: a temporary folder can be made"))
        }

        fn undo(&self) -> PathBuf {
            self.0.path().join("undo")
        }
    }

    /// Some changes to a device that is part hole, part data, by way of an undo file.
    fn change(below: &FaultDevice<MemoryDevice>, folder: &Folder) -> Result<()> {
        let device = UndoDevice::create(below, &folder.undo(), None)?;
        device.write_at(100, &[1; 5000])?;
        device.write_zeroes(20_000, 9000)?;
        device.keep(&[ByteRange { start: 0, len: 10 }, ByteRange { start: 30_000, len: 1 }])?;
        device.write_at(30_000, &[2; 3])?;
        device.write_at(SIZE - 1, &[3])?;
        device.finish()
    }

    fn original() -> MemoryDevice {
        let device = MemoryDevice::new(SIZE);
        device.write_at(4000, &pattern(25_000, 9)).expect("invariant: in range");
        device
    }

    #[test]
    fn puts_everything_back() {
        let (folder, device) = (Folder::new(), FaultDevice::new(original()));
        change(&device, &folder).expect("invariant: nothing fails");
        assert!(contents(&device) != contents(&original()));
        let undo = UndoFile::open(&folder.undo()).expect("the file is sound");
        assert!(undo.is_finished() && !undo.is_cut() && undo.bytes() > 0 && undo.bytes() < SIZE);
        for _ in 0..2 {
            undo.apply(&device).expect("it is the device");
            assert!(contents(&device) == contents(&original()));
        }
        assert!(matches!(undo.apply(&MemoryDevice::new(SIZE + 1)), Err(Error::Usage(_))));
        assert!(matches!(undo.apply(&MemoryDevice::new(SIZE).on(DeviceRole::Log)), Err(Error::Usage(_))));
    }

    #[test]
    fn a_failing_device_is_put_back_from_wherever_it_failed() {
        for nth in 0..4 {
            let folder = Folder::new();
            let fault = Fault { operation: Operation::Write, nth, effect: Effect::Torn(2), then_dead: false };
            let device = FaultDevice::new(original()).with(fault);
            change(&device, &folder).expect_err("the device fails");
            let undo = UndoFile::open(&folder.undo()).expect("the file is sound");
            assert!(!undo.is_finished());
            undo.apply(&device).expect("it is the device");
            assert!(contents(&device) == contents(&original()), "failed at write {nth}");
        }
    }

    /// A crash leaves a part of the undo file, and of the changes those that came behind that part.
    #[test]
    fn a_file_cut_anywhere_undoes_what_had_been_done() {
        let folder = Folder::new();
        let device = FaultDevice::new(original()).recording();
        // The undo file's length before each change: what is durable then.
        let mut lengths = Vec::new();
        {
            let undo = UndoDevice::create(&device, &folder.undo(), None).expect("invariant: the file can be made");
            for at in [100, 9000, 200, SIZE - 2, 17_000] {
                undo.write_at(at, &[7, 8]).expect("invariant: nothing fails");
                lengths.push(std::fs::metadata(folder.undo()).expect("invariant: it is there").len());
            }
        }
        let whole = std::fs::read(folder.undo()).expect("invariant: readable");
        let events = device.take_events();
        assert_eq!(events.len(), lengths.len());
        for cut in (512..=whole.len()).step_by(64).chain([512, whole.len()]) {
            std::fs::write(folder.undo(), &whole[..cut]).expect("invariant: writable");
            let changed = original();
            let done = |(_, durable): &(&Event, &u64)| **durable <= length_of(&whole[..cut]);
            for (event, _) in events.iter().zip(&lengths).take_while(done) {
                event.replay(&changed).expect("invariant: writable");
            }
            let undo = UndoFile::open(&folder.undo()).expect("a cut file is sound");
            undo.apply(&changed).expect("it is the device");
            assert!(contents(&changed) == contents(&original()), "cut at {cut}");
        }
    }

    #[test]
    fn damage_is_found() {
        let (folder, device) = (Folder::new(), FaultDevice::new(original()));
        change(&device, &folder).expect("invariant: nothing fails");
        let whole = std::fs::read(folder.undo()).expect("invariant: readable");
        let last = whole.len() - RawUndoRecord::SIZE;
        for at in (0..last).step_by(37) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            std::fs::write(folder.undo(), &bytes).expect("invariant: writable");
            match UndoFile::open(&folder.undo()) {
                Err(Error::Corrupt(_)) => {}
                Err(error) => panic!("byte {at}: {error}"),
                // The padding of data is no part of anything.
                Ok(undo) => assert!(undo.is_finished() && !undo.is_cut(), "byte {at} was taken for a cut"),
            }
        }
        std::fs::write(folder.undo(), &whole[..300]).expect("invariant: writable");
        assert!(matches!(UndoFile::open(&folder.undo()), Err(Error::Corrupt(_))));
    }

    #[test]
    fn an_old_undo_file_is_not_overwritten() {
        let folder = Folder::new();
        std::fs::write(folder.undo(), "precious").expect("invariant: writable");
        assert!(UndoDevice::create(original(), &folder.undo(), None).is_err());
        assert_eq!(std::fs::read(folder.undo()).expect("readable"), b"precious");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn undoes_random_changes(steps in prop::collection::vec(operation(), 1..25)) {
            let (folder, below) = (Folder::new(), original());
            let mut model = contents(&below);
            let uuid = Uuid::from_u128(5);
            let device = UndoDevice::create(&below, &folder.undo(), Some(uuid)).expect("invariant: it can be made");
            steps.iter().for_each(|operation| step(&device, &mut model, operation));
            prop_assert!(contents(&below) == model);
            let undo = UndoFile::open(&folder.undo()).expect("the file is sound");
            prop_assert_eq!(undo.fs_uuid(), Some(uuid));
            undo.apply(&below).expect("it is the device");
            prop_assert!(contents(&below) == contents(&original()));
        }
    }
}
