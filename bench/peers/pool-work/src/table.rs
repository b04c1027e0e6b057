//! Tables of figures.

use comfy_table::{CellAlignment, Table, presets};

/// The first column to the left, the others to the right.
pub fn table<S: AsRef<str>>(head: &[&str], rows: impl IntoIterator<Item = Vec<S>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(head.iter().copied());
    for row in rows {
        table.add_row(row.iter().map(AsRef::as_ref));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// A number with as many digits as say something.
pub fn short(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".into(),
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => grouped(value.round() as i64),
    }
}

/// A whole number with a comma before each three digits.
fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 3.456, 34.56, 345.6, 1_234_567.0, f64::NAN].map(short);
        assert_eq!(shown, ["0.00", "3.46", "34.6", "346", "1,234,567", "-"]);
    }
}
