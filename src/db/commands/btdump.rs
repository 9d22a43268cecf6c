//! `btdump`: a btree from the block or inode that one looks at down to its leaves (xfsprogs `db/btdump.c`).
//!
//! Of the index of a directory, xfs_db shows only the first block of each level: it looks for the next one under a name
//! that the field does not have. Here all of them are shown.

use std::collections::HashSet;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::options::Options;
use super::{follow, print};
use crate::db::answer::{Answer, Nothing};
use crate::db::command::Command;
use crate::db::field::{Expression, find};
use crate::db::session::Session;
use crate::db::types::{Body, TypeId, body};
use crate::error::{Check, Error, Place, Result, Rule};
use crate::ondisk::OnDisk;
use crate::ondisk::attr_leaf::{ATTR_LEAF_MAGIC, ATTR3_LEAF_MAGIC};
use crate::ondisk::da_block::{DA_NODE_MAGIC, DA3_NODE_MAGIC, RawDaBlkinfo};
use crate::ondisk::dinode::{format, metatype};
use crate::ondisk::dir_leaf::{DIR2_LEAF1_MAGIC, DIR2_LEAFN_MAGIC, DIR3_LEAF1_MAGIC, DIR3_LEAFN_MAGIC};

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "btdump",
    alias: None,
    min: 0,
    max: Some(2),
    moves: false,
    usage: "[-a] [-i]",
    brief: "show all records of a btree",
    help: "Shows the records of the btree that one looks at, from its block down to the leaves. At an inode, that is the btree of its extents, or of a metadata file; in a directory or an attribute fork, the tree of hashes.\n  -a  the btree of the inode's attribute fork\n  -i  the inner nodes, too",
    run: btdump,
}];

/// A part of the answer: a title, and the fields below it.
struct Part {
    title: String,
    data: Value,
    fields: Vec<Box<dyn Answer>>,
}

struct Parts(Vec<Part>);

impl Answer for Parts {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for part in &self.0 {
            out.write_all(part.title.as_bytes())?;
            part.fields.iter().try_for_each(|fields| fields.write_text(out))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let part = |part: &Part| {
            let mut data = part.data.clone();
            let fields: Vec<Value> = part.fields.iter().map(|fields| fields.json()).collect();
            data["fields"] = fields.into();
            data
        };
        self.0.iter().map(part).collect()
    }
}

/// The names of fields in the blocks of a tree.
#[derive(Clone, Copy)]
struct Names {
    /// What a node holds.
    node: &'static [&'static str],
    /// What a leaf holds.
    leaf: &'static [&'static str],
    /// The block to the right of a node, of a leaf.
    right: [&'static str; 2],
    /// The first child of a node.
    down: &'static str,
}

const BTREE: Names =
    Names { node: &["keys", "ptrs"], leaf: &["recs"], right: ["rightsib", "rightsib"], down: "ptrs[1]" };
const ATTR: Names = Names {
    node: &["btree"],
    leaf: &["entries", "nvlist"],
    right: ["hdr.info.forw", "hdr.info.forw"],
    down: "btree[0].before",
};
const ATTR3: Names = Names { right: ["hdr.info.hdr.forw", "hdr.info.hdr.forw"], ..ATTR };
const DIR2: Names = Names {
    node: &["nbtree"],
    leaf: &["lents"],
    right: ["nhdr.info.forw", "lhdr.info.forw"],
    down: "nbtree[0].before",
};
const DIR3: Names = Names { right: ["nhdr.info.hdr.forw", "lhdr.info.hdr.forw"], ..DIR2 };

fn btdump(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "ai")?;
    options.no_operands()?;
    let ty = session.require_position()?.ty;
    let attributes = options.has('a');
    if attributes && ty != TypeId::Inode {
        return Err(Error::Usage("-a is for inodes".to_owned()));
    }
    let mut dump = Dump { session, nodes: options.has('i'), parts: Vec::new() };
    dump.session.push();
    let done = match ty {
        TypeId::Inode => dump.inode(attributes),
        _ => dump.names(ty).and_then(|names| dump.tree(names)),
    };
    dump.session.pop()?;
    let parts = dump.parts;
    match done {
        Err(error) if parts.is_empty() => return Err(error),
        Err(error) => session.observer.warn(&error),
        Ok(()) => {}
    }
    Ok(if parts.is_empty() { Box::new(Nothing) } else { Box::new(Parts(parts)) })
}

struct Dump<'s> {
    session: &'s mut Session,
    nodes: bool,
    parts: Vec<Part>,
}

impl Dump<'_> {
    fn names(&self, ty: TypeId) -> Result<Names> {
        let crc = self.session.family().has_crc();
        match ty {
            TypeId::Bnobt | TypeId::Cntbt | TypeId::Inobt | TypeId::Finobt | TypeId::Rmapbt | TypeId::Refcntbt => {}
            TypeId::Bmapbta | TypeId::Bmapbtd | TypeId::Rtrmapbt | TypeId::Rtrefcntbt => {}
            TypeId::Attr => return Ok(if crc { ATTR3 } else { ATTR }),
            TypeId::Dir2 => return Ok(if crc { DIR3 } else { DIR2 }),
            _ => {
                let name = ty.name(self.session.family()).unwrap_or_default();
                return Err(Error::Usage(format!("a block of type {name} is no part of a btree")));
            }
        }
        Ok(BTREE)
    }

    /// The value of a field of the current block, and the one of only ones in as many bits.
    fn number(&self, field: &str) -> Result<(u64, u64)> {
        let position = self.session.require_position()?;
        let object = print::object(position, self.session.geometry());
        let Some(Body::Fields(format)) = body(position.ty, self.session.family()) else {
            return Err(Error::Usage("the current block has no fields".to_owned()));
        };
        let nodes = find(format.rows().unwrap_or_default(), &Expression::parse(field)?, &object, 0)?;
        let node = nodes.first().ok_or_else(|| Error::Usage(format!("there is no field {field}")))?.innermost();
        let size = node.size(&object);
        let number = object.number(node.offset, size);
        let number = number.ok_or_else(|| Error::Usage(format!("{field} lies outside of the block")))?;
        Ok((number, 1_u64.checked_shl(u32::try_from(size).unwrap_or(u32::MAX)).map_or(u64::MAX, |bit| bit - 1)))
    }

    /// Level of the current block; leaves are level 0.
    fn level(&self, names: Names) -> Result<u64> {
        if names.down == BTREE.down {
            return Ok(self.number("level")?.0);
        }
        let bytes = self.session.require_position()?.bytes();
        match RawDaBlkinfo::prefix(bytes).map_or(0, |(info, _)| info.magic.get()) {
            DIR2_LEAF1_MAGIC | DIR2_LEAFN_MAGIC | DIR3_LEAF1_MAGIC | DIR3_LEAFN_MAGIC => Ok(0),
            ATTR_LEAF_MAGIC | ATTR3_LEAF_MAGIC => Ok(0),
            DA_NODE_MAGIC | DA3_NODE_MAGIC => {
                let header = if names.down == DIR2.down { "nhdr.level" } else { "hdr.level" };
                Ok(self.number(header)?.0)
            }
            _ => {
                Err(Error::Usage("the current block is no part of the tree of a directory or of attributes".to_owned()))
            }
        }
    }

    /// Shows fields of the current block below a title.
    fn show(&mut self, title: String, data: Value, fields: &[&str]) -> Result<()> {
        let words = |field: &&str| vec![(*field).to_owned()];
        let fields: Result<Vec<_>> = fields.iter().map(|field| print::print(self.session, &words(field))).collect();
        self.parts.push(Part { title, data, fields: fields? });
        Ok(())
    }

    /// The tree below the current block.
    fn tree(&mut self, names: Names) -> Result<()> {
        let daddr = self.session.require_position()?.daddr;
        self.session.agno = self.session.geometry().daddr_parts(daddr).map(|(agno, _)| agno);
        let mut level = self.level(names)?;
        loop {
            if level == 0 || self.nodes {
                self.session.push();
                let done = self.row(names, level);
                self.session.pop()?;
                done?;
            }
            if level == 0 {
                return Ok(());
            }
            follow::follow(self.session, names.down)?;
            let below = self.level(names)?;
            if below + 1 != level {
                return Err(self.damaged("level", Rule::Mismatch));
            }
            level = below;
        }
    }

    fn damaged(&self, field: &'static str, rule: Rule) -> Error {
        let daddr = self.session.position().map(|position| position.daddr.0);
        Error::corrupt(Check::new("btree", field, rule), Place { daddr, ..Place::default() })
    }

    /// The current block, and all to its right.
    fn row(&mut self, names: Names, level: u64) -> Result<()> {
        let (fields, right) = if level > 0 { (names.node, names.right[0]) } else { (names.leaf, names.right[1]) };
        let mut seen = HashSet::new();
        for number in 1_u64.. {
            let position = self.session.require_position()?;
            let (ty, daddr) = (position.ty, position.daddr);
            if !seen.insert(daddr) {
                return Err(self.damaged("rightsib", Rule::Cycle));
            }
            let name = ty.name(self.session.family()).unwrap_or_default();
            let title = format!("{name} level {level} block {number} daddr {daddr}\n");
            let data = json!({ "type": name, "level": level, "block": number, "daddr": daddr.0 });
            let empty = names.down == BTREE.down && self.number("numrecs")?.0 == 0;
            self.show(title, data, if empty { &[] } else { fields })?;
            let (next, null) = self.number(right)?;
            // in a btree only ones mean that there is none, in a tree of hashes a zero
            if next == if names.down == BTREE.down { null } else { 0 } {
                return Ok(());
            }
            follow::follow(self.session, right)?;
        }
        Ok(())
    }

    /// The btree that hangs from the inode.
    fn inode(&mut self, attributes: bool) -> Result<()> {
        let inode = self.session.open_inode()?;
        let core = &inode.raw().core;
        if core.format == format::META_BTREE && !attributes {
            return match core.metatype.get() {
                metatype::RTRMAP => self.below_root("u3.rtrmapbt"),
                metatype::RTREFCOUNT => self.below_root("u3.rtrefcbt"),
                _ => Err(Error::Usage(format!("inode {} has a btree of an unknown kind", inode.ino))),
            };
        }
        let (form, extents, root) = if attributes {
            (core.aformat.cast_unsigned(), u64::from(inode.raw().attr_extents()), "a.bmbt")
        } else {
            let root = if self.session.family().has_crc() { "u3.bmbt" } else { "u.bmbt" };
            (core.format, inode.raw().data_extents(), root)
        };
        if form != format::BTREE || extents == 0 {
            let fork = if attributes { "attribute" } else { "data" };
            return Err(Error::Usage(format!("the {fork} fork of inode {} has no btree", inode.ino)));
        }
        self.below_root(root)
    }

    /// The tree whose root is the field `root` of the inode.
    fn below_root(&mut self, root: &str) -> Result<()> {
        let field = |name: &str| format!("{root}.{name}");
        let data = json!({ "root": root });
        if self.number(&field("numrecs"))?.0 == 0 {
            return Ok(());
        }
        if self.number(&field("level"))?.0 == 0 {
            return self.show(String::new(), data, &[&field("recs")]);
        }
        if self.nodes {
            self.show(String::new(), data, &[&field("keys"), &field("ptrs")])?;
        }
        follow::follow(self.session, &field("ptrs[1]"))?;
        self.tree(BTREE)
    }
}
