//! Languages across and down.

use comfy_table::{Cell, CellAlignment, Table, presets};

/// A table of one cell a pair: `cell(producer, consumer)`.
pub fn pairs(names: &[&str], mut cell: impl FnMut(usize, usize) -> String) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    let mut head = vec!["from \\ to".to_owned()];
    head.extend(names.iter().map(|name| (*name).to_owned()));
    table.set_header(head);
    for (row, name) in names.iter().enumerate() {
        let mut line = vec![Cell::new(name)];
        line.extend((0..names.len()).map(|column| Cell::new(cell(row, column))));
        table.add_row(line);
    }
    table
}

/// A table of rows whose first `texts` columns are text and whose others are figures.
pub fn figures(head: &[&str], texts: usize, rows: &[Vec<String>]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_header(head.to_vec());
    for row in rows {
        table.add_row(row.iter().enumerate().map(|(column, text)| {
            let alignment = if column < texts { CellAlignment::Left } else { CellAlignment::Right };
            Cell::new(text).set_alignment(alignment)
        }));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_send_and_columns_receive() {
        let names = ["Rust", "Go"];
        let text = pairs(&names, |p, c| format!("{}>{}", names[p], names[c])).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[1].contains("Rust") && lines[1].contains("Go"), "{text}");
        assert!(lines[3].contains("Rust>Rust") && lines[3].contains("Rust>Go"), "{text}");
        assert!(lines[4].contains("Go>Rust") && lines[4].contains("Go>Go"), "{text}");
    }

    #[test]
    fn figures_stand_right() {
        let text = figures(&["what", "ns"], 1, &[vec!["a".to_owned(), "1".to_owned()]]).to_string();
        assert!(text.contains("│ a    ┆  1 │"), "{text}");
    }
}
