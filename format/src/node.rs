//! JavaScript's constants.

use crate::text::{GENERATED, block_comment, decimal, quoted, unit, upper};
use crate::{Constant, Facts, Type, Value};

const WIDTH: usize = 120;

/// `bindings/node/lib/facts.ts`.
pub(crate) fn file(facts: &Facts) -> String {
    let mut out = format!("// {GENERATED}\n");
    out += "//\n// The facts of the format and the tuning constants. All numbers of shared memory are little-endian, as are all\n";
    out += "// machines that Ramway runs on.\n";
    for group in facts.groups("node") {
        out += &format!("\n// {}\n\n", group.about);
        out.extend(group.constants.iter().map(constant));
    }
    out += "\n/** The kinds of errors, the same in every language (docs/ABI.md). */\nexport type ErrorKind =\n";
    let kinds: Vec<_> = facts.errors.iter().map(|error| format!("  | '{}'", error.name)).collect();
    out += &(kinds.join("\n") + ";\n");
    out += "\n/** The types of a tensor's elements, by NumPy's or ml_dtypes' name: DLPack's code and the bits of one element. */\n";
    out += "export const ELEMENT_TYPES = {\n";
    for one in &facts.element_types {
        out += &format!("  {}: [{}, {}],\n", one.name, one.code, one.bits);
    }
    out + "} as const;\n"
}

fn constant(constant: &Constant) -> String {
    let name = upper(&constant.name);
    let (name, value, note) = match (constant.ty, &constant.value) {
        (_, Value::Text(text)) => (name, format!("'{}'", quoted(text).trim_matches('"')), ""),
        (Type::Time, &Value::Number(ns)) => (name + "_MS", milliseconds(ns), " In milliseconds."),
        // A ring's block is an array of 32-bit words.
        (_, &Value::Number(number)) if name.starts_with("OFF_") => {
            let name = name.trim_start_matches("OFF_").trim_start_matches("ROLE_").to_owned();
            (name, format!("0x{number:0digits$x} >> 2", digits = constant.hex.unwrap_or(1)), " As an index of words.")
        }
        (_, &Value::Number(number)) => {
            let value = constant.hex.map_or_else(|| decimal(number), |digits| format!("0x{number:0digits$x}"));
            (name, value, "")
        }
    };
    block_comment(&format!("{}{note}", constant.doc), "", WIDTH) + &format!("export const {name} = {value};\n")
}

fn milliseconds(ns: u64) -> String {
    match unit(ns) {
        (_, "ms" | "s") => decimal(ns / 1_000_000),
        _ => format!("{}", ns as f64 / 1e6),
    }
}
