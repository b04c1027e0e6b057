//! `docs/api/rust.txt` against the sources: every name in it exists, every public call is named, and every call that
//! the languages share has its line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const CALLS: &str = include_str!("../../docs/api/calls.txt");
const RUST: &str = include_str!("../../docs/api/rust.txt");

/// Types that are not the API's main ones: errors, element types, what only describes, and what `tokio` adds.
const APART: &[&str] = &[
    "Error",
    "ErrorKind",
    "Dtype",
    "Tensor",
    "Kind",
    "AsyncReceiver",
    "AsyncSender",
    "AsyncRegion",
    "Segment",
    "Plan",
];

/// What is in these is not public, or is for bindings only.
const APART_FILES: &[&str] = &[
    "/facts.rs",
    "/sys/",
    "/endpoint/state.rs",
    "/ring/raw.rs",
    "/ring/producer.rs",
    "/ring/consumer.rs",
    "/ring/window.rs",
    "/layout.rs",
    "/rpc/client/raw.rs",
    "/rpc/client/lead.rs",
    "/rpc/server/news.rs",
    // As the client without tasks.
    "/rpc/tokio/",
];

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// `Type::call` of every public call that the documentation shows, and `survey::call`.
fn calls() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    // What these macros write into a builder.
    let setters = |source: &'static str| -> Vec<&str> {
        let public = source.split("#[doc(hidden)]").next().unwrap().lines();
        public.filter_map(|line| line.strip_prefix("        pub fn ")?.split('(').next()).collect()
    };
    let peer = [include_str!("../src/many/mod.rs"), include_str!("../src/many/options.rs")].map(setters).concat();
    let macros = [
        ("    segment_options!();", setters(include_str!("../src/segment/options.rs"))),
        ("    end_options!();", setters(include_str!("../src/ring/options.rs"))),
        ("    listener_options!();", setters(include_str!("../src/many/options.rs"))),
        ("    peer_options!(\"producer\");", peer.clone()),
        ("    peer_options!(\"worker\");", peer),
    ];
    let mut found = BTreeSet::new();
    for file in files {
        let inside = file.to_str().unwrap();
        if APART_FILES.iter().any(|part| inside.contains(part)) {
            continue;
        }
        let mut owner = None;
        let (mut hidden, mut skip) = (false, false);
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            if line.starts_with("mod tests") {
                skip = true;
            }
            if let Some(rest) = line.strip_prefix("impl") {
                // Past the parameters of the `impl`, which may have bounds.
                let rest =
                    if rest.starts_with('<') { rest.split_once("> ").map_or("", |(_, rest)| rest) } else { rest };
                let rest = rest.trim();
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
                owner = (!line.contains(" for ")).then_some(name);
            } else if line.starts_with("        impl<L: Log> $type<'_, L> {") {
                // A macro for `Message` and `MessageView`.
                owner = Some("MessageView".into());
            } else if line == "        impl ErrorKind {" {
                owner = Some("ErrorKind".into());
            } else if line.starts_with("        impl<L: crate::ring::log::Log> $end<L> {") {
                // Another one, for both ends of a ring.
                owner = Some("Sender Receiver".into());
            } else if line == "}" {
                owner = None;
                skip = false;
            }
            if let (Some(owner), Some((_, names))) = (&owner, macros.iter().find(|(call, _)| *call == line)) {
                found.extend(names.iter().map(|name| format!("{owner}::{name}")));
            }
            hidden |= line.trim_start().starts_with("#[doc(hidden)]");
            let (indent, rest) = (line.len() - line.trim_start().len(), line.trim_start());
            let name = ["pub fn ", "pub unsafe fn ", "pub const fn "].iter().find_map(|word| rest.strip_prefix(word));
            if let Some(name) = name {
                let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                match (&owner, indent) {
                    _ if hidden || skip => {}
                    (Some(owner), 4 | 12) => found.extend(owner.split(' ').map(|owner| format!("{owner}::{name}"))),
                    (None, 0) if inside.ends_with("/rpc/frame.rs") => drop(found.insert(format!("rpc::{name}"))),
                    (None, 0) if inside.contains("/segment/survey") => drop(found.insert(format!("survey::{name}"))),
                    _ => {}
                }
                hidden = false;
            } else if !rest.starts_with('#') && !rest.starts_with("//") && !rest.is_empty() {
                hidden = false;
            }
        }
    }
    found
}

/// The lines of a page before "Only here" and after it, as (left, right).
fn lines(page: &'static str, separator: &str) -> (Vec<(&'static str, String)>, Vec<&'static str>) {
    let (mut ids, mut only) = (Vec::new(), Vec::new());
    let mut here = false;
    for line in page.lines() {
        here |= line == "## Only here";
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (left, right) = line.split_once(separator).unwrap_or_else(|| panic!("{line}"));
        if here { only.push(left) } else { ids.push((left, right.to_string())) }
    }
    (ids, only)
}

#[test]
fn every_shared_call_has_its_line_in_the_order_of_the_list() {
    let (shared, _) = lines(CALLS, " | ");
    let (rust, _) = lines(RUST, " = ");
    let ids = |lines: &[(&'static str, String)]| lines.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    assert_eq!(ids(&rust), ids(&shared));
    for (id, spelling) in &rust {
        assert!(!spelling.starts_with("--") || spelling.len() > 20, "{id}: no reason");
    }
}

#[test]
fn every_name_exists_and_every_public_call_is_named() {
    let there = calls();
    assert!(
        there.contains("Sender::send") && there.contains("survey::ls") && there.contains("Waker::wake"),
        "{there:?}"
    );
    let (ids, only) = lines(RUST, " = ");
    let mut named: BTreeSet<String> = only.iter().map(|name| name.to_string()).collect();
    for (_, spelling) in &ids {
        if !spelling.starts_with("--") {
            named.extend(spelling.split(", ").map(String::from));
        }
    }
    let unknown: Vec<_> = named.difference(&there).collect();
    assert!(unknown.is_empty(), "docs/api/rust.txt names what is not there: {unknown:?}");
    let main = |call: &&String| !APART.contains(&call.split("::").next().unwrap()) || named.contains(*call);
    let missing: Vec<_> = there.difference(&named).filter(main).collect();
    assert!(missing.is_empty(), "docs/api/rust.txt does not name: {missing:?}");
}

#[test]
fn defaults_are_those_of_the_list() {
    let (mut tx, rx) = {
        let fd = ramway::Ring::unnamed().into_fd().unwrap();
        (ramway::Ring::from_fd(&fd).sender().unwrap(), ramway::Ring::from_fd(&fd).receiver().unwrap())
    };
    assert!(
        CALLS.contains("ring.capacity | bytes of data, rounded up to a power of two of at least a page; default 1 MiB")
    );
    assert_eq!((tx.capacity(), rx.capacity()), (1 << 20, 1 << 20));
    assert!(CALLS.contains("16 to 4096; default 16"));
    assert_eq!(tx.align(), 16);
    assert_eq!(ramway::WaitPolicy::default(), ramway::WaitPolicy::Hybrid);
    tx.send(0, b"x").unwrap();
}
