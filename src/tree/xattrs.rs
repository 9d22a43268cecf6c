//! Extended attributes as Linux shows them.

use std::ops::ControlFlow;

use super::reader::Reader;
use crate::error::{Check, Corruption, Error, Place, Rule};
use crate::forms::{Attribute, Attributes, Inode, PosixAcl};
use crate::ondisk::acl::{ACCESS_NAME, DEFAULT_NAME};
use crate::ondisk::attr_short::AttrNamespace;

/// Most bytes of names and values that are taken of one file. Linux can list attributes with names of 64 KiB in all, each
/// with a value of as much; more than this are only in an image that was made to fill memory.
const MOST_BYTES: usize = 64 << 20;

/// An attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xattr {
    /// Its name, with the namespace.
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// The attributes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Xattrs {
    /// Attributes that are no access control lists, in the order in which they are stored.
    pub list: Vec<Xattr>,
    /// The list that rules access.
    pub access: Option<PosixAcl>,
    /// The list that new files in a directory get.
    pub default: Option<PosixAcl>,
}

impl Xattrs {
    /// The attributes of `inode`. Those that are being made or removed, and parent pointers, are none for users. Damage is
    /// reported, and costs the attributes that it is about.
    pub fn read(reader: &Reader<'_>, inode: &Inode) -> Self {
        let mut xattrs = Xattrs::default();
        let attributes = match Attributes::open(reader.source(), inode) {
            Ok(Some(attributes)) => attributes,
            Ok(None) => return xattrs,
            Err(error) => {
                reader.report(&error);
                return xattrs;
            }
        };
        let mut left = MOST_BYTES;
        attributes.for_each(&mut |attribute| {
            match attribute {
                Err(error) => reader.report(&error),
                Ok(attribute) if is_hidden(&attribute) => {}
                Ok(attribute) => {
                    let taken = match attributes.value(&attribute.value) {
                        Ok(value) => xattrs.take(&attribute, &value).map_err(|check| {
                            let detail = crate::report::name::escape_component(attribute.name);
                            Error::Corrupt(Box::new(Corruption { check, place: inode.place.clone(), detail }))
                        }),
                        Err(error) => Err(error),
                    };
                    match taken.map(|bytes| left.checked_sub(bytes)) {
                        Ok(Some(rest)) => left = rest,
                        Ok(None) => {
                            let place = Place { inode: Some(inode.ino.0), ..inode.place.clone() };
                            reader.report(&Error::corrupt(Check::new("attr", "valuelen", Rule::Count), place));
                            return ControlFlow::Break(());
                        }
                        Err(error) => reader.report(&error),
                    }
                }
            }
            ControlFlow::Continue(())
        });
        xattrs
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.access.is_none() && self.default.is_none()
    }

    /// Adds an attribute; how many bytes it takes.
    fn take(&mut self, attribute: &Attribute<'_>, value: &[u8]) -> Result<usize, Check> {
        let bytes = attribute.name.len() + value.len() + size_of::<Xattr>();
        let namespace = attribute.namespace.unwrap_or(AttrNamespace::User);
        match (namespace, attribute.name) {
            (AttrNamespace::Root, ACCESS_NAME) => self.access = Some(PosixAcl::decode(value)?),
            (AttrNamespace::Root, DEFAULT_NAME) => self.default = Some(PosixAcl::decode(value)?),
            (namespace, name) => {
                let name = [namespace.prefix().as_bytes(), name].concat();
                self.list.push(Xattr { name, value: value.to_vec() });
            }
        }
        Ok(bytes)
    }

    /// All of them as Linux shows them, access control lists among them, without the names under which these are stored.
    pub fn shown(&self) -> Vec<Xattr> {
        let acl = |name: &str, acl: &Option<PosixAcl>| {
            let value = acl.as_ref()?.to_xattr();
            Some(Xattr { name: name.as_bytes().to_vec(), value })
        };
        let lists = [acl(ACCESS_XATTR, &self.access), acl(DEFAULT_XATTR, &self.default)];
        self.list.iter().cloned().chain(lists.into_iter().flatten()).collect()
    }
}

/// Linux's name for the list that rules access.
pub const ACCESS_XATTR: &str = "system.posix_acl_access";
/// Linux's name for the list that new files in a directory get.
pub const DEFAULT_XATTR: &str = "system.posix_acl_default";

/// A name with a zero byte cannot be given to anybody; it was reported when it was read, as were flags of more than one
/// namespace.
fn is_hidden(attribute: &Attribute<'_>) -> bool {
    let strange = attribute.name.is_empty() || attribute.name.contains(&0) || attribute.namespace.is_none();
    attribute.is_incomplete() || attribute.namespace == Some(AttrNamespace::Parent) || strange
}
