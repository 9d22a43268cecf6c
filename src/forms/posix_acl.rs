//! POSIX access control lists: the attribute that holds one, and the forms that other programs know (Linux
//! `fs/xfs/xfs_acl.c`, `fs/posix_acl.c`, `include/uapi/linux/posix_acl_xattr.h`).

use crate::error::{Check, Rule};
use crate::ondisk::OnDisk;
use crate::ondisk::acl::{RawAclEntry, RawAclHdr, tag};
use zerocopy::IntoBytes;

/// What stands in the place of a user or group where there is none.
const UNDEFINED_ID: u32 = u32::MAX;
/// Version of the form that Linux shows.
const XATTR_VERSION: u32 = 2;
/// Bytes of an entry in that form.
const XATTR_ENTRY: usize = 8;

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

    /// Decodes the value of `system.posix_acl_access` or `system.posix_acl_default`; `None` when it is none.
    pub fn from_xattr(value: &[u8]) -> Option<Self> {
        let (version, rest) = value.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*version) != XATTR_VERSION || rest.len() % XATTR_ENTRY != 0 {
            return None;
        }
        let entries = rest.chunks_exact(XATTR_ENTRY).map(|entry| {
            let &[tag0, tag1, perm0, perm1, id0, id1, id2, id3] = entry else { return None };
            let tag = u32::from(u16::from_le_bytes([tag0, tag1]));
            let subject = subject_of(tag, u32::from_le_bytes([id0, id1, id2, id3]))?;
            let permissions = u16::from_le_bytes([perm0, perm1]);
            (permissions <= 7).then_some(AclEntry { subject, permissions })
        });
        Some(PosixAcl { entries: entries.collect::<Option<_>>()? })
    }

    /// The list as the value of the attribute that holds it.
    pub fn encode(&self) -> Vec<u8> {
        let count = u32::try_from(self.entries.len()).expect("invariant: a list fits memory");
        let mut bytes = RawAclHdr { cnt: count.into() }.as_bytes().to_vec();
        for entry in &self.entries {
            let (tag, id) = tag_and_id(entry.subject);
            let id = id.unwrap_or(UNDEFINED_ID).into();
            let raw = RawAclEntry { tag: u32::from(tag).into(), id, perm: entry.permissions.into(), pad: 0_u16.into() };
            bytes.extend(raw.as_bytes());
        }
        bytes
    }

    /// Whether Linux takes it: the owner, users, the group, groups, the mask, the rest, in this order; the mask is needed when
    /// there are users or groups.
    pub fn is_valid(&self) -> bool {
        let rank = |entry: &AclEntry| match entry.subject {
            AclSubject::Owner => 0,
            AclSubject::User(_) => 1,
            AclSubject::OwningGroup => 2,
            AclSubject::Group(_) => 3,
            AclSubject::Mask => 4,
            AclSubject::Other => 5,
        };
        let count = |wanted| self.entries.iter().filter(|entry| rank(entry) == wanted).count();
        let named =
            self.entries.iter().any(|entry| matches!(entry.subject, AclSubject::User(_) | AclSubject::Group(_)));
        let masks = if named { 1..=1 } else { 0..=1 };
        self.entries.is_sorted_by_key(rank)
            && [0, 2, 5].into_iter().all(|wanted| count(wanted) == 1)
            && masks.contains(&count(4))
    }

    /// The access bits that go with a list, of nine; and whether they say all that it says, so that Linux stores them alone.
    pub fn mode(&self) -> (u16, bool) {
        let of = |wanted| self.entries.iter().find(|entry| entry.subject == wanted).map(|entry| entry.permissions);
        let group = of(AclSubject::Mask).or(of(AclSubject::OwningGroup)).unwrap_or(0);
        let bits = of(AclSubject::Owner).unwrap_or(0) << 6 | group << 3 | of(AclSubject::Other).unwrap_or(0);
        let all =
            |entry: &AclEntry| matches!(entry.subject, AclSubject::Owner | AclSubject::OwningGroup | AclSubject::Other);
        (bits, self.entries.iter().all(all))
    }

    /// Lets the access bits of a file rule the list, as chmod does.
    pub fn set_mode(&mut self, bits: u16) {
        let masked = self.entries.iter().any(|entry| entry.subject == AclSubject::Mask);
        for entry in &mut self.entries {
            match entry.subject {
                AclSubject::Owner => entry.permissions = bits >> 6 & 7,
                AclSubject::Mask => entry.permissions = bits >> 3 & 7,
                AclSubject::OwningGroup if !masked => entry.permissions = bits >> 3 & 7,
                AclSubject::Other => entry.permissions = bits & 7,
                _ => {}
            }
        }
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
    let subject = subject_of(raw.tag.get(), raw.id.get()).ok_or(Check::new("acl_entry", "tag", Rule::Range))?;
    if raw.perm.get() > 7 {
        return Err(Check::new("acl_entry", "perm", Rule::Flags));
    }
    Ok(AclEntry { subject, permissions: raw.perm.get() })
}

fn subject_of(tag: u32, id: u32) -> Option<AclSubject> {
    Some(match tag {
        tag::USER_OBJ => AclSubject::Owner,
        tag::USER => AclSubject::User(id),
        tag::GROUP_OBJ => AclSubject::OwningGroup,
        tag::GROUP => AclSubject::Group(id),
        tag::MASK => AclSubject::Mask,
        tag::OTHER => AclSubject::Other,
        _ => return None,
    })
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

    #[test]
    fn a_list_and_the_access_bits() {
        let entry = |subject, permissions| AclEntry { subject, permissions };
        let (owner, group, other) =
            (entry(AclSubject::Owner, 7), entry(AclSubject::OwningGroup, 5), entry(AclSubject::Other, 4));
        let plain = PosixAcl { entries: vec![owner, group, other] };
        assert_eq!(plain.mode(), (0o754, true));
        let named = entry(AclSubject::User(5), 7);
        let mut full = PosixAcl { entries: vec![owner, named, group, entry(AclSubject::Mask, 6), other] };
        assert_eq!(full.mode(), (0o764, false));
        full.set_mode(0o4671);
        assert_eq!(full.to_text(), "user::rw-,user:5:rwx,group::r-x,mask::rwx,other::--x");
        assert!(plain.is_valid() && full.is_valid());
        for entries in [
            vec![],
            vec![owner, group],
            vec![owner, other, group],
            vec![owner, owner, group, other],
            vec![owner, named, group, other],
        ] {
            assert!(!PosixAcl { entries }.is_valid());
        }
    }

    proptest! {
        #[test]
        fn every_form_leads_back(entries in proptest::collection::vec((0_u32..6, any::<u32>(), 0_u16..8), 0..20)) {
            let entries = entries.into_iter().map(|(tag, id, permissions)| {
                let subject = subject_of(1 << tag, id).expect("a tag");
                AclEntry { subject, permissions }
            });
            let acl = PosixAcl { entries: entries.collect() };
            prop_assert_eq!(PosixAcl::from_xattr(&acl.to_xattr()), Some(acl.clone()));
            prop_assert_eq!(PosixAcl::decode(&acl.encode()), Ok(acl));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = PosixAcl::from_xattr(&bytes);
            if let Ok(acl) = PosixAcl::decode(&bytes) {
                prop_assert_eq!(acl.to_xattr().len(), 4 + acl.entries.len() * 8);
            }
        }
    }
}
