//! C's and C++'s constants, and the status numbers of the C library.

use crate::text::{GENERATED, decimal, quoted, snake, upper, wrapped};
use crate::{Constant, Facts, Type, Value};

const WIDTH: usize = 120;

/// `capi/include/ramway/facts.h`: what `ramway_inline.h` needs.
pub(crate) fn header(facts: &Facts) -> String {
    let mut out = format!("/* {GENERATED} */\n");
    out += "/* The facts of the format that the hot path needs. */\n#ifndef RAMWAY_FACTS_H\n#define RAMWAY_FACTS_H\n";
    for group in facts.groups("c") {
        out += &format!("\n/* ---- {} ---- */\n\n", group.about);
        out.extend(group.constants.iter().map(constant));
    }
    out + "\n#endif\n"
}

fn constant(constant: &Constant) -> String {
    let value = match (constant.ty, &constant.value) {
        (_, Value::Text(text)) => quoted(text),
        (ty, &Value::Number(number)) => {
            let suffix = if ty == Type::U64 { "ull" } else { "u" };
            let value =
                constant.hex.map_or_else(|| decimal(number).replace('_', ""), |digits| format!("0x{number:0digits$X}"));
            value + suffix
        }
    };
    let short = format!("/* {} */\n", constant.doc);
    let comment = if short.len() <= WIDTH + 1 {
        short
    } else {
        let lines = wrapped(&constant.doc, " * ", WIDTH);
        format!("/*{} */\n", lines.trim_start_matches(" *").trim_end())
    };
    comment + &format!("#define RAMWAY_{} {value}\n", upper(&constant.name))
}

/// `capi/src/facts.rs`.
pub(crate) fn library(facts: &Facts) -> String {
    let mut out = format!(
        "//! {GENERATED}\n//!\n//! The status numbers, and those that calls take and give.\n\nuse ramway_core::ErrorKind;\n\n"
    );
    out += &numbers(facts);
    out += "/// What a call returns: 0 for success, else one of the error numbers that all of Ramway's languages share. New\n\
            /// numbers may be added at the end.\n#[repr(C)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n\
            pub enum ramway_status {\n    /// Success.\n    RAMWAY_OK = 0,\n";
    let name = |error: &str| format!("RAMWAY_{}", upper(&snake(error)));
    for error in &facts.errors {
        out += &wrapped(&error.c(), "    /// ", WIDTH);
        out += &format!("    {} = {},\n", name(&error.name), error.number);
    }
    out +=
        "}\n\nimpl From<ErrorKind> for ramway_status {\n    fn from(kind: ErrorKind) -> Self {\n        match kind {\n";
    for error in facts.errors.iter().filter(|error| error.name != "Os") {
        out += &format!("            ErrorKind::{} => Self::{},\n", error.name, name(&error.name));
    }
    out += "            // `ErrorKind` may grow; a number that this library does not know is not made up.\n";
    out + "            _ => Self::RAMWAY_OS,\n        }\n    }\n}\n"
}

/// The numbers that C's calls take and give: kinds of segments, tensors, types of elements.
fn numbers(facts: &Facts) -> String {
    let mut out = String::new();
    let mut define = |doc: &str, name: &str, ty: &str, value: &str| {
        out += &wrapped(doc, "/// ", WIDTH);
        out += &format!("pub const RAMWAY_{name}: {ty} = {value};\n");
    };
    // A bus has no name, so no call shows one.
    for item in facts.list("kind").items.iter().filter(|item| item.name != "bus") {
        let doc = format!("What a segment is. {}", item.doc);
        define(&doc, &format!("KIND_{}", upper(&item.name)), "u32", &item.number.to_string());
    }
    define("A tensor has at most this many dimensions.", "NDIM_MAX", "usize", &facts.number("ndim_max").to_string());
    let doc = "The type id of a message that is a tensor: `ramway_message_tensor` reads it.";
    define(doc, "TYPE_ID_TENSOR", "u32", &format!("0x{:X}", facts.number("type_id_tensor")));
    for types in facts.element_types.chunk_by(|a, b| a.code == b.code) {
        let names: Vec<_> = types.iter().map(|one| one.name.as_str()).collect();
        let doc = match types {
            [one] => one.doc.clone(),
            _ => format!("The code of {}.", names.join(", ")),
        };
        // `int8` to `int64` are of the code INT.
        let name =
            if names[0].contains('_') { names[0] } else { names[0].trim_end_matches(|c: char| c.is_ascii_digit()) };
        define(&doc, &format!("DTYPE_{}", upper(name)), "u8", &types[0].code.to_string());
    }
    let doc = "RPC methods from here up are Ramway's own: an application's are below.";
    define(doc, "METHOD_RESERVED", "u32", &format!("0x{:X}", facts.number("method_reserved")));
    for (status, _) in facts.table("rpc_status") {
        let doc = format!("How a server says that a call has ended. {}", status.doc);
        define(&doc, &upper(&status.name), "u32", &status.number().to_string());
    }
    out + "\n"
}

/// The constants of C++'s `rpc::status`.
pub(crate) fn cpp_rpc_status(facts: &Facts) -> String {
    let mut out = String::new();
    for (status, _) in facts.table("rpc_status") {
        let name = status.name.trim_start_matches("rpc_");
        out += &wrapped(&status.doc, "    /// ", WIDTH);
        out += &format!("    {name} = RAMWAY_{},\n", upper(&status.name));
    }
    out
}

/// The constants of C++'s `status`.
pub(crate) fn cpp_status(facts: &Facts) -> String {
    let mut out = String::from("    ok = RAMWAY_OK,\n");
    for error in &facts.errors {
        let name = snake(&error.name);
        out += &format!("    {name} = RAMWAY_{},\n", upper(&name));
    }
    out
}
