//! `docs/api/c.txt` and `docs/api/cpp.txt` against the headers: every name in them is there, everything public is named,
//! and every call that the languages share has its line.

use std::collections::BTreeSet;
use std::path::Path;

const CALLS: &str = include_str!("../../docs/api/calls.txt");
const C: &str = include_str!("../../docs/api/c.txt");
const CPP: &str = include_str!("../../docs/api/cpp.txt");
const HEADER: &str = include_str!("../include/ramway.h");

/// The lines of a page before "Only here" and after it.
fn lines(page: &'static str, separator: &str) -> (Vec<(&'static str, &'static str)>, Vec<&'static str>) {
    let (mut ids, mut only) = (Vec::new(), Vec::new());
    let mut here = false;
    for line in page.lines() {
        here |= line == "## Only here";
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (left, right) = line.split_once(separator).unwrap_or_else(|| panic!("{line}"));
        if here { only.push(left) } else { ids.push((left, right)) }
    }
    (ids, only)
}

fn named(page: &'static str) -> BTreeSet<String> {
    let (ids, only) = lines(page, " = ");
    let mut named: BTreeSet<String> = only.into_iter().map(String::from).collect();
    for (_, spelling) in ids.into_iter().filter(|(_, spelling)| !spelling.starts_with("--")) {
        named.extend(spelling.split(", ").map(String::from));
    }
    named
}

fn compare(page: &str, named: &BTreeSet<String>, there: &BTreeSet<String>, wanted: impl Fn(&str) -> bool) {
    let unknown: Vec<_> = named.difference(there).collect();
    assert!(unknown.is_empty(), "{page} names what is not there: {unknown:?}");
    let missing: Vec<_> = there.difference(named).filter(|name| wanted(name)).collect();
    assert!(missing.is_empty(), "{page} does not name: {missing:?}");
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn every_shared_call_has_its_line_in_the_order_of_the_list() {
    let shared: Vec<_> = lines(CALLS, " | ").0.into_iter().map(|(id, _)| id).collect();
    for page in [C, CPP] {
        assert_eq!(lines(page, " = ").0.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), shared);
    }
}

/// Functions, constants, and fields as `struct.field`.
fn header() -> BTreeSet<String> {
    let mut there = BTreeSet::new();
    let mut inside = None;
    for line in HEADER.lines() {
        if let Some(rest) = line.strip_prefix("#define RAMWAY_") {
            there.insert(format!("RAMWAY_{}", word(rest)));
        } else if let Some(rest) = line.strip_prefix("typedef struct ramway_") {
            inside = line.ends_with('{').then(|| format!("ramway_{}", word(rest)));
        } else if line.starts_with('}') {
            inside = None;
        } else if !line.starts_with([' ', '/', '#', '*']) && line.contains('(') {
            let before = line.split('(').next().unwrap();
            let name = before.rsplit([' ', '*']).next().unwrap();
            if name.starts_with("ramway_") {
                there.insert(name.into());
            }
        } else if let (Some(owner), Some(field)) = (&inside, line.strip_suffix(';'))
            && line.starts_with("    ")
        {
            let field = field.split('[').next().unwrap().rsplit([' ', '*']).next().unwrap();
            there.insert(format!("{owner}.{field}"));
        }
    }
    there
}

#[test]
fn c_names_every_function_and_option_of_the_header() {
    let there = header();
    assert!(there.contains("ramway_send") && there.contains("ramway_options.capacity"), "{there:?}");
    compare("docs/api/c.txt", &named(C), &there, |name| {
        let is_option = [
            "ramway_options.",
            "ramway_bus_options.",
            "ramway_topic_options.",
            "ramway_inbox_options.",
            "ramway_outbox_options.",
            "ramway_rpc_client_options.",
            "ramway_rpc_call_options.",
            "ramway_rpc_server_options.",
        ]
        .iter()
        .any(|owner| name.starts_with(owner));
        // `size` and `reserved` are how the struct grows.
        (is_option && !name.ends_with(".size") && !name.ends_with(".reserved"))
            || (name.starts_with("ramway_") && !name.contains('.'))
    });
}

/// What the classes are called that a class of the headers stands for.
fn classes(owner: &str) -> Vec<&str> {
    match owner {
        "sending" => vec!["sender", "publisher"],
        "receiving" => vec!["receiver", "subscriber"],
        "basic_slot" => vec!["slot"],
        "basic_message" => vec!["message"],
        "basic_batch" => vec!["batch"],
        "asking" => vec!["rpc::request", "rpc::call"],
        "client" => vec!["rpc::client"],
        "server" => vec!["rpc::server"],
        "pending" => vec!["rpc::pending"],
        "stream" => vec!["rpc::stream"],
        "reply" => vec!["rpc::reply"],
        "request" => vec!["rpc::request"],
        "call" => vec!["rpc::call"],
        "call_error" => vec!["rpc::call_error"],
        "client_options" => vec!["rpc::client_options"],
        "call_options" => vec!["rpc::call_options"],
        "server_options" => vec!["rpc::server_options"],
        owner => vec![owner],
    }
}

/// `class::call`, `options::field` and free functions of the C++ headers.
fn cpp() -> BTreeSet<String> {
    let mut there = BTreeSet::new();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/ramway");
    for part in [
        "bus",
        "inbox",
        "options",
        "outbox",
        "peer",
        "receiver",
        "region",
        "rpc",
        "rpc_client",
        "rpc_server",
        "segments",
        "select",
        "sender",
        "topic",
    ] {
        let text = std::fs::read_to_string(directory.join(format!("{part}.hpp"))).unwrap();
        let (mut owner, mut public) = (None, true);
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("class ").or_else(|| line.strip_prefix("struct ")) {
                owner = Some(word(rest));
                public = line.starts_with("struct ");
            } else if line.starts_with("};") {
                owner = None;
            } else if line == "  public:" {
                public = true;
            } else if ["  private:", "  protected:"].contains(&line) {
                public = false;
            }
            let text = line.trim_start();
            let indent = line.len() - text.len();
            if text.starts_with("//") || text.starts_with("return ") || text.starts_with("requires") {
                continue;
            }
            match &owner {
                Some(owner) if public && indent == 4 => {
                    if let Some(before) = text.split_once('(').map(|(before, _)| before) {
                        let name = before.rsplit([' ', '*', '&']).next().unwrap();
                        let is_word = !name.is_empty() && word(name) == name;
                        if is_word && before.contains(' ') && name != owner && !before.contains('~') {
                            there.extend(classes(owner).iter().map(|class| format!("{class}::{name}")));
                        }
                    } else if owner.ends_with("options") && text.ends_with(';') {
                        let field = text.split([';', '=', '{']).next().unwrap().trim();
                        let field = field.rsplit(' ').next().unwrap();
                        there.extend(classes(owner).iter().map(|class| format!("{class}::{field}")));
                    }
                }
                None if line.starts_with("inline std::uint32_t method_id(") => {
                    there.insert("rpc::method_id".into());
                }
                None if line.starts_with("inline result<")
                    || line.starts_with("inline source ")
                    || line.starts_with("constexpr start ") =>
                {
                    let name = line.split('(').next().unwrap().rsplit(' ').next().unwrap();
                    there.insert(name.into());
                }
                None if line.starts_with("inline constexpr start ") => {
                    there.insert(word(line.trim_start_matches("inline constexpr start ")));
                }
                _ => {}
            }
        }
    }
    there
}

#[test]
fn cpp_names_every_call_and_option_of_the_headers() {
    let there = cpp();
    assert!(
        there.contains("sender::send") && there.contains("options::capacity") && there.contains("pair"),
        "{there:?}"
    );
    let main = [
        "sender",
        "receiver",
        "publisher",
        "subscriber",
        "slot",
        "message",
        "bus",
        "listener",
        "region",
        "options",
        "bus_options",
        "topic_options",
        "select",
        "inbox",
        "incoming",
        "inbox_options",
        "outbox",
        "outbox_options",
        "rpc::client",
        "rpc::server",
        "rpc::pending",
        "rpc::stream",
        "rpc::reply",
        "rpc::request",
        "rpc::call",
        "rpc::call_error",
        "rpc::client_options",
        "rpc::call_options",
        "rpc::server_options",
    ];
    compare("docs/api/cpp.txt", &named(CPP), &there, |name| {
        let (owner, call) = name.rsplit_once("::").unwrap_or(("", name));
        // `c` makes the struct of C; `bool` is an operator.
        // What a publisher or a subscriber does as a sender or a receiver does has its line there.
        let as_in_a_ring = match owner {
            "publisher" => there.contains(&format!("sender::{call}")),
            "subscriber" => there.contains(&format!("receiver::{call}")),
            _ => false,
        };
        owner.is_empty() || (main.contains(&owner) && !as_in_a_ring && !["c", "bool"].contains(&call))
    });
}
