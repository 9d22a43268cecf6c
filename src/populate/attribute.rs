//! Extended attributes: from Linux's names and values to what is stored.

use super::content::{Attributes, Kind, MAX_NAME, MAX_XATTR_VALUE, Xattr};
use crate::forms::PosixAcl;
use crate::ondisk::acl::{ACCESS_NAME, DEFAULT_NAME};
use crate::ondisk::attr_short::AttrNamespace;
use crate::tree::{ACCESS_XATTR, DEFAULT_XATTR};

/// Why an attribute is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// XFS has no place for names of this kind; a file without it is what other filesystems give, too.
    Foreign,
    /// It is not what it should be.
    Bad(&'static str),
}

/// An attribute by Linux's name.
pub(super) enum Taken {
    /// One that is stored under its name.
    Plain(Xattr),
    /// The list that rules access.
    Access(PosixAcl),
    /// The list that new files in a directory get.
    Default(PosixAcl),
}

impl Taken {
    /// Reads a name and its value.
    pub(super) fn read(name: &[u8], value: &[u8]) -> Result<Self, Refused> {
        let list = || {
            let list = PosixAcl::from_xattr(value).or_else(|| value.is_empty().then(PosixAcl::default));
            list.filter(|list| list.entries.is_empty() || list.is_valid())
                .ok_or(Refused::Bad("is no access control list"))
        };
        if name == ACCESS_XATTR.as_bytes() {
            return list().map(Taken::Access);
        }
        if name == DEFAULT_XATTR.as_bytes() {
            return list().map(Taken::Default);
        }
        let spaces = [AttrNamespace::User, AttrNamespace::Root, AttrNamespace::Secure];
        let found = spaces.into_iter().find_map(|space| Some((space, name.strip_prefix(space.prefix().as_bytes())?)));
        let (namespace, name) = found.ok_or(Refused::Foreign)?;
        if name.is_empty() || name.len() > MAX_NAME || name.contains(&0) {
            return Err(Refused::Bad("has a name that is empty, longer than 255 bytes, or holds a zero byte"));
        }
        if value.len() > MAX_XATTR_VALUE {
            return Err(Refused::Bad("has a value of more than 64 KiB"));
        }
        Ok(Taken::Plain(Xattr { namespace, name: name.into(), value: value.into() }))
    }
}

impl Attributes {
    /// Adds an attribute to those of a file of this kind, in the place of one with the same name.
    ///
    /// An access list sets the access bits, as it does in Linux, and is not stored when they say it all.
    pub(super) fn set_xattr(&mut self, kind: &Kind, taken: Taken) -> Result<(), Refused> {
        match taken {
            Taken::Plain(xattr) => self.insert_xattr(xattr),
            Taken::Access(_) if matches!(kind, Kind::Symlink(_)) => {
                return Err(Refused::Bad("is an access control list, which a symbolic link has not"));
            }
            Taken::Access(list) => {
                self.remove_xattr(AttrNamespace::Root, ACCESS_NAME);
                if !list.entries.is_empty() {
                    let (bits, all) = list.mode();
                    self.permissions = self.permissions & !0o777 | bits;
                    if !all {
                        self.insert_xattr(list_attribute(ACCESS_NAME, &list));
                    }
                }
            }
            Taken::Default(_) if !matches!(kind, Kind::Directory(_)) => {
                return Err(Refused::Bad("is a default access control list, which only a folder has"));
            }
            Taken::Default(list) => {
                self.remove_xattr(AttrNamespace::Root, DEFAULT_NAME);
                if !list.entries.is_empty() {
                    self.insert_xattr(list_attribute(DEFAULT_NAME, &list));
                }
            }
        }
        Ok(())
    }

    /// Changes the mode, and the access list with it.
    pub(super) fn change_mode(&mut self, permissions: u16) {
        self.permissions = permissions;
        let at = self.find_xattr(AttrNamespace::Root, ACCESS_NAME).ok();
        let Some(stored) = at.and_then(|at| self.xattrs.get_mut(at)) else { return };
        if let Ok(mut list) = PosixAcl::decode(&stored.value) {
            list.set_mode(permissions);
            stored.value = list.encode().into();
        }
    }

    fn find_xattr(&self, namespace: AttrNamespace, name: &[u8]) -> Result<usize, usize> {
        self.xattrs.binary_search_by(|xattr| (xattr.namespace, &*xattr.name).cmp(&(namespace, name)))
    }

    fn insert_xattr(&mut self, xattr: Xattr) {
        match self.find_xattr(xattr.namespace, &xattr.name) {
            Ok(at) => self.xattrs[at] = xattr,
            Err(at) => self.xattrs.insert(at, xattr),
        }
    }

    fn remove_xattr(&mut self, namespace: AttrNamespace, name: &[u8]) {
        if let Ok(at) = self.find_xattr(namespace, name) {
            self.xattrs.remove(at);
        }
    }
}

fn list_attribute(name: &[u8], list: &PosixAcl) -> Xattr {
    Xattr { namespace: AttrNamespace::Root, name: name.into(), value: list.encode().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::{AclEntry, AclSubject};
    use std::collections::BTreeMap;

    const ACCESS: &[u8] = ACCESS_XATTR.as_bytes();
    const DEFAULT: &[u8] = DEFAULT_XATTR.as_bytes();

    fn acl(user: bool) -> PosixAcl {
        let entry = |subject, permissions| AclEntry { subject, permissions };
        let mut entries = vec![entry(AclSubject::Owner, 6)];
        entries.extend(user.then(|| entry(AclSubject::User(1000), 7)));
        entries.push(entry(AclSubject::OwningGroup, 4));
        entries.extend(user.then(|| entry(AclSubject::Mask, 7)));
        entries.push(entry(AclSubject::Other, 0));
        PosixAcl { entries }
    }

    fn set(attributes: &mut Attributes, kind: &Kind, name: &[u8], value: &[u8]) -> Result<(), Refused> {
        attributes.set_xattr(kind, Taken::read(name, value)?)
    }

    #[test]
    fn names_lead_to_namespaces() {
        let mut attributes = Attributes::default();
        for (name, value) in [(&b"user.b"[..], b"1"), (b"security.x", b"2"), (b"user.a", b"3"), (b"user.b", b"4")] {
            set(&mut attributes, &Kind::Fifo, name, value).expect("taken");
        }
        let found = attributes.xattrs.iter().map(|xattr| (xattr.namespace, &*xattr.name, &*xattr.value));
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                (AttrNamespace::User, &b"a"[..], &b"3"[..]),
                (AttrNamespace::User, b"b", b"4"),
                (AttrNamespace::Secure, b"x", b"2"),
            ]
        );
    }

    #[test]
    fn what_cannot_be_stored_is_refused() {
        let long = [b"user.".to_vec(), vec![b'n'; 256]].concat();
        assert_eq!(Taken::read(b"com.apple.x", b"").err(), Some(Refused::Foreign));
        assert_eq!(Taken::read(b"system.nfs4_acl", b"").err(), Some(Refused::Foreign));
        for (name, value) in [
            (&b"user."[..], &b""[..]),
            (&long, b""),
            (b"user.a\0", b""),
            (b"user.a", &[0; 65_537]),
            (ACCESS, b"x"),
            (ACCESS, &[2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255]),
        ] {
            assert!(matches!(Taken::read(name, value), Err(Refused::Bad(_))), "{name:?}");
        }
        assert!(Taken::read(&long[..260], &[0; 65_536]).is_ok());
    }

    #[test]
    fn lists_and_modes_go_together() {
        let mut attributes = Attributes { permissions: 0o4711, ..Attributes::default() };
        let file = Kind::Regular(crate::populate::Data::default());
        set(&mut attributes, &file, ACCESS, &acl(true).to_xattr()).expect("taken");
        assert_eq!(attributes.permissions, 0o4670);
        assert_eq!(&*attributes.xattrs[0].name, ACCESS_NAME);
        assert_eq!(PosixAcl::decode(&attributes.xattrs[0].value), Ok(acl(true)));
        attributes.change_mode(0o755);
        let text = PosixAcl::decode(&attributes.xattrs[0].value).expect("a list").to_text();
        assert_eq!(text, "user::rwx,user:1000:rwx,group::r--,mask::r-x,other::r-x");
        set(&mut attributes, &file, ACCESS, &acl(false).to_xattr()).expect("taken");
        assert_eq!((attributes.permissions, attributes.xattrs.len()), (0o640, 0));

        let list = acl(true).to_xattr();
        assert!(set(&mut attributes, &file, DEFAULT, &list).is_err());
        assert!(set(&mut attributes, &Kind::Symlink((*b"x").into()), ACCESS, &list).is_err());
        let folder = Kind::Directory(BTreeMap::new());
        set(&mut attributes, &folder, DEFAULT, &list).expect("taken");
        assert_eq!((attributes.permissions, &*attributes.xattrs[0].name), (0o640, DEFAULT_NAME));
        set(&mut attributes, &folder, DEFAULT, b"").expect("taken");
        assert!(attributes.xattrs.is_empty());
    }
}
