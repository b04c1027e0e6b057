//! JSON that a person can read in a diff: what fits on a line is on one line.

use serde::Serialize;
use serde_json::{Map, Value};

const WIDTH: usize = 118;

/// The order of the fields, because `Value` keeps them sorted.
const FIELDS: &[&str] = &[
    "format",
    "name",
    "about",
    "class",
    "kind",
    "reader",
    "size",
    "bytes",
    "readers",
    "segments",
    "topics",
    "method_ids",
    "number",
    "servers",
    "clients",
    "images",
    "handshakes",
    "max_in_flight",
    "max_bytes",
    "max_buffered",
    "at",
    "hex",
    "mask",
    "descriptors",
    "as",
    "label",
    "open",
    "attached",
    "region",
    "then",
    "when",
    "hang_up",
    "messages",
    "last",
    "send",
    "end",
    "leaves",
    "name_after",
    "epoch",
    "peer_epoch",
    "capacity",
    "max",
    "type",
    "status",
    "call",
    "type_id",
    "tag",
    "seq",
    "lost",
    "len",
    "crc32",
    "method",
    "meta",
    "body",
    "window",
    "steps",
    "outcome",
    "image",
    "seals",
];

/// The text of a value, with a line feed at its end.
pub fn pretty(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("the model has nothing that JSON lacks");
    let mut out = String::new();
    write(&value, 0, 0, &mut out);
    out.push('\n');
    out
}

/// `used` is what stands on the line already, `indent` where the lines inside begin.
fn write(value: &Value, indent: usize, used: usize, out: &mut String) {
    let flat = flat(value);
    if indent + used + flat.len() <= WIDTH {
        out.push_str(&flat);
        return;
    }
    let (open, close, items): (_, _, Vec<(String, &Value)>) = match value {
        Value::Array(items) => ('[', ']', items.iter().map(|item| (String::new(), item)).collect()),
        Value::Object(fields) => ('{', '}', ordered(fields)),
        _ => return out.push_str(&flat),
    };
    out.push(open);
    let last = items.len() - 1;
    for (i, (key, item)) in items.into_iter().enumerate() {
        out.push('\n');
        out.push_str(&" ".repeat(indent + 1));
        out.push_str(&key);
        write(item, indent + 1, key.len(), out);
        if i < last {
            out.push(',');
        }
    }
    out.push('\n');
    out.push_str(&" ".repeat(indent));
    out.push(close);
}

fn ordered(fields: &Map<String, Value>) -> Vec<(String, &Value)> {
    let rank = |key: &str| FIELDS.iter().position(|field| *field == key).unwrap_or(FIELDS.len());
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| rank(key));
    fields.into_iter().map(|(key, item)| (format!("\"{key}\": "), item)).collect()
}

fn flat(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flat).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<_> = ordered(fields).iter().map(|(key, item)| format!("{key}{}", flat(item))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}
