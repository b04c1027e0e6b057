//! Standard output for what is listed: colours only on a terminal, and a closed reader (`ramway ls | head -1`)
//! is the end of the listing, not an error.

use std::io::{self, Write};

use comfy_table::{Cell, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::failure::{Failure, Outcome};

/// Writes `text` to standard output.
pub fn print(text: &str) -> Outcome {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| failure(&error))
}

/// Writes `value` as JSON with a newline.
pub fn json(value: &impl Serialize) -> Outcome {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| Failure::error(error.to_string()))?;
    text.push('\n');
    print(&text)
}

/// Says something on stderr that is not an error. Not `eprintln!`, which panics where stderr is closed.
pub fn note(text: &str) {
    let _ = writeln!(anstream::stderr(), "ramway: {}", printable(text));
}

/// The text without what a terminal acts on, but for newlines: names and labels in it may be another process's.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// A table as the listings use it: no frame, columns as wide as the terminal lets them be.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().map(|name| Cell::new(name.to_uppercase())));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// Trailing blanks off every line, which the last column's padding leaves.
pub fn render(table: &Table) -> String {
    let mut text = String::new();
    for line in table.to_string().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A write to standard output failed.
pub fn failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::quiet(0),
        _ => Failure::io(error, "cannot write to standard output"),
    }
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn nothing_reaches_the_terminal_that_it_acts_on() {
        assert_eq!(printable("\x1b[2J a\r\u{9b}\u{7f}"), "\\u{1b}[2J a\\r\\u{9b}\\u{7f}");
        assert_eq!(printable("of two\nlines, é"), "of two\nlines, é");
    }
}
