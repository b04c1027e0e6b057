//! Every block of code on the site has a test that compiles it, runs it or compares it with what is run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Page, languages of its blocks, the test, and how that test names the page.
const TESTS: &[(&str, &str, &str, &str)] = &[
    ("README.md", "rust", "examples/src/lib.rs", "../README.md"),
    ("README.md", "python", "bindings/python/tests/test_readme.py", "FRONT_PAGE"),
    ("docs/ABI.md", "hex", "core/tests/abi_page.rs", "docs/ABI.md"),
    ("docs/SYSCALLS.md", "syscalls", "core/tests/syscalls.rs", "docs/SYSCALLS.md"),
    ("docs/INTEGRATION.md", "rust", "examples/src/lib.rs", "docs/INTEGRATION.md"),
    ("docs/INTEGRATION.md", "ini", "examples/tests/blocks.rs", "docs/INTEGRATION.md"),
    ("docs/start/rust.md", "rust", "examples/src/lib.rs", "docs/start/rust.md"),
    ("docs/start/python.md", "python", "examples/tests/pages.rs", "(\"python\""),
    ("docs/start/javascript.md", "js", "examples/tests/pages.rs", "(\"javascript\""),
    ("docs/start/c.md", "c cmake", "examples/tests/pages.rs", "(\"c\""),
    ("docs/start/cpp.md", "cpp", "examples/tests/pages.rs", "(\"cpp\""),
    ("docs/start/go.md", "go", "examples/tests/pages.rs", "(\"go\""),
    ("docs/start/java.md", "java xml gradle", "examples/tests/pages.rs", "(\"java\""),
    ("docs/start/kotlin.md", "kotlin xml gradle", "examples/tests/pages.rs", "(\"kotlin\""),
    ("docs/start/csharp.md", "csharp xml", "bindings/csharp/test.sh", "docs/start/csharp.md"),
    ("docs/guides/one-to-many.md", "rust", "examples/src/lib.rs", "docs/guides/one-to-many.md"),
    ("docs/guides/one-to-many.md", "rs", "examples/tests/run.rs", "docs/guides/one-to-many.md"),
    ("docs/guides/one-to-many.md", "cpp", "capi/tests/run.sh", "docs/guides/one-to-many.md"),
    ("docs/guides/one-to-many.md", "python", "examples/python/tests/test_guides.py", "one-to-many.md"),
    ("docs/guides/one-to-many.md", "go", "bindings/go/guide_test.go", "docs/guides/one-to-many.md"),
    ("docs/guides/bridge.md", "toml", "bridge/tests/guide.rs", "docs/guides/bridge.md"),
    ("docs/guides/bridge-format.md", "python", "bridge/tests/python.rs", "docs/guides/bridge-format.md"),
    ("docs/guides/rpc.md", "rust", "examples/src/lib.rs", "docs/guides/rpc.md"),
    ("docs/guides/rpc.md", "rs", "examples/tests/run.rs", "docs/guides/rpc.md"),
    ("docs/guides/rpc.md", "python", "examples/rpc/tests/test_guide.py", "rpc.md"),
    (
        "docs/guides/rpc-languages.md",
        "c cpp js python csharp go java kotlin",
        "examples/tests/pages.rs",
        "rpc-languages.md",
    ),
    ("docs/guides/rpc-encodings.md", "rs", "examples/tests/run.rs", "docs/guides/rpc-encodings.md"),
    (
        "docs/guides/rpc-encodings.md",
        "c cpp go python proto",
        "examples/rpc/tests/test_encodings.py",
        "rpc-encodings.md",
    ),
    ("docs/guides/python.md", "python", "examples/python/tests/test_guides.py", "*python*.md"),
    ("docs/guides/shared-memory-in-python.md", "python", "examples/python/tests/test_guides.py", "*python*.md"),
    ("docs/guides/javascript.md", "js python", "examples/node/guides/guides.test.mjs", "docs/guides/javascript.md"),
    ("docs/guides/buffer-pool.md", "rust", "examples/src/lib.rs", "docs/guides/buffer-pool.md"),
    ("capi/README.md", "c cpp", "capi/tests/run.sh", "../README.md"),
    ("capi/README.md", "cmake", "capi/tests/run.sh", "FetchContent"),
    ("pool/README.md", "rust", "examples/src/lib.rs", "pool/README.md"),
    ("pool/README.md", "toml", "scripts/version.sh", "pool"),
    ("bindings/python/README.md", "python", "bindings/python/tests/test_readme.py", "README.md"),
    ("bindings/node/README.md", "js", "bindings/node/test/package.mjs", "README.md"),
    ("bindings/go/README.md", "go", "bindings/go/readme_test.go", "bindings/go/README.md"),
    ("bindings/java/README.md", "java", "bindings/java/src/test/java/dev/ramway/ReadmeTest.java", "README.md"),
    ("bindings/java/README.md", "xml", "bindings/java/test.sh", "README.md"),
    ("bindings/java/README.md", "gradle", "examples/tests/blocks.rs", "fn gradle_"),
    (
        "bindings/kotlin/README.md",
        "kotlin",
        "bindings/kotlin/src/test/kotlin/dev/ramway/kotlin/ReadmeTest.kt",
        "README.md",
    ),
    ("bindings/kotlin/README.md", "xml", "examples/tests/pages.rs", "bindings/kotlin/README.md"),
    ("bindings/kotlin/README.md", "gradle", "examples/tests/blocks.rs", "fn gradle_"),
    ("bindings/csharp/README.md", "csharp", "bindings/csharp/tests/ReadmeTests.cs", "README.md"),
    ("bindings/csharp/README.md", "xml", "bindings/csharp/test.sh", "README.md"),
    ("bindings/zig/README.md", "zig", "scripts/packages/zig.sh", "bindings/zig/README.md"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The blocks of a page, each with its language.
fn blocks(page: &str) -> Vec<(String, String)> {
    let (mut found, mut inside) = (Vec::new(), None);
    for line in read(page).lines() {
        match (line.trim_start().strip_prefix("```"), inside.take()) {
            (Some(title), None) => {
                let language = title.split([' ', ',']).next().unwrap().to_owned();
                inside = Some((language, String::new()));
            }
            (Some(_), Some(block)) => found.push(block),
            (None, Some((language, text))) => inside = Some((language, format!("{text}{line}\n"))),
            (None, None) => {}
        }
    }
    found
}

#[test]
fn every_block_of_the_site_has_a_test() {
    let summary = read("docs/SUMMARY.md");
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    let pages = links.map(|link| link.strip_prefix("../").map_or_else(|| format!("docs/{link}"), str::to_owned));
    let mut shown = BTreeSet::new();
    for page in pages {
        for (language, text) in blocks(&page) {
            assert!(!language.is_empty(), "{page} has a block without a language:\n{text}");
            // Lines for a shell are looked at by cli/tests/pages.rs, and texts are what programs print, or pictures.
            if language != "sh" && language != "text" {
                shown.insert((page.clone(), language));
            }
        }
    }
    let mut tested = BTreeSet::new();
    for (page, languages, test, names) in TESTS {
        assert!(read(test).contains(names), "{test} says nothing of {page} ({names})");
        tested.extend(languages.split(' ').map(|language| ((*page).to_owned(), language.to_owned())));
    }
    let untested: Vec<_> = shown.difference(&tested).collect();
    assert!(untested.is_empty(), "no test compiles or runs these: add one, and a line to TESTS: {untested:#?}");
    let gone: Vec<_> = tested.difference(&shown).collect();
    assert!(gone.is_empty(), "no page has these any more: {gone:#?}");
}

/// What stands between two texts.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start} in {text}"));
    rest.split_once(end).unwrap_or_else(|| panic!("no {end} in {text}")).0
}

#[test]
fn gradle_takes_what_maven_takes() {
    for page in ["bindings/java/README.md", "bindings/kotlin/README.md"] {
        let all = blocks(page);
        let of = |language: &str| &all.iter().find(|(found, _)| found == language).expect(language).1;
        let xml = of("xml");
        let tag = |name: &str| between(xml, &format!("<{name}>"), &format!("</{name}>"));
        let wanted = format!("implementation(\"{}:{}:{}\")", tag("groupId"), tag("artifactId"), tag("version"));
        assert!(of("gradle").contains(&wanted), "{page}: {wanted}");
    }
}

#[test]
fn the_unit_for_systemd_is_whole() {
    let all = blocks("docs/INTEGRATION.md");
    let (_, unit) = all.iter().find(|(language, _)| language == "ini").unwrap();
    let mut section = "";
    for line in unit.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => section = name,
            None => {
                let (key, _) = line.split_once('=').expect(line);
                let known: &[&str] = match section {
                    "Unit" => &["Description"],
                    "Service" => &[
                        "User",
                        "ExecStart",
                        "Environment",
                        "RuntimeDirectory",
                        "RuntimeDirectoryMode",
                        "RuntimeDirectoryPreserve",
                        "Restart",
                        "RestartSec",
                        "LimitMEMLOCK",
                    ],
                    "Install" => &["WantedBy"],
                    _ => &[],
                };
                assert!(known.contains(&key), "[{section}] {line}");
            }
        }
    }
    // What the program is told is the folder that systemd makes.
    let folder = between(unit, "\nRuntimeDirectory=", "\n");
    assert_eq!(between(unit, "RAMWAY_DIR=", "\n"), format!("/run/{folder}"));
}
