//! Java's constants, and the constants of its enumerations.

use crate::text::{GENERATED, block_comment, decimal, little_endian, quoted, snake, upper};
use crate::{Constant, Facts, Type, Value};

const WIDTH: usize = 130;

/// `Facts.java`.
pub(crate) fn file(facts: &Facts) -> String {
    let mut out = format!("// {GENERATED}\npackage dev.ramway;\n\n");
    out += "/** The facts of the format and the tuning constants: docs/ABI.md as numbers. */\nfinal class Facts {\n";
    for group in facts.groups("java") {
        out += &format!("    // {}\n\n", group.about);
        out.extend(group.constants.iter().map(constant));
        out.push('\n');
    }
    for list in facts.lists() {
        out += &format!("    // {}\n\n", list.about);
        for item in &list.items {
            let name = upper(&format!("{}_{}", list.name.trim_end_matches("_type"), item.name));
            out += &block_comment(&item.doc, "    ", WIDTH);
            out += &format!("    static final int {name} = {};\n", item.number);
        }
        out.push('\n');
    }
    out + "    private Facts() {}\n}\n"
}

fn constant(constant: &Constant) -> String {
    let name = upper(&constant.name);
    let (ty, name, value) = match (constant.ty, &constant.value) {
        (Type::Bytes, Value::Text(text)) => ("long", name, format!("0x{:016X}L", little_endian(text))),
        (_, Value::Text(text)) => ("String", name, quoted(text)),
        (Type::Time, &Value::Number(ns)) => ("long", name + "_NANOS", format!("{}L", decimal(ns))),
        (ty, &Value::Number(number)) => {
            let value = constant.hex.map_or_else(|| decimal(number), |digits| format!("0x{number:0digits$X}"));
            if ty == Type::U64 { ("long", name, value + "L") } else { ("int", name, value) }
        }
    };
    let note = if constant.ty == Type::Bytes { " As a little-endian number." } else { "" };
    let note = if constant.ty == Type::Time { " In nanoseconds." } else { note };
    block_comment(&format!("{}{note}", html(&constant.doc)), "    ", WIDTH)
        + &format!("    static final {ty} {name} = {value};\n")
}

/// The constants of `ErrorKind`.
pub(crate) fn errors(facts: &Facts) -> String {
    let mut out = String::new();
    for (i, error) in facts.errors.iter().enumerate() {
        let end = if i + 1 == facts.errors.len() { ';' } else { ',' };
        out += &block_comment(&html(&format!("{}: {}", error.name, error.doc())), "    ", WIDTH);
        let (name, text) = (quoted(&error.name), quoted(&error.text));
        out += &format!("    {}({}, {name}, {text}){end}\n", upper(&snake(&error.name)), error.number);
    }
    out
}

/// The constants of `ElementType`.
pub(crate) fn element_types(facts: &Facts) -> String {
    let mut out = String::new();
    for (i, one) in facts.element_types.iter().enumerate() {
        let end = if i + 1 == facts.element_types.len() { ';' } else { ',' };
        out += &block_comment(&one.doc, "    ", WIDTH);
        out += &format!("    {}({}, {}){end}\n", upper(&one.name), one.code, one.bits);
    }
    out
}

/// A text for javadoc: back-quotes are code.
fn html(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split('`').enumerate() {
        if i % 2 == 1 {
            out += &format!("{{@code {part}}}");
        } else {
            out += &part.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        }
    }
    out
}
