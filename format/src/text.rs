//! Names, numbers and comments, as several languages write them.

use crate::Result;

/// What each generated file begins with, after the language's comment sign.
pub(crate) const GENERATED: &str = "Generated from format/facts.toml by `make facts`: edit that, not this.";

/// `poll_interval` as `POLL_INTERVAL`.
pub(crate) fn upper(name: &str) -> String {
    name.to_ascii_uppercase()
}

/// `poll_interval` as `PollInterval`. `id` stays `Id`.
pub(crate) fn pascal(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(usize::from(!word.is_empty()));
        first.to_ascii_uppercase() + rest
    };
    name.split('_').map(word).collect()
}

/// `poll_interval` as `pollInterval`.
pub(crate) fn camel(name: &str) -> String {
    let pascal = pascal(name);
    let (first, rest) = pascal.split_at(1);
    first.to_ascii_lowercase() + rest
}

/// `NotFound` as `not_found`.
pub(crate) fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// A decimal number, with an underscore between every three digits from five digits on.
pub(crate) fn decimal(number: u64) -> String {
    let digits = number.to_string();
    if digits.len() < 5 { digits } else { grouped(&digits, 3) }
}

/// A hexadecimal number with at least so many capital digits.
pub(crate) fn hex(number: u64, digits: usize) -> String {
    format!("0x{number:0digits$X}")
}

/// Digits with an underscore between every `every`, from the end.
pub(crate) fn grouped(digits: &str, every: usize) -> String {
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(every) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

/// Eight bytes as a little-endian number.
pub(crate) fn little_endian(bytes: &str) -> u64 {
    bytes.bytes().rev().fold(0, |number, byte| number << 8 | u64::from(byte))
}

/// A string in double quotes, with the escapes that all languages here share.
pub(crate) fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\r', "\\r").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// Words in lines that each begin with `prefix` and have at most `width` characters.
pub(crate) fn wrapped(text: &str, prefix: &str, width: usize) -> String {
    let (mut out, mut line) = (String::new(), String::from(prefix.trim_end()));
    let mut empty = true;
    for word in text.split_whitespace() {
        let gap = if empty { prefix.len() - prefix.trim_end().len() } else { 1 };
        if !empty && line.chars().count() + gap + word.chars().count() > width {
            out += &line;
            out.push('\n');
            line = prefix.trim_end().to_owned();
            line.push_str(&prefix[prefix.trim_end().len()..]);
        } else {
            line.push_str(if empty { &prefix[prefix.trim_end().len()..] } else { " " });
        }
        line.push_str(word);
        empty = false;
    }
    out + &line + "\n"
}

/// A comment of one line or more between `/**` and `*/`.
pub(crate) fn block_comment(text: &str, indent: &str, width: usize) -> String {
    let short = format!("{indent}/** {text} */\n");
    if short.chars().count() <= width + 1 {
        return short;
    }
    format!("{indent}/**\n{}{indent} */\n", wrapped(text, &format!("{indent} * "), width))
}

/// Puts `part` between the lines that have `facts: NAME` and `end of facts` in them.
pub(crate) fn replace_part(text: &str, name: &str, part: &str) -> Result<String> {
    let begin = format!("facts: {name} ");
    let (mut out, mut inside, mut found) = (String::new(), false, false);
    for line in text.split_inclusive('\n') {
        if inside && line.contains("end of facts") {
            inside = false;
        }
        if !inside {
            out += line;
        }
        if line.contains(&begin) {
            (inside, found) = (true, true);
            out += part;
        }
    }
    if !found || inside {
        return Err(format!("expected a line with '{begin}' and, after it, one with 'end of facts'"));
    }
    Ok(out)
}

/// The largest unit in which so many nanoseconds are a whole number: its nanoseconds, and its name.
pub(crate) fn unit(ns: u64) -> (u64, &'static str) {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    units.into_iter().find(|(factor, _)| ns.is_multiple_of(*factor)).unwrap_or((1, "ns"))
}
