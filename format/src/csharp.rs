//! C#'s constants and enumerations.

use crate::model::List;
use crate::text::{GENERATED, decimal, little_endian, pascal, quoted, wrapped};
use crate::{Constant, Facts, Type, Value};

const WIDTH: usize = 125;

/// `Facts.cs`.
pub(crate) fn file(facts: &Facts) -> String {
    let mut out = format!("// {GENERATED}\nnamespace Ramway\n{{\n");
    out += &enumeration(facts.list("kind"), "public enum SegmentKind");
    out += &enumeration(facts.list("handshake_type"), "internal enum HandshakeType : uint");
    out += &summary(
        "What went wrong. The numbers are part of the format and never change; every language has the same ones.",
        4,
    );
    out += "    public enum ErrorKind\n    {\n";
    for error in &facts.errors {
        out += &summary(&error.doc(), 8);
        out += &format!("        {} = {},\n", error.name, error.number);
    }
    out += "    }\n\n";
    let about = "What a tensor's elements are: DLPack's type code in the upper byte, the bits of one element in the lower. In the \
                 order of the format's table, with the names of NumPy and ml_dtypes.";
    out += &summary(about, 4);
    out += "    public enum ElementType : ushort\n    {\n";
    for one in &facts.element_types {
        out += &summary(&one.doc, 8);
        out += &format!("        {} = ({} << 8) | {},\n", element(one), one.code, one.bits);
    }
    out += "    }\n\n";
    out += &summary("The facts of the format and the tuning constants: docs/ABI.md as numbers.", 4);
    out += "    internal static class Facts\n    {\n";
    for group in facts.groups("csharp") {
        out += &format!("        // {}\n\n", group.about);
        out.extend(group.constants.iter().map(constant));
        out.push('\n');
    }
    out += &summary("What is said where there is nothing more to say about an error; the first is number 1's.", 8);
    out += "        internal static readonly string[] ErrorTexts =\n        {\n";
    out.extend(facts.errors.iter().map(|error| format!("            {},\n", quoted(&error.text))));
    out += "        };\n\n";
    out += &summary("Every type of a tensor's elements and its name, in the order of the format's table.", 8);
    out += "        internal static readonly (ElementType Type, string Name)[] ElementTypes =\n        {\n";
    for one in &facts.element_types {
        out += &format!("            (ElementType.{}, {}),\n", element(one), quoted(&one.name));
    }
    out + "        };\n    }\n}\n"
}

fn summary(text: &str, indent: usize) -> String {
    let indent = " ".repeat(indent);
    let text = xml(text);
    let short = format!("{indent}/// <summary>{text}</summary>\n");
    if short.chars().count() <= WIDTH + 1 {
        return short;
    }
    format!("{indent}/// <summary>\n{}{indent}/// </summary>\n", wrapped(&text, &format!("{indent}/// "), WIDTH))
}

/// A text for documentation: back-quotes are code.
fn xml(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let parts = text.split('`').enumerate();
    parts.map(|(i, part)| if i % 2 == 1 { format!("<c>{part}</c>") } else { part.to_owned() }).collect()
}

fn enumeration(list: &List, declaration: &str) -> String {
    let mut out = summary(&list.about, 4) + &format!("    {declaration}\n    {{\n");
    for item in &list.items {
        out += &summary(&item.doc, 8);
        out += &format!("        {} = {},\n", pascal(&item.name), item.number);
    }
    out + "    }\n\n"
}

fn constant(constant: &Constant) -> String {
    let name = pascal(&constant.name);
    let (ty, name, value) = match (constant.ty, &constant.value) {
        (Type::Bytes, Value::Text(text)) => ("ulong", name, format!("0x{:016X}", little_endian(text))),
        (_, Value::Text(text)) => ("string", name, quoted(text)),
        (Type::Time, &Value::Number(ns)) => ("long", name + "Nanos", decimal(ns)),
        (ty, &Value::Number(number)) => {
            let ty = match ty {
                Type::U16 => "ushort",
                Type::U32 => "uint",
                Type::U64 => "ulong",
                _ => "int",
            };
            (ty, name, constant.hex.map_or_else(|| decimal(number), |digits| format!("0x{number:0digits$X}")))
        }
    };
    let note = match constant.ty {
        Type::Bytes => " As a little-endian number.",
        Type::Time => " In nanoseconds.",
        _ => "",
    };
    summary(&format!("{}{note}", constant.doc), 8) + &format!("        internal const {ty} {name} = {value};\n")
}

/// `float8_e4m3b11fnuz` is `Float8E4M3B11Fnuz`.
fn element(one: &crate::model::ElementType) -> String {
    if let Some(name) = &one.csharp {
        return name.clone();
    }
    let (mut out, mut begins) = (String::new(), true);
    for letter in one.name.chars().filter(|&letter| letter != '_') {
        out.push(if begins { letter.to_ascii_uppercase() } else { letter });
        begins = letter.is_ascii_digit();
    }
    out
}
