//! What `blockget` says, as data: a run of blocks of which the same is said is one message, however many lines it gives.

use std::io::{self, Write};

use super::block_type::BlockType;

/// The map that blocks belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// An allocation group.
    Group(u32),
    /// The realtime section.
    Realtime,
}

/// Who claims blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimant {
    /// A block: group, and block in it.
    Block(u32, u32),
    /// An inode.
    Inode(u64),
}

/// One or more lines of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A line, without its end.
    Text(Box<[u8]>),
    /// Each of the blocks is of another type than it should be.
    Expected {
        /// Where they are.
        space: Space,
        /// The first.
        start: u64,
        /// How many.
        len: u64,
        /// What they should be.
        want: BlockType,
        /// What they are.
        got: BlockType,
    },
    /// Each of the blocks belongs to an inode already.
    Claimed {
        /// Where they are.
        space: Space,
        /// The first.
        start: u64,
        /// How many.
        len: u64,
        /// Who claims them now.
        inode: u64,
        /// Whose they are.
        previous: u64,
    },
    /// The blocks lie outside: one line.
    OutOfRange {
        /// Where they are.
        space: Space,
        /// The first.
        start: u64,
        /// The last.
        last: u64,
    },
    /// Who wants blocks that lie outside: one line.
    ClaimedBy {
        /// Where they are.
        space: Space,
        /// The first.
        start: u64,
        /// The last.
        last: u64,
        /// Who.
        by: Claimant,
    },
    /// Each of the blocks is given a type.
    SetType {
        /// Where they are.
        space: Space,
        /// The first.
        start: u64,
        /// How many.
        len: u64,
        /// The type.
        kind: BlockType,
    },
    /// Each of the blocks is given an inode.
    SetInode {
        /// Where they are.
        space: Space,
        /// The first.
        start: u64,
        /// How many.
        len: u64,
        /// The inode.
        inode: u64,
    },
    /// An inode has one link more; how many it has by then is found when all messages are in order.
    AddLink(u64),
}

impl Message {
    /// A message of one line.
    pub fn text(line: impl Into<Vec<u8>>) -> Self {
        Message::Text(line.into().into_boxed_slice())
    }

    /// Writes its lines, each after `prefix`. `links` counts the links of inodes.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write, prefix: &[u8], links: &mut Links) -> io::Result<()> {
        let each = |out: &mut dyn Write, start: u64, len: u64, line: &dyn Fn(u64) -> String| {
            (start..start.saturating_add(len)).try_for_each(|at| {
                out.write_all(prefix)?;
                writeln!(out, "{}", line(at))
            })
        };
        match *self {
            Message::Text(ref line) => {
                out.write_all(prefix)?;
                out.write_all(line)?;
                out.write_all(b"\n")
            }
            Message::Expected { space, start, len, want, got } => each(out, start, len, &|at| {
                format!("{} expected type {} got {}", block_name(space, at), want.name(), got.name())
            }),
            Message::Claimed { space, start, len, inode, previous } => each(out, start, len, &|at| {
                let (inode, previous) = (inode.cast_signed(), previous.cast_signed());
                format!("{} claimed by inode {inode}, previous inum {previous}", block_name(space, at))
            }),
            Message::OutOfRange { space, start, last } if start == last => {
                each(out, start, 1, &|at| format!("{} out of range", block_name(space, at)))
            }
            Message::OutOfRange { space, start, last } => {
                each(out, start, 1, &|_| format!("{} out of range", blocks_name(space, start, last)))
            }
            Message::ClaimedBy { space, start, last, by } => each(out, start, 1, &|_| {
                let blocks = blocks_name(space, start, last);
                match by {
                    Claimant::Block(agno, agbno) => format!("{blocks} claimed by block {agno}/{agbno}"),
                    Claimant::Inode(ino) => format!("{blocks} claimed by inode {}", ino.cast_signed()),
                }
            }),
            Message::SetType { space, start, len, kind } => {
                each(out, start, len, &|at| format!("setting {} to {}", block_name(space, at), kind.name()))
            }
            Message::SetInode { space, start, len, inode } => each(out, start, len, &|at| {
                format!("setting inode to {} for {}", inode.cast_signed(), block_name(space, at))
            }),
            Message::AddLink(ino) => {
                let now = links.add(ino);
                each(out, 0, 1, &|_| format!("inode {} add link, now {now}", ino.cast_signed()))
            }
        }
    }
}

fn block_name(space: Space, at: u64) -> String {
    match space {
        Space::Group(agno) => format!("block {agno}/{at}"),
        Space::Realtime => format!("rtblock {at}"),
    }
}

fn blocks_name(space: Space, start: u64, last: u64) -> String {
    match space {
        Space::Group(agno) => format!("blocks {agno}/{start}..{last}"),
        Space::Realtime => format!("rtblocks {start}..{last}"),
    }
}

/// Links that directory entries give to inodes, counted while messages are written.
#[derive(Debug, Default)]
pub struct Links(std::collections::HashMap<u64, u32>);

impl Links {
    fn add(&mut self, ino: u64) -> u32 {
        let count = self.0.entry(ino).or_default();
        *count = count.wrapping_add(1);
        *count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(message: &Message) -> String {
        let (mut out, mut links) = (Vec::new(), Links::default());
        message.write(&mut out, b"> ", &mut links).expect("invariant: a vector takes all");
        String::from_utf8(out).expect("invariant: ASCII")
    }

    #[test]
    fn a_run_gives_a_line_for_each_block() {
        let space = Space::Group(3);
        let message = Message::Expected { space, start: 7, len: 2, want: BlockType::Unknown, got: BlockType::Data };
        let both = "> block 3/7 expected type unknown got data\n> block 3/8 expected type unknown got data\n";
        assert_eq!(lines(&message), both);
        let one = Message::OutOfRange { space: Space::Realtime, start: 9, last: 9 };
        assert_eq!(lines(&one), "> rtblock 9 out of range\n");
        let some = Message::OutOfRange { space, start: 9, last: 11 };
        assert_eq!(lines(&some), "> blocks 3/9..11 out of range\n");
    }

    #[test]
    fn links_are_counted_as_messages_are_written() {
        let (mut out, mut links) = (Vec::new(), Links::default());
        for ino in [5, 6, 5] {
            Message::AddLink(ino).write(&mut out, b"", &mut links).expect("invariant: a vector takes all");
        }
        let text = String::from_utf8(out).expect("invariant: ASCII");
        assert_eq!(text, "inode 5 add link, now 1\ninode 6 add link, now 1\ninode 5 add link, now 2\n");
    }
}
