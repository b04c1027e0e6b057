//! Rust's constants: of the core, and of the C library.

use crate::model::{ElementType, List};
use crate::text::{GENERATED, decimal, grouped, pascal, quoted, unit, upper, wrapped};
use crate::{Constant, Facts, Type, Value};

const WIDTH: usize = 120;

/// `core/src/facts.rs`.
pub(crate) fn core(facts: &Facts) -> String {
    let mut out = format!("//! {GENERATED}\n//!\n//! The facts of the format and the tuning constants.\n\n");
    out += "use std::time::Duration;\n";
    for group in facts.groups("rust") {
        out += "\n";
        out += &wrapped(&group.about, "// ", WIDTH);
        out.extend(group.constants.iter().map(constant));
    }
    out.extend(facts.lists().map(list));
    out += &errors(facts);
    out += &element_types(&facts.element_types);
    out
}

fn constant(constant: &Constant) -> String {
    let (ty, value) = match (constant.ty, &constant.value) {
        (Type::Bytes, Value::Text(text)) => (format!("[u8; {}]", text.len()), format!("*b{}", quoted(text))),
        (_, Value::Text(text)) => ("&str".to_owned(), quoted(text)),
        (Type::Time, &Value::Number(ns)) => {
            let (factor, name) = unit(ns);
            let from = match name {
                "s" => "secs",
                "ms" => "millis",
                "us" => "micros",
                _ => "nanos",
            };
            ("Duration".to_owned(), format!("Duration::from_{from}({})", ns / factor))
        }
        (ty, &Value::Number(number)) => {
            let usual = match ty {
                Type::U16 => "u16",
                Type::U64 => "u64",
                Type::Size => "usize",
                _ => "u32",
            };
            let value = match constant.hex {
                None => decimal(number),
                Some(digits) if digits > 4 => format!("0x{}", grouped(&format!("{number:0digits$X}"), 4)),
                Some(digits) => format!("0x{number:0digits$X}"),
            };
            (constant.rust_type.clone().unwrap_or_else(|| usual.to_owned()), value)
        }
    };
    // In Rust's documentation a bracket begins a link.
    wrapped(&constant.doc.replace('[', "\\["), "/// ", WIDTH)
        + &format!("pub const {}: {ty} = {value};\n", upper(&constant.name))
}

fn list(list: &List) -> String {
    let name = pascal(&list.name);
    let mut out = format!("\n/// {}\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n#[repr(u32)]\n", list.about);
    out += &format!("pub enum {name} {{\n");
    for item in &list.items {
        out += &wrapped(&item.doc, "    /// ", WIDTH);
        out += &format!("    {} = {},\n", pascal(&item.name), item.number);
    }
    out += &format!("}}\n\nimpl {name} {{\n    /// The one with this number, if there is one.\n");
    out += "    pub const fn from_u32(value: u32) -> Option<Self> {\n        match value {\n";
    for item in &list.items {
        out += &format!("            {} => Some(Self::{}),\n", item.number, pascal(&item.name));
    }
    out += "            _ => None,\n        }\n    }\n\n    /// As people read it.\n";
    out += "    pub const fn name(self) -> &'static str {\n        match self {\n";
    for item in &list.items {
        out += &format!("            Self::{} => {},\n", pascal(&item.name), quoted(&list.shown(item)));
    }
    out + "        }\n    }\n}\n"
}

fn errors(facts: &Facts) -> String {
    let mut out = String::from(
        "\n/// Gives a macro every kind of error: documentation, name, number, and the text of an error that says nothing \
         more.\nmacro_rules! error_kinds {\n    ($to:ident) => {\n        $to! {\n",
    );
    for error in &facts.errors {
        out += &wrapped(&error.doc(), "            /// ", WIDTH);
        out += &format!("            {} = {}, {};\n", error.name, error.number, quoted(&error.text));
    }
    out + "        }\n    };\n}\npub(crate) use error_kinds;\n"
}

fn element_types(types: &[ElementType]) -> String {
    let mut out = String::from(
        "\n/// Gives a macro every type of a tensor's elements: constant, DLPack's code, bits, name, documentation.\n\
         macro_rules! element_types {\n    ($to:ident) => {\n        $to! {\n",
    );
    for one in types {
        let (name, doc) = (quoted(&one.name), quoted(&one.doc));
        out += &format!("            {} = {}, {}, {name}, {doc};\n", one.rust, one.code, one.bits);
    }
    out + "        }\n    };\n}\npub(crate) use element_types;\n"
}
