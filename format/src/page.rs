//! The tables of `docs/ABI.md`.

use std::fmt::Write;

use crate::Facts;
use crate::model::{Constant, Layout, Type};
use crate::text::{grouped, pascal, upper};

/// The parts of the page: their names, and the tables between the lines that name them.
pub(crate) fn parts(facts: &Facts) -> Vec<(&str, String)> {
    let layouts = facts.layouts().filter(|layout| !layout.columns.is_empty());
    let mut parts: Vec<_> = layouts.map(|layout| (layout.name.as_str(), fields(facts, layout))).collect();
    for (table, prefix) in [("role_flags", "role_"), ("slot_state", "slot_"), ("slot_flags", "slot_flag_")] {
        parts.push((table, bits(facts, table, prefix)));
    }
    parts.push(("rpc_status", statuses(facts)));
    parts.push(("errors", errors(facts)));
    parts.push(("element_types", element_types(facts)));
    parts.push(("tuning", tuning(facts)));
    parts
}

fn row(cells: &[String]) -> String {
    let mut line = String::from("|");
    for cell in cells {
        line += if cell.is_empty() { " |" } else { " " };
        if !cell.is_empty() {
            line += cell;
            line += " |";
        }
    }
    line + "\n"
}

/// A table. Empty lines around it: Markdown wants one after the line that names the part.
fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let headings: Vec<_> = headings.iter().map(|&heading| heading.to_owned()).collect();
    let mut out = String::from("\n") + &row(&headings) + &row(&vec!["---".to_owned(); headings.len()]);
    out.extend(rows.into_iter().map(|cells| row(&cells)));
    out + "\n"
}

fn fields(facts: &Facts, layout: &Layout) -> String {
    let headings: Vec<_> = layout.columns.iter().map(String::as_str).collect();
    let digits = layout.digits;
    let rows = layout.fields.iter().map(|field| {
        let place = field.at.map_or_else(|| field.place.clone().unwrap_or_default(), |at| format!("{at:0digits$X}"));
        let name = if field.plain { field.name.clone() } else { format!("`{}`", field.name) };
        let mut cells = vec![place, field.ty.clone(), name];
        cells.extend(field.writes.clone());
        cells.push(facts.filled(&field.page));
        cells
    });
    table(&headings, rows)
}

/// A table of the page whose facts are bits, shown without the prefix of their names.
fn bits(facts: &Facts, name: &str, prefix: &str) -> String {
    let rows = facts.table(name).into_iter().map(|(flag, page)| {
        let name = upper(flag.name.trim_start_matches(prefix));
        vec![flag.number().ilog2().to_string(), format!("`{name}`"), page.unwrap_or(&flag.doc).to_owned()]
    });
    table(&["bit", "name", "meaning"], rows)
}

fn statuses(facts: &Facts) -> String {
    let rows = facts.table("rpc_status").into_iter().map(|(status, page)| {
        let name = pascal(status.name.trim_start_matches("rpc_"));
        vec![status.number().to_string(), format!("`{name}`"), page.unwrap_or(&status.doc).to_owned()]
    });
    table(&["status", "name", "meaning"], rows)
}

fn errors(facts: &Facts) -> String {
    let rows = facts
        .errors
        .iter()
        .map(|error| vec![error.number.to_string(), format!("`{}`", error.name), error.page().to_owned()]);
    table(&["number", "name", "when"], rows)
}

fn element_types(facts: &Facts) -> String {
    let rows = facts.element_types.chunk_by(|a, b| a.code == b.code).map(|types| {
        let names: Vec<_> = types.iter().map(|one| one.name.as_str()).collect();
        let bits: Vec<_> = types.iter().map(|one| one.bits.to_string()).collect();
        let mut names = names.join(", ");
        if let Some(note) = &types[0].note {
            let _ = write!(names, " ({note})");
        }
        vec![names, types[0].code.to_string(), bits.join(", ")]
    });
    table(&["element types", "code", "bits"], rows)
}

fn tuning(facts: &Facts) -> String {
    let rows = facts
        .table("tuning")
        .into_iter()
        .map(|(constant, unit)| vec![format!("`{}`", constant.name), value(&constant, unit), constant.doc]);
    table(&["constant", "value", "what it is"], rows)
}

fn value(constant: &Constant, unit: Option<&str>) -> String {
    let number = constant.number();
    if constant.ty == Type::Time {
        return time(number);
    }
    format!("{} {}", grouped(&number.to_string(), 3).replace('_', ","), unit.unwrap_or_default())
}

/// Nanoseconds in the unit in which they are a whole number.
pub(crate) fn time(ns: u64) -> String {
    let (factor, unit) = crate::text::unit(ns);
    format!("{} {}", ns / factor, if unit == "us" { "µs" } else { unit })
}
