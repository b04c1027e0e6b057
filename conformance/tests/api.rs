//! What `docs/porting.md` says of errors is what the languages have.

use std::path::{Path, PathBuf};

use ramway_conformance::api;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|cause| panic!("{file}: {cause}"))
}

#[test]
fn every_language_has_every_error() {
    let errors = api::errors(&text("docs/ABI.md")).unwrap();
    assert_eq!(errors.len(), 18);
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
