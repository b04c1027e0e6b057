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
    let mut out = format!("//! {GENERATED}\n//!\n//! The status numbers.\n\nuse ramway_core::ErrorKind;\n\n");
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

/// The constants of C++'s `status`.
pub(crate) fn cpp_status(facts: &Facts) -> String {
    let mut out = String::from("    ok = RAMWAY_OK,\n");
    for error in &facts.errors {
        let name = snake(&error.name);
        out += &format!("    {name} = RAMWAY_{},\n", upper(&name));
    }
    out
}
