//! Fields as JSON.

use serde_json::{Map, Value, json};

use super::format::{Null, Shape};
use super::node::Node;
use super::object::Object;
use super::row::{Bits, Row};
use super::text::only_ones;
use super::value::{NamedValue, inode_time, quota_timer, signed, uuid};

/// Fields as an object; the elements of an array of structures are gathered in a list.
pub fn object_of(nodes: &[Node], object: &Object<'_>) -> Value {
    let mut fields = Map::new();
    for node in nodes {
        let value = value_of(node, object);
        if !node.row.name.is_empty() {
            let one_of_many = node.row.base.is_some() && !matches!(value, Value::Array(_));
            match fields.get_mut(node.row.name) {
                Some(Value::Array(list)) if one_of_many => list.push(value),
                _ => {
                    let value = if one_of_many { Value::Array(vec![value]) } else { value };
                    fields.insert(node.row.name.to_owned(), value);
                }
            }
        } else if let Value::Object(inner) = value {
            fields.extend(inner);
        }
    }
    Value::Object(fields)
}

/// What an expression gave: the value, or a list of values where it stands for several.
pub fn values_of(nodes: &[Node], nested: usize, object: &Object<'_>) -> Value {
    let value = |node: &Node| match nested {
        0 => value_of(node, object),
        _ => values_of(&node.children, nested - 1, object),
    };
    match nodes {
        [node] => value(node),
        _ => nodes.iter().map(value).collect(),
    }
}

fn value_of(node: &Node, object: &Object<'_>) -> Value {
    match node.row.format.shape {
        Shape::Structure(_) => object_of(&node.children, object),
        _ if !node.children.is_empty() => object_of(&node.children, object),
        _ => {
            let many = node.range.is_some_and(|(low, high)| low != high);
            let first = node.range.map_or(0, |(low, _)| low);
            elements(node.row, node.offset, node.count(object), first, many, object)
        }
    }
}

/// Elements of a row from `bit` on: a list if there are `many`, else one.
fn elements(row: &Row, bit: Bits, count: usize, first: usize, many: bool, object: &Object<'_>) -> Value {
    if let Shape::Characters = row.format.shape {
        let bytes = object.from(bit);
        return Value::String(string_of(&bytes[..count.min(bytes.len())]));
    }
    let size = row.size(object, bit, 0);
    let mut all = (0..count).filter_map(|index| {
        let bit = bit.saturating_add(index.saturating_mul(size));
        element(row, bit, size, first + index, object)
    });
    if many { all.collect() } else { all.next().unwrap_or(Value::Null) }
}

fn element(row: &Row, bit: Bits, size: Bits, index: usize, object: &Object<'_>) -> Option<Value> {
    let number = || object.number(bit, size).unwrap_or(0);
    Some(match row.format.shape {
        Shape::Number { null, skip_zero, signed: has_sign, .. } => match number() {
            0 if skip_zero => return None,
            value if value == only_ones(size) && null == Null::LeftOut => return None,
            value if value == only_ones(size) && null == Null::Word => Value::Null,
            value if has_sign => json!(signed(value, size)),
            value => json!(value),
        },
        Shape::Uuid => json!(uuid(object, bit).to_string()),
        Shape::Time => json!(inode_time(object, bit).seconds),
        Shape::Nanoseconds => json!(inode_time(object, bit).nanoseconds),
        Shape::QuotaTimer => json!(quota_timer(object, bit).0),
        Shape::Crc => json!({ "value": number(), "state": object.crc.word() }),
        Shape::Named(names) => {
            let named = NamedValue::of(names, number(), size);
            json!({ "value": named.value, "name": named.name })
        }
        Shape::Records(rows) => {
            let fields = rows.iter().filter(|row| !row.hidden).map(|row| {
                let (offset, count) = (row.offset(object, bit, index), row.count(object, bit));
                let many = row.base.is_some();
                (row.name.to_owned(), elements(row, offset, count, row.base.unwrap_or(0), many, object))
            });
            Value::Object(fields.collect())
        }
        Shape::Characters | Shape::Structure(_) => Value::Null,
    })
}

/// Bytes as a string: zeroes at the end are cut off, what is no UTF-8 is written `\xff`.
pub(in crate::db) fn string_of(bytes: &[u8]) -> String {
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut text = String::new();
    for chunk in bytes[..len].utf8_chunks() {
        text += chunk.valid();
        for byte in chunk.invalid() {
            text += &format!("\\x{byte:02x}");
        }
    }
    text
}
