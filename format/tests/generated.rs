//! What is generated from `facts.toml` is up to date, and the pages that state its figures state them as they are.

use ramway_format::{facts, root, stale};

#[test]
fn everything_generated_is_up_to_date() {
    let stale: Vec<_> = stale().unwrap().into_iter().map(|file| file.path).collect();
    assert!(stale.is_empty(), "{stale:?} differ from format/facts.toml. `make facts` writes them anew");
}

/// Pages that say for how long a hybrid wait spins: the number of polls times what one takes.
#[test]
fn pages_say_how_long_a_wait_spins() {
    let facts = facts().unwrap();
    let spin = format!("{} µs", facts.number("spin_max") * facts.number("poll_time") / 1000);
    for page in
        ["docs/ABI.md", "docs/INTEGRATION.md", "docs/architecture.md", "docs/guides/python.md", "core/src/wait.rs"]
    {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        assert!(text.contains(&spin), "{page} does not say that a wait spins for at most {spin}");
    }
}

#[test]
fn a_fact_that_contradicts_another_is_refused() {
    let text = std::fs::read_to_string(root().join("format/facts.toml")).unwrap();
    let refused = |from: &str, to: &str, expected: &str| {
        assert!(text.contains(from), "facts.toml has no '{from}' any more");
        let error = ramway_format::parse(&text.replacen(from, to, 1)).err().expect(to);
        assert!(error.contains(expected), "{error}");
    };
    refused("number = 2, name = \"Already", "number = 3, name = \"Already", "AlreadyExists");
    refused("at = 0x208,", "at = 0x210,", "consumer.epoch");
    refused("name = \"spin_min\"", "name = \"spin_max\"", "stated twice");
    refused("is = \"110 us\"", "is = \"110 parsecs\"", "short_wait");
}
