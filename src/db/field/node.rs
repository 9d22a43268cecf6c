//! Fields found in an object: a tree of rows with their places.

use super::expression::Expression;
use super::format::Shape;
use super::object::Object;
use super::row::{Bits, Row};
use crate::error::{Error, Result};

/// A field in an object, or a range of an array's elements.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its row.
    pub row: &'static Row,
    /// Where the structure lies that it is in.
    pub start: Bits,
    /// Where the field lies, or the first element of the range.
    pub offset: Bits,
    /// First and last index; `None` for what is no array.
    pub range: Option<(usize, usize)>,
    /// The fields in it that are to be shown.
    pub children: Vec<Node>,
}

impl Node {
    /// How many elements there are in the range, or in a field that is no array. An array never reaches behind the end.
    pub fn count(&self, object: &Object<'_>) -> usize {
        let count = self.row.count(object, self.start);
        let Some((low, high)) = self.range else { return count };
        let asked = high.saturating_sub(low).saturating_add(1);
        let size = self.row.size(object, self.start, 0).max(1);
        count.min(asked).min(object.bits().saturating_sub(self.offset) / size)
    }

    /// Size of an element.
    pub fn size(&self, object: &Object<'_>) -> Bits {
        self.row.size(object, self.start, 0)
    }

    /// The field that an expression without ranges leads to: the first child of each level.
    pub fn innermost(&self) -> &Node {
        let mut node = self;
        while let Some(child) = node.children.first() {
            node = child;
        }
        node
    }
}

/// The fields among `rows` that an expression names, in the structure at `start`. An array of which fields are asked for,
/// or that has structures, gives a node for each element.
///
/// # Errors
/// `Usage` when there is no such field, or an index is out of range.
pub fn find(rows: &'static [Row], expression: &Expression, object: &Object<'_>, start: Bits) -> Result<Vec<Node>> {
    let name = &expression.name;
    let row = rows.iter().find(|row| row.name == name && row.count(object, start) > 0);
    let row = row.ok_or_else(|| Error::Usage(format!("there is no field {name}")))?;
    let range = range(row, expression, object, start)?;
    build(row, range, expression.child.as_deref(), object, start)
}

/// All fields of the structure at `start` that are shown without being named.
///
/// # Errors
/// Those of [`find`] cannot happen here.
pub fn all(rows: &'static [Row], object: &Object<'_>, start: Bits) -> Result<Vec<Node>> {
    let mut nodes = Vec::new();
    for row in rows.iter().filter(|row| !row.hidden) {
        let count = row.count(object, start);
        if count > 0 {
            let range = row.base.map(|base| (base, base + count - 1));
            nodes.extend(build(row, range, None, object, start)?);
        }
    }
    Ok(nodes)
}

/// The first field of this shape, depth first.
pub fn first_of(rows: &'static [Row], wanted: fn(&Shape) -> bool, object: &Object<'_>, start: Bits) -> Option<Node> {
    rows.iter().find_map(|row| {
        let count = row.count(object, start);
        let index = row.base.unwrap_or(0);
        let offset = || row.offset(object, start, index);
        let range = row.base.map(|base| (base, base));
        if wanted(&row.format.shape) {
            return Some(Node { row, start, offset: offset(), range, children: Vec::new() });
        }
        let rows = row.format.rows().filter(|_| count > 0)?;
        let child = first_of(rows, wanted, object, offset())?;
        Some(Node { row, start, offset: offset(), range, children: vec![child] })
    })
}

/// First and last index that are asked for.
fn range(row: &Row, expression: &Expression, object: &Object<'_>, start: Bits) -> Result<Option<(usize, usize)>> {
    let Some(base) = row.base else {
        return match expression.low {
            Some(_) => Err(Error::Usage(format!("{} is no array", row.name))),
            None => Ok(None),
        };
    };
    let last = base + row.count(object, start) - 1;
    let Some(low) = expression.low else { return Ok(Some((base, last))) };
    let high = expression.high.unwrap_or(low);
    let allowed = base..=last;
    if !allowed.contains(&low) || !allowed.contains(&high) {
        return Err(Error::Usage(format!("{} has the indexes {base} to {last}, not {low} to {high}", row.name)));
    }
    Ok(Some((low, high)))
}

fn build(
    row: &'static Row,
    range: Option<(usize, usize)>,
    child: Option<&Expression>,
    object: &Object<'_>,
    start: Bits,
) -> Result<Vec<Node>> {
    let structure = matches!(row.format.shape, Shape::Structure(_));
    let single = |range: Option<(usize, usize)>| -> Result<Node> {
        let offset = row.offset(object, start, range.map_or(0, |(low, _)| low));
        let children = match (child, row.format.rows()) {
            (Some(child), Some(rows)) => find(rows, child, object, offset)?,
            (Some(_), None) => return Err(Error::Usage(format!("there are no fields in {}", row.name))),
            (None, Some(rows)) if structure => all(rows, object, offset)?,
            (None, _) => Vec::new(),
        };
        Ok(Node { row, start, offset, range, children })
    };
    match range {
        Some((low, high)) if structure || child.is_some() => {
            (low..=high.max(low)).map(|index| single(Some((index, index)))).collect()
        }
        _ => Ok(vec![single(range)?]),
    }
}
