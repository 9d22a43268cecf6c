//! A header block. The layout is that of the crate `tar`; numbers are read here, in all forms.

use tar::{GnuExtSparseHeader, GnuSparseHeader};

use super::number;
use super::stream::BLOCK;

/// What a member is, by the letter in its header.
pub(super) mod kind {
    pub const OLD_FILE: u8 = 0;
    pub const FILE: u8 = b'0';
    pub const HARD_LINK: u8 = b'1';
    pub const SYMLINK: u8 = b'2';
    pub const CHARACTER: u8 = b'3';
    pub const BLOCK: u8 = b'4';
    pub const DIRECTORY: u8 = b'5';
    pub const FIFO: u8 = b'6';
    /// A file that had better be contiguous.
    pub const CONTIGUOUS: u8 = b'7';
    /// Records for the next member.
    pub const RECORDS: u8 = b'x';
    /// The same, of Solaris.
    pub const SOLARIS_RECORDS: u8 = b'X';
    /// Records for all members that follow.
    pub const GLOBAL_RECORDS: u8 = b'g';
    /// GNU: a folder, with the names in it.
    pub const GNU_FOLDER: u8 = b'D';
    /// GNU: the path of the next member.
    pub const GNU_NAME: u8 = b'L';
    /// GNU: the target of the next member.
    pub const GNU_LINK: u8 = b'K';
    /// GNU: a sparse file.
    pub const GNU_SPARSE: u8 = b'S';
    /// GNU: the name of the archive.
    pub const GNU_VOLUME: u8 = b'V';
    /// GNU: a file goes on from another archive.
    pub const GNU_CONTINUED: u8 = b'M';
}

/// A header block whose sum is right.
pub(super) struct Header {
    header: tar::Header,
}

/// The numbers of a header; `None`: what stands there is no number.
pub(super) struct Numbers {
    pub mode: Option<i64>,
    pub uid: Option<i64>,
    pub gid: Option<i64>,
    pub size: Option<i64>,
    pub mtime: Option<i64>,
    pub major: Option<i64>,
    pub minor: Option<i64>,
}

impl Header {
    /// A block; `None` when it is no header.
    pub fn new(block: &[u8; BLOCK]) -> Option<Self> {
        let header = tar::Header::from_byte_slice(block).clone();
        let written = number::field(&header.as_old().cksum)?;
        let cksum = 148..156;
        let counted = block.iter().enumerate().map(|(at, byte)| if cksum.contains(&at) { b' ' } else { *byte });
        // very old programs added up signed bytes
        let unsigned: i64 = counted.clone().map(i64::from).sum();
        let signed: i64 = counted.map(|byte| i64::from(byte.cast_signed())).sum();
        (written == unsigned || written == signed).then_some(Header { header })
    }

    /// What the member is.
    pub fn kind(&self) -> u8 {
        self.header.as_old().linkflag[0]
    }

    /// The path, with the prefix that ustar has.
    pub fn path(&self) -> Vec<u8> {
        let name = text(&self.header.as_old().name);
        match self.header.as_ustar().map(|ustar| text(&ustar.prefix)) {
            Some(prefix) if !prefix.is_empty() => [prefix, b"/", name].concat(),
            _ => name.to_vec(),
        }
    }

    /// The target of a link.
    pub fn link(&self) -> &[u8] {
        text(&self.header.as_old().linkname)
    }

    /// The names of user and group; empty where there are none.
    pub fn names(&self) -> (&[u8], &[u8]) {
        let ustar = self.header.as_ustar().map(|ustar| (&ustar.uname, &ustar.gname));
        let names = ustar.or_else(|| self.header.as_gnu().map(|gnu| (&gnu.uname, &gnu.gname)));
        names.map_or((b"", b""), |(user, group)| (text(user), text(group)))
    }

    /// The numbers. Old headers have none of devices.
    pub fn numbers(&self) -> Numbers {
        let old = self.header.as_old();
        let ustar = self.header.as_ustar().map(|ustar| (&ustar.dev_major, &ustar.dev_minor));
        let device = ustar.or_else(|| self.header.as_gnu().map(|gnu| (&gnu.dev_major, &gnu.dev_minor)));
        Numbers {
            mode: number::field(&old.mode),
            uid: number::field(&old.uid),
            gid: number::field(&old.gid),
            size: number::field(&old.size),
            mtime: number::field(&old.mtime),
            major: device.map_or(Some(0), |(major, _)| number::field(major)),
            minor: device.map_or(Some(0), |(_, minor)| number::field(minor)),
        }
    }

    /// The first pieces of a sparse file of GNU tar, and its size; `None` when it is none.
    pub fn sparse(&self) -> Option<(Pieces, i64)> {
        let gnu = self.header.as_gnu()?;
        Some((Pieces::of(&gnu.sparse, gnu.isextended[0])?, number::field(&gnu.realsize)?))
    }
}

/// Pieces of a sparse file.
pub(super) struct Pieces {
    /// First byte and length.
    pub list: Vec<(i64, i64)>,
    /// Whether a block with more follows.
    pub go_on: bool,
}

impl Pieces {
    fn of(stored: &[GnuSparseHeader], go_on: u8) -> Option<Self> {
        let used = stored.iter().filter(|piece| piece.offset[0] != 0 || piece.numbytes[0] != 0);
        let list = used.map(|piece| number::field(&piece.offset).zip(number::field(&piece.numbytes)));
        Some(Pieces { list: list.collect::<Option<_>>()?, go_on: go_on == 1 })
    }

    /// From a block that goes on with them.
    pub fn more(block: &[u8; BLOCK]) -> Option<Self> {
        let mut header = GnuExtSparseHeader::new();
        header.as_mut_bytes().copy_from_slice(block);
        Pieces::of(&header.sparse, header.isextended[0])
    }
}

/// A field up to its zero byte.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(change: impl FnOnce(&mut tar::Header)) -> [u8; BLOCK] {
        let mut header = tar::Header::new_ustar();
        change(&mut header);
        header.set_cksum();
        *header.as_bytes()
    }

    #[test]
    fn a_prefix_belongs_to_the_path() {
        let long = format!("{}/{}", "p".repeat(150), "n".repeat(100));
        let bytes = block(|header| header.set_path(&long).expect("it fits"));
        assert_eq!(Header::new(&bytes).expect("a header").path(), long.as_bytes());
    }

    #[test]
    fn the_sum_decides_what_a_header_is() {
        let mut bytes = block(|header| {
            header.set_mode(0o640);
            header.set_username("u\u{e9}").expect("it fits");
        });
        let header = Header::new(&bytes).expect("a header");
        assert_eq!((header.numbers().mode, header.names().0), (Some(0o640), "u\u{e9}".as_bytes()));
        bytes[200] ^= 1;
        assert!(Header::new(&bytes).is_none() && Header::new(&[0; BLOCK]).is_none());
        bytes[200] ^= 1;
        let signed = bytes.iter().enumerate().map(|(at, byte)| {
            i64::from(if (148..156).contains(&at) { b' '.cast_signed() } else { byte.cast_signed() })
        });
        let signed: i64 = signed.sum();
        bytes[148..156].copy_from_slice(format!("{signed:06o}\0 ").as_bytes());
        assert!(Header::new(&bytes).is_some());
    }
}
