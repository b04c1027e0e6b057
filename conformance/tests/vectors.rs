//! The checked-in vectors are what the generator makes. `RAMWAY_WRITE_VECTORS=1` writes them.

use std::path::Path;

use ramway_conformance::vectors;

fn compare(file: &str, made: String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format/vectors").join(file);
    assert!(made.len() < 1 << 20, "{file} has {} bytes: too much to look at in a diff", made.len());
    if std::env::var_os("RAMWAY_WRITE_VECTORS").is_some_and(|value| value == "1") {
        std::fs::write(&path, made).unwrap();
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap();
    let differs = there.lines().zip(made.lines()).enumerate().find(|(_, (there, made))| there != made);
    if let Some((line, (there, made))) = differs {
        panic!("{file}, line {}: there is\n{there}\nthe generator makes\n{made}", line + 1);
    }
    assert_eq!(there.len(), made.len(), "{file} ends early or late; RAMWAY_WRITE_VECTORS=1 writes it");
}

#[test]
fn segments_are_what_the_generator_makes() {
    compare("segments.json", vectors::segments_json());
}

#[test]
fn topics_are_what_the_generator_makes() {
    compare("topics.json", vectors::topics_json());
}

#[test]
fn handshakes_are_what_the_generator_makes() {
    compare("handshake.json", vectors::handshake_json());
}

#[test]
fn exchanges_of_rpc_are_what_the_generator_makes() {
    compare("rpc.json", vectors::rpc_json());
}
