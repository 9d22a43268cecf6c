//! What all sources work on.

use super::attribute::{Refused, Taken};
use super::content::{Attributes, Content, Kind, MAX_SYMLINK, Node, NodeId, check_name};
use super::data::DataSink;
use super::exclude::Exclude;
use crate::error::{Error, Result};
use crate::ondisk::dinode::DeviceNumber;
use crate::report::{Observer, name::escape};

/// A tree that sources are adding to.
pub(super) struct Filling<'a> {
    pub content: Content,
    pub sink: &'a mut dyn DataSink,
    pub observer: &'a dyn Observer,
    pub exclude: &'a Exclude,
}

impl Filling<'_> {
    /// Puts a node into a directory, in the place of what may have the name. `shown` is where it comes from.
    pub(super) fn put(
        &mut self,
        directory: NodeId,
        name: &[u8],
        node: Node,
        shown: &dyn Fn() -> String,
    ) -> Result<NodeId> {
        let id = self.content.add(node)?;
        self.name(directory, name, id, shown)?;
        Ok(id)
    }

    /// Gives a node a name, which another may have had.
    pub(super) fn name(
        &mut self,
        directory: NodeId,
        name: &[u8],
        id: NodeId,
        shown: &dyn Fn() -> String,
    ) -> Result<()> {
        check_name(name).map_err(|problem| Error::source(shown(), problem))?;
        self.content.replace(directory, name, id, self.sink)
    }

    /// Gives a file an attribute, if there is a place for it.
    pub(super) fn set_xattr(
        &self,
        attributes: &mut Attributes,
        kind: &Kind,
        (name, value): (&[u8], &[u8]),
        shown: &dyn Fn() -> String,
    ) -> Result<()> {
        let set = Taken::read(name, value).and_then(|taken| attributes.set_xattr(kind, taken));
        set.or_else(|refused| {
            let name = escape(name);
            match refused {
                Refused::Bad(problem) => Err(Error::source(shown(), format!("its attribute {name} {problem}"))),
                Refused::Foreign => {
                    let problem = format!("its attribute {name} is left out: XFS has no attributes of this kind");
                    self.observer.warn(&Error::source(shown(), problem));
                    Ok(())
                }
            }
        })
    }
}

/// A symbolic link to `target`.
pub(super) fn symlink(target: &[u8]) -> std::result::Result<Kind, &'static str> {
    match target.len() {
        0 => Err("is a symbolic link to nothing"),
        1..=MAX_SYMLINK if target.contains(&0) => Err("there is a zero byte in the target of the symbolic link"),
        1..=MAX_SYMLINK => Ok(Kind::Symlink(target.into())),
        _ => Err("the target of the symbolic link is longer than 1023 bytes, which XFS does not take"),
    }
}

/// A number that an inode can hold.
pub(super) fn device(major: u64, minor: u64) -> std::result::Result<DeviceNumber, String> {
    let number = u32::try_from(major).ok().zip(u32::try_from(minor).ok());
    let number = number.map(|(major, minor)| DeviceNumber { major, minor });
    number
        .filter(|number| number.encode().is_some())
        .ok_or_else(|| format!("the device number {major}:{minor} is too large: XFS takes up to 16383:262143"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_links_and_devices() {
        assert!(symlink(b"").is_err() && symlink(b"a\0").is_err() && symlink(&[b'x'; 1024]).is_err());
        assert!(symlink(b"x").is_ok() && symlink(&[b'x'; 1023]).is_ok());
        assert_eq!(device(511, 262_143), Ok(DeviceNumber { major: 511, minor: 262_143 }));
        assert!(device(16_384, 0).is_err() && device(0, 262_144).is_err() && device(1 << 32, 0).is_err());
    }
}
