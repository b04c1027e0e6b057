//! `docs/api/` is complete, and `docs/calls.md` is what is made of it. `RAMWAY_WRITE_CALLS=1` writes the page.

use std::path::{Path, PathBuf};

use ramway_conformance::api;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|cause| panic!("{file}: {cause}"))
}

#[test]
fn every_language_has_every_call_or_says_why_not_and_the_page_says_the_same() {
    let (sections, all) = api::read(&root().join("docs")).unwrap_or_else(|cause| panic!("{cause}"));
    let errors = api::errors(&text("docs/ABI.md")).unwrap();
    let made = api::page(&sections, &all, &errors);
    let path = root().join("docs/calls.md");
    if std::env::var_os("RAMWAY_WRITE_CALLS").is_some_and(|value| value == "1") {
        std::fs::write(&path, made).unwrap();
        return;
    }
    let there = text("docs/calls.md");
    let differs = there.lines().zip(made.lines()).enumerate().find(|(_, (there, made))| there != made);
    if let Some((line, (there, made))) = differs {
        panic!(
            "docs/calls.md, line {}: there is\n{there}\nof docs/api/ is made\n{made}\nRAMWAY_WRITE_CALLS=1 cargo test -p ramway-conformance --test api writes it",
            line + 1
        );
    }
    assert_eq!(there.len(), made.len(), "docs/calls.md ends early or late; RAMWAY_WRITE_CALLS=1 writes it");
}

#[test]
fn every_language_has_every_error() {
    let errors = api::errors(&text("docs/ABI.md")).unwrap();
    assert_eq!(errors.len(), 19);
    for (language, _) in api::LANGUAGES {
        for (name, _) in &errors {
            let (spelling, file) = api::error_in(language, name);
            // The last part, as its file defines it.
            let word = spelling.rsplit(['.', ':']).next().unwrap();
            let defined = text(file);
            let whole = defined.match_indices(word).any(|(at, _)| {
                let next = defined[at + word.len()..].chars().next();
                next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
            });
            assert!(whole, "{file} does not define {spelling}");
        }
    }
}
