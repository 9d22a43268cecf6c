//! Inodes of an image that may be damaged.

use std::cell::Cell;

use crate::error::{Check, Error, Place, Rule};
use crate::forms::{BlockSource, Inode};
use crate::geometry::{Geometry, Ino};
use crate::image::Image;
use crate::report::Observer;

/// Reads files of an image. What is damaged is told to an observer and counted, and the work goes on without it.
pub struct Reader<'a> {
    image: &'a Image,
    observer: &'a dyn Observer,
    problems: Cell<u64>,
}

impl<'a> Reader<'a> {
    /// Reads from `image` and tells `observer`.
    pub fn new(image: &'a Image, observer: &'a dyn Observer) -> Self {
        Reader { image, observer, problems: Cell::new(0) }
    }

    /// The image.
    pub fn image(&self) -> &'a Image {
        self.image
    }

    /// Its blocks.
    pub fn source(&self) -> &'a dyn BlockSource {
        self.image.cache()
    }

    /// Its geometry.
    pub fn geometry(&self) -> &'a Geometry {
        self.image.geometry()
    }

    /// Who is told.
    pub fn observer(&self) -> &'a dyn Observer {
        self.observer
    }

    /// How many problems were reported.
    pub fn problems(&self) -> u64 {
        self.problems.get()
    }

    /// Reports a problem that costs only what it is about.
    pub fn report(&self, problem: &Error) {
        self.problems.set(self.problems.get().saturating_add(1));
        self.observer.warn(problem);
    }

    /// Inode `ino`, as far as it is one of a file: an inode that cannot be read, that is free or that belongs to the
    /// filesystem itself is reported, and is `None`. Checks that any other one fails are reported, too.
    pub fn inode(&self, ino: Ino) -> Option<Inode> {
        let inode = match Inode::read(self.source(), ino) {
            Ok(inode) => inode,
            Err(error) => {
                self.report(&error);
                return None;
            }
        };
        for failure in inode.verdict.failures() {
            self.report(&Error::Corrupt(Box::new(failure.clone())));
        }
        if inode.verdict.has_failed(Check::new("dinode", "magic", Rule::Magic)) {
            return None;
        }
        if inode.file_type().is_none() {
            let place = Place { inode: Some(ino.0), ..inode.place.clone() };
            self.report(&Error::corrupt(Check::new("dinode", "mode", Rule::Range), place));
            return None;
        }
        if inode.raw().is_metadata() || self.geometry().is_internal_ino(ino) {
            self.report(&Error::corrupt(Check::new("dinode", "flags2", Rule::Mismatch), inode.place.clone()));
            return None;
        }
        Some(inode)
    }
}
