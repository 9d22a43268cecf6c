//! The rows of the comparison.

/// Commands that are run in one go.
#[derive(Clone, Debug)]
pub struct Row {
    /// The image that they are run on.
    pub image: String,
    /// The commands.
    pub commands: Vec<String>,
    /// The file of rows that it stands in.
    pub file: String,
    /// The line there.
    pub line: usize,
}

const FILES: &[(&str, &str)] = &[
    ("types", include_str!("rows/types.txt")),
    ("core", include_str!("rows/core.txt")),
    ("commands", include_str!("rows/commands.txt")),
    ("space", include_str!("rows/space.txt")),
];

/// All rows: one for each image that a line is run on.
pub fn rows() -> Vec<Row> {
    FILES.iter().flat_map(|(file, text)| parse(file, text)).collect()
}

fn parse(file: &str, text: &str) -> Vec<Row> {
    let mut images: Vec<&str> = Vec::new();
    let mut rows = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(names) = line.strip_prefix("= ") {
            images = names.split_whitespace().collect();
        } else if !line.is_empty() && !line.starts_with('#') {
            assert!(!images.is_empty(), "{file}:{}: no image", at + 1);
            let commands: Vec<String> = line.split("; ").map(str::to_owned).collect();
            rows.extend(images.iter().map(|image| Row {
                image: (*image).to_owned(),
                commands: commands.clone(),
                file: file.to_owned(),
                line: at + 1,
            }));
        }
    }
    rows
}
