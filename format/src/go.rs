//! Go's constants.

use crate::text::{camel, decimal, hex, quoted, unit, wrapped};
use crate::{Constant, Facts, Type, Value};

const WIDTH: usize = 120;

/// `bindings/go/facts.go`.
pub(crate) fn file(facts: &Facts) -> String {
    let mut out = String::from(
        "// Code generated from format/facts.toml by `make facts`. DO NOT EDIT.\n\npackage ramway\n\nimport \"time\"\n",
    );
    for group in facts.groups("go") {
        out += "\n";
        out += &wrapped(&group.about, "// ", WIDTH);
        out += "const (\n";
        out.extend(group.constants.iter().map(constant));
        out += ")\n";
    }
    out + &kinds(facts) + &handshake_types(facts) + &errors(facts) + &element_types(facts)
}

/// A name by Go's custom: `type_id_tensor` is `typeIDTensor`.
fn name(words: &str) -> String {
    let words: Vec<_> = words.split('_').map(|word| if word == "id" { "ID" } else { word }).collect();
    camel(&words.join("_"))
}

fn constant(constant: &Constant) -> String {
    let value = match (constant.ty, &constant.value) {
        (_, Value::Text(text)) => quoted(text),
        (Type::Time, &Value::Number(ns)) => {
            let (factor, name) = unit(ns);
            let unit = match name {
                "s" => "time.Second",
                "ms" => "time.Millisecond",
                "us" => "time.Microsecond",
                _ => "time.Nanosecond",
            };
            if ns == factor { unit.to_owned() } else { format!("{} * {unit}", ns / factor) }
        }
        (_, &Value::Number(number)) => constant.hex.map_or_else(|| decimal(number), |digits| hex(number, digits)),
    };
    wrapped(&constant.doc, "\t// ", WIDTH) + &format!("\t{} = {value}\n", name(&constant.name))
}

fn kinds(facts: &Facts) -> String {
    let list = facts.list("kind");
    let mut out =
        format!("\n// segmentKind is what a segment holds.\ntype segmentKind uint32\n\n// {}\nconst (\n", list.about);
    for item in &list.items {
        out += &wrapped(&item.doc, "\t// ", WIDTH);
        out += &format!("\tkind{} segmentKind = {}\n", pascal(&item.name), item.number);
    }
    out += ")\n\n// By number.\nvar kindNames = [...]string{\n";
    let keys: Vec<_> = list.items.iter().map(|item| format!("kind{}", pascal(&item.name))).collect();
    out += &aligned(&keys, list.items.iter().map(|item| quoted(&item.name)));
    out + "}\n"
}

fn handshake_types(facts: &Facts) -> String {
    let list = facts.list("handshake_type");
    let mut out = format!(
        "\n// handshakeType is what a message of the handshake is.\ntype handshakeType uint32\n\n// {}\nconst (\n",
        list.about
    );
    for item in &list.items {
        out += &wrapped(&item.doc, "\t// ", WIDTH);
        out += &format!("\t{} handshakeType = {}\n", item.name, item.number);
    }
    out += ")\n\n// By number.\nvar handshakeTypeNames = [...]string{\n";
    let keys: Vec<_> = list.items.iter().map(|item| item.name.clone()).collect();
    out += &aligned(&keys, list.items.iter().map(|item| quoted(&list.shown(item))));
    out + "}\n"
}

fn errors(facts: &Facts) -> String {
    let mut out = String::from("\n// The kinds of errors.\nconst (\n");
    for error in &facts.errors {
        out += &wrapped(&format!("{}: {}", error.name, lower(&error.doc())), "\t// ", WIDTH);
        out += &format!("\t{} Kind = {}\n", error.name, error.number);
    }
    out += ")\n\n// One error per kind, to be asked for with [errors.Is].\nvar (\n";
    let longest = facts.errors.iter().map(|error| error.name.len()).max().unwrap_or(0);
    for error in &facts.errors {
        out += &format!("\tErr{:longest$} error = {}\n", error.name, error.name);
    }
    out += ")\n\n// By number: the name in the format's description, and what Error says where there is no text.\n";
    out += "var kinds = [...]struct{ name, summary string }{\n";
    let keys: Vec<_> = facts.errors.iter().map(|error| error.name.clone()).collect();
    out += &aligned(&keys, facts.errors.iter().map(|e| format!("{{{}, {}}}", quoted(&e.name), quoted(&e.text))));
    out + "}\n"
}

fn element_types(facts: &Facts) -> String {
    let mut out = String::from("\n// The types of elements, as NumPy and ml_dtypes name them.\nconst (\n");
    for one in &facts.element_types {
        out += &wrapped(&one.doc, "\t// ", WIDTH);
        out += &format!("\t{} Dtype = {}<<8 | {}\n", dtype(&one.name), one.code, one.bits);
    }
    out += ")\n\n// dtypes is every type and its name, in the order of ABI.md.\n";
    out += "var dtypes = []struct {\n\tdtype Dtype\n\tname  string\n}{\n";
    for one in &facts.element_types {
        out += &format!("\t{{{}, {}}},\n", dtype(&one.name), quoted(&one.name));
    }
    out + "}\n"
}

/// `float8_e4m3fn` is `DtypeFloat8E4M3FN`.
fn dtype(name: &str) -> String {
    let (first, rest) = name.split_once('_').unwrap_or((name, ""));
    format!("Dtype{}{}", pascal(first), rest.to_ascii_uppercase())
}

/// Keys and values of a composite literal, the values under each other as gofmt has them.
fn aligned(keys: &[String], values: impl Iterator<Item = String>) -> String {
    let longest = keys.iter().map(String::len).max().unwrap_or(0);
    keys.iter()
        .zip(values)
        .map(|(key, value)| format!("\t{:width$} {value},\n", format!("{key}:"), width = longest + 1))
        .collect()
}

fn pascal(name: &str) -> String {
    crate::text::pascal(name)
}

/// The sentence after "NAME: ".
fn lower(sentence: &str) -> String {
    let (first, rest) = sentence.split_at(1);
    first.to_ascii_lowercase() + rest
}
