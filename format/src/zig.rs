//! Zig's constants.

use crate::text::{GENERATED, decimal, hex, quoted, wrapped};
use crate::{Constant, Facts, Type, Value};

const WIDTH: usize = 120;

/// `bindings/zig/src/facts.zig`.
pub(crate) fn file(facts: &Facts) -> String {
    let mut out = format!("//! {GENERATED}\n");
    for group in facts.groups("zig") {
        out += &format!("\n// {}\n\n", group.about);
        out.extend(group.constants.iter().map(constant));
    }
    let kind = facts.list("kind");
    out += &format!("\n// {}\n\n", kind.about);
    for item in &kind.items {
        out += &wrapped(&item.doc, "/// ", WIDTH);
        out += &format!("pub const kind_{}: u32 = {};\n", item.name, item.number);
    }
    out += "\n/// The errors, as section 14 of docs/ABI.md names them.\npub const Error = error{\n";
    out.extend(facts.errors.iter().map(|error| format!("    {},\n", error.name)));
    out += "};\n\n/// An error's number.\npub fn number(e: Error) u32 {\n    return switch (e) {\n";
    out.extend(facts.errors.iter().map(|error| format!("        error.{} => {},\n", error.name, error.number)));
    out + "    };\n}\n"
}

fn constant(constant: &Constant) -> String {
    let (ty, value) = match (constant.ty, &constant.value) {
        (_, Value::Text(text)) => ("", quoted(text)),
        (Type::Time, &Value::Number(ns)) => (": u64", decimal(ns)),
        (ty, &Value::Number(number)) => {
            let ty = match ty {
                Type::U16 => ": u16",
                Type::U32 => ": u32",
                Type::U64 => ": u64",
                _ => "",
            };
            (ty, constant.hex.map_or_else(|| decimal(number), |digits| hex(number, digits)))
        }
    };
    let name = if constant.ty == Type::Time { format!("{}_ns", constant.name) } else { constant.name.clone() };
    wrapped(&constant.doc, "/// ", WIDTH) + &format!("pub const {name}{ty} = {value};\n")
}
