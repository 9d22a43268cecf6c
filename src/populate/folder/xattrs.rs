//! Extended attributes as the system lists them.

use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{fgetxattr, flistxattr, lgetxattr, llistxattr};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// Most bytes of all names, and of a value, that the system hands out.
const MOST: usize = 64 << 10;

/// Whose attributes are read.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Open(BorrowedFd<'a>),
    Path(&'a CString),
}

/// Reads attributes; it keeps the memory for that.
pub(in super::super) struct XattrReader {
    names: Vec<u8>,
    value: Vec<u8>,
}

impl Default for XattrReader {
    fn default() -> Self {
        XattrReader { names: vec![0; MOST], value: vec![0; MOST] }
    }
}

/// Is given the name and the value of an attribute.
type Take<'t> = &'t mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

impl XattrReader {
    /// The attributes of a file that is open. `shown` is its name in errors.
    pub fn of_open(&mut self, file: BorrowedFd<'_>, shown: &dyn Fn() -> String, take: Take<'_>) -> Result<()> {
        self.read(Subject::Open(file), shown, take)
    }

    /// The attributes of the file `name` in a folder, which is not opened: opening may be impossible, or do something.
    pub fn of_name(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &[u8],
        shown: &dyn Fn() -> String,
        take: Take<'_>,
    ) -> Result<()> {
        let path = [format!("/proc/self/fd/{}/", folder.as_raw_fd()).as_bytes(), name].concat();
        let path = CString::new(path).map_err(|_| Error::source(shown(), "there is a zero byte in the name"))?;
        self.read(Subject::Path(&path), shown, take)
    }

    fn read(&mut self, subject: Subject<'_>, shown: &dyn Fn() -> String, take: Take<'_>) -> Result<()> {
        let failed = |error| Error::source(shown(), format!("its attributes cannot be read: {error}"));
        let listed = match subject {
            Subject::Open(file) => flistxattr(file, &mut self.names[..]),
            Subject::Path(path) => llistxattr(path, &mut self.names[..]),
        };
        let len = match listed {
            Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
            Ok(len) => len,
            Err(error) => return Err(failed(error)),
        };
        for name in self.names[..len].split_inclusive(|byte| *byte == 0) {
            let Ok(c_name) = std::ffi::CStr::from_bytes_with_nul(name) else { continue };
            let got = match subject {
                Subject::Open(file) => fgetxattr(file, c_name, &mut self.value[..]),
                Subject::Path(path) => lgetxattr(path, c_name, &mut self.value[..]),
            };
            match got {
                Ok(len) => take(c_name.to_bytes(), &self.value[..len])?,
                // the list names what only some may read, as overlayfs does
                Err(Errno::OPNOTSUPP) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }
}
