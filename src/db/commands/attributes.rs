//! Extended attributes of the inode that one looks at: attr_list, attr_get (xfsprogs `db/attrset.c`).

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::options::Options;
use crate::db::answer::{Answer, Bytes, bytes_value, until_zero};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::{Error, Place, Result};
use crate::forms::{Attribute, Attributes};
use crate::ondisk::attr_short::AttrNamespace;
use crate::ondisk::dir_data::MAXNAMELEN;
use crate::report::name::escape;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "attr_get",
        alias: Some("aget"),
        min: 1,
        max: None,
        moves: false,
        usage: "[-r | -u | -s | -p | -Z] name | -N FILE",
        brief: "show the value of an attribute",
        help: "Shows the value of an attribute of the inode that one looks at, up to its first zero byte (as data, all of it).\n  -r       in the namespace trusted\n  -u       in the namespace user; so it is without an option\n  -s       in the namespace security\n  -p       a parent pointer\n  -Z       a property of the filesystem, which the root directory has\n  -N FILE  take the name from this file, up to 255 bytes",
        run: attr_get,
    },
    Command {
        name: "attr_list",
        alias: Some("alist"),
        min: 0,
        max: None,
        moves: false,
        usage: "[-r | -u | -s | -p | -Z] [-v]",
        brief: "list the attributes of an inode",
        help: "Lists the attributes of the inode that one looks at.\n  -r  those in the namespace trusted\n  -u  those in the namespace user; so it is without an option\n  -s  those in the namespace security\n  -p  parent pointers\n  -Z  properties of the filesystem, which the root directory has\n  -v  with their values, each up to its first zero byte",
        run: attr_list,
    },
];

/// Before the name of a property of the filesystem.
const PROPERTY: &[u8] = b"xfs:";

/// Which attributes are meant.
#[derive(Clone, Copy)]
struct Scope {
    namespace: AttrNamespace,
    properties: bool,
}

impl Scope {
    fn of(options: &Options) -> Result<Self> {
        let namespace = match options.last_of("ruspZ") {
            None | Some('u') => AttrNamespace::User,
            Some('s') => AttrNamespace::Secure,
            Some('p') => AttrNamespace::Parent,
            Some(_) => AttrNamespace::Root,
        };
        let properties = options.has('Z');
        if properties && namespace != AttrNamespace::Root {
            return Err(Error::Usage("properties of the filesystem are in the namespace trusted".to_owned()));
        }
        Ok(Scope { namespace, properties })
    }

    /// The name as it is shown; `None` when it is not meant.
    fn shown<'a>(&self, attribute: &Attribute<'a>) -> Option<&'a [u8]> {
        let name = Some(attribute.name).filter(|_| attribute.namespace == Some(self.namespace))?;
        if self.properties { name.strip_prefix(PROPERTY) } else { Some(name) }
    }
}

fn attr_list(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "ruspvZ")?;
    options.no_operands()?;
    let (scope, verbose) = (Scope::of(&options)?, options.has('v'));
    let inode = session.inode_here()?;
    let (mut bytes, mut values) = (Vec::new(), Vec::<Value>::new());
    let attributes = Attributes::open(session.image.cache(), &inode)?;
    if let Some(attributes) = &attributes {
        attributes.for_each(&mut |attribute| {
            let listed = attribute.and_then(|attribute| {
                let Some(name) = scope.shown(&attribute) else { return Ok(()) };
                let value = if verbose { Some(attributes.value(&attribute.value)?) } else { None };
                bytes.extend_from_slice(until_zero(name));
                if let Some(value) = &value {
                    bytes.push(b'=');
                    bytes.extend_from_slice(until_zero(value));
                }
                bytes.push(b'\n');
                values.push(json!({ "name": bytes_value(name), "value": value.map(|value| bytes_value(&value)) }));
                Ok(())
            });
            if let Err(error) = listed {
                session.observer.warn(&error);
            }
            ControlFlow::Continue(())
        });
    }
    Ok(Bytes::boxed(bytes, values))
}

fn attr_get(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "ruspN:Z")?;
    let scope = Scope::of(&options)?;
    let name = match (options.value('N'), options.operands.as_slice()) {
        (Some(file), []) => from_file(file)?,
        (None, [name]) => name.as_bytes().to_vec(),
        _ => return Err(Error::Usage("attr_get takes one name, or -N".to_owned())),
    };
    if name.len() > MAXNAMELEN {
        return Err(Error::Usage(format!("a name has at most {MAXNAMELEN} bytes")));
    }
    let inode = session.inode_here()?;
    let attributes = Attributes::open(session.image.cache(), &inode)?;
    let mut found = None;
    if let Some(attributes) = &attributes {
        attributes.for_each(&mut |attribute| match attribute {
            Ok(attribute) if scope.shown(&attribute) == Some(&name) && !attribute.is_incomplete() => {
                found = Some(attributes.value(&attribute.value).map(|value| value.into_owned()));
                ControlFlow::Break(())
            }
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                session.observer.warn(&error);
                ControlFlow::Continue(())
            }
        });
    }
    let missing = || Error::Usage(format!("inode {} has no attribute {} here", inode.ino, escape(&name)));
    let value = found.ok_or_else(missing)??;
    let shown = [until_zero(&value), b"\n"].concat();
    let bytes = if scope.properties { [&name, &b"="[..], &shown].concat() } else { shown };
    Ok(Bytes::boxed(bytes, json!({ "name": bytes_value(&name), "value": bytes_value(&value) })))
}

fn from_file(path: &str) -> Result<Vec<u8>> {
    use std::io::Read;
    let mut name = Vec::new();
    let most = u64::try_from(MAXNAMELEN).unwrap_or(0);
    let read = std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut name));
    match read {
        Ok(0) => Err(Error::Usage(format!("{path} holds no name"))),
        Ok(_) => Ok(name),
        Err(error) => Err(Error::io(Place::default(), error)),
    }
}
