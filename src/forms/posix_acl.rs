//! POSIX access control lists: from the attribute that holds one to the forms that other programs know (Linux
//! `fs/xfs/xfs_acl.c`, `include/uapi/linux/posix_acl_xattr.h`).

use crate::error::{Check, Rule};
use crate::ondisk::OnDisk;
use crate::ondisk::acl::{RawAclEntry, RawAclHdr, tag};

/// What stands in the place of a user or group where there is none.
const UNDEFINED_ID: u32 = u32::MAX;
/// Version of the form that Linux shows.
const XATTR_VERSION: u32 = 2;

/// For whom an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AclSubject {
    /// The owner of the file.
    Owner,
    /// A user.
    User(u32),
    /// The group of the file.
    OwningGroup,
    /// A group.
    Group(u32),
    /// The most that users and groups get.
    Mask,
    /// Everybody else.
    Other,
}

/// An entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AclEntry {
    /// For whom it is.
    pub subject: AclSubject,
    /// What they may: 4 read, 2 write, 1 execute.
    pub permissions: u16,
}

/// An access control list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PosixAcl {
    /// The entries, as they are stored.
    pub entries: Vec<AclEntry>,
}

impl PosixAcl {
    /// Decodes the value of an attribute that holds a list.
    ///
    /// # Errors
    /// The check that it fails.
    pub fn decode(value: &[u8]) -> Result<Self, Check> {
        let (header, rest) = RawAclHdr::prefix(value).ok_or(Check::new("acl", "cnt", Rule::Truncated))?;
        let count = usize::try_from(header.cnt.get()).map_err(|_| Check::new("acl", "cnt", Rule::Count))?;
        let (raw, rest) = RawAclEntry::prefix_slice(rest, count).ok_or(Check::new("acl", "cnt", Rule::Count))?;
        if !rest.is_empty() {
            return Err(Check::new("acl", "cnt", Rule::Mismatch));
        }
        let entries = raw.iter().map(decode_entry).collect::<Result<_, _>>()?;
        Ok(PosixAcl { entries })
    }

    /// The list as the value of `system.posix_acl_access` or `system.posix_acl_default`.
    pub fn to_xattr(&self) -> Vec<u8> {
        let mut bytes = XATTR_VERSION.to_le_bytes().to_vec();
        for entry in &self.entries {
            let (tag, id) = tag_and_id(entry.subject);
            bytes.extend(tag.to_le_bytes());
            bytes.extend(entry.permissions.to_le_bytes());
            bytes.extend(id.unwrap_or(UNDEFINED_ID).to_le_bytes());
        }
        bytes
    }

    /// The list in one line, as `getfacl` and archives have it: `user::rwx,user:1000:r-x`.
    pub fn to_text(&self) -> String {
        let entry = |entry: &AclEntry| {
            let (who, id) = match entry.subject {
                AclSubject::Owner => ("user", None),
                AclSubject::User(id) => ("user", Some(id)),
                AclSubject::OwningGroup => ("group", None),
                AclSubject::Group(id) => ("group", Some(id)),
                AclSubject::Mask => ("mask", None),
                AclSubject::Other => ("other", None),
            };
            let bit = |bit: u16, letter: char| if entry.permissions & bit != 0 { letter } else { '-' };
            let id = id.map(|id| id.to_string()).unwrap_or_default();
            format!("{who}:{id}:{}{}{}", bit(4, 'r'), bit(2, 'w'), bit(1, 'x'))
        };
        self.entries.iter().map(entry).collect::<Vec<_>>().join(",")
    }
}

fn decode_entry(raw: &RawAclEntry) -> Result<AclEntry, Check> {
    let id = raw.id.get();
    let subject = match raw.tag.get() {
        tag::USER_OBJ => AclSubject::Owner,
        tag::USER => AclSubject::User(id),
        tag::GROUP_OBJ => AclSubject::OwningGroup,
        tag::GROUP => AclSubject::Group(id),
        tag::MASK => AclSubject::Mask,
        tag::OTHER => AclSubject::Other,
        _ => return Err(Check::new("acl_entry", "tag", Rule::Range)),
    };
    if raw.perm.get() > 7 {
        return Err(Check::new("acl_entry", "perm", Rule::Flags));
    }
    Ok(AclEntry { subject, permissions: raw.perm.get() })
}

/// Tag of 16 bits, as in memory and in the form that Linux shows, and the user or group.
fn tag_and_id(subject: AclSubject) -> (u16, Option<u32>) {
    let (tag, id) = match subject {
        AclSubject::Owner => (tag::USER_OBJ, None),
        AclSubject::User(id) => (tag::USER, Some(id)),
        AclSubject::OwningGroup => (tag::GROUP_OBJ, None),
        AclSubject::Group(id) => (tag::GROUP, Some(id)),
        AclSubject::Mask => (tag::MASK, None),
        AclSubject::Other => (tag::OTHER, None),
    };
    (u16::try_from(tag).expect("invariant: tags are below 64"), id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::IntoBytes;

    fn stored(entries: &[(u32, u32, u16)]) -> Vec<u8> {
        let mut bytes = u32::try_from(entries.len()).expect("few").to_be_bytes().to_vec();
        for &(tag, id, perm) in entries {
            bytes.extend(RawAclEntry { tag: tag.into(), id: id.into(), perm: perm.into(), pad: 0.into() }.as_bytes());
        }
        bytes
    }

    #[test]
    fn a_list_in_all_its_forms() {
        let bytes = stored(&[
            (tag::USER_OBJ, 0, 7),
            (tag::USER, 1000, 5),
            (tag::GROUP_OBJ, 0, 4),
            (tag::MASK, 0, 5),
            (tag::OTHER, 0, 0),
        ]);
        let acl = PosixAcl::decode(&bytes).expect("sound");
        assert_eq!(acl.to_text(), "user::rwx,user:1000:r-x,group::r--,mask::r-x,other::---");
        let xattr = acl.to_xattr();
        assert_eq!(xattr[..12], [2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255]);
        assert_eq!(xattr[12..20], [2, 0, 5, 0, 0xe8, 3, 0, 0]);
        assert_eq!(xattr.len(), 4 + 5 * 8);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let sound = stored(&[(tag::USER_OBJ, 0, 7)]);
        for bytes in [&sound[..3], &sound[..15], &[&sound[..], &[0]].concat()] {
            assert!(PosixAcl::decode(bytes).is_err(), "{bytes:?}");
        }
        assert!(PosixAcl::decode(&stored(&[(3, 0, 7)])).is_err());
        assert!(PosixAcl::decode(&stored(&[(tag::OTHER, 0, 8)])).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(acl) = PosixAcl::decode(&bytes) {
                prop_assert_eq!(acl.to_xattr().len(), 4 + acl.entries.len() * 8);
            }
        }
    }
}
