//! What the pool's pages say is what its code says.

use ramway_pool::BufferPool;
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

/// Name, default and range of each option in a table whose rows begin with `start`.
fn options(text: &str, start: &str) -> Vec<(String, String, String)> {
    let rows = text.lines().skip_while(|line| !line.contains("| option | default | range |")).skip(2);
    rows.map_while(|line| line.trim_start().strip_prefix(start))
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let (name, _) = cells[0].split_once('`').unwrap();
            (name.to_owned(), cells[1].to_owned(), cells[2].to_owned())
        })
        .collect()
}

#[test]
fn the_options_of_the_front_page_are_those_of_the_builder() {
    let source = read("pool/src/builder.rs");
    let page = options(&read("pool/README.md"), "| `");
    assert_eq!(page, options(&source, "/// | [`"));

    let mut names: Vec<&str> = page.iter().map(|(name, ..)| name.as_str()).collect();
    let setters = source.lines().filter_map(|line| line.trim_start().strip_prefix("pub fn "));
    let mut setters: Vec<&str> =
        setters.filter_map(|line| line.split_once("(mut self")).map(|(name, _)| name).collect();
    names.sort_unstable();
    setters.sort_unstable();
    assert_eq!(names, setters);

    // The defaults that are no formula, as a pool has them.
    let pool = format!("{:?}", BufferPool::new());
    let plain = page.iter().filter(|(_, default, _)| !default.contains([' ', '(']));
    let wrong: Vec<_> = plain
        .clone()
        .filter(|(name, default, _)| !pool.contains(&format!("{name}: {}", default.replace(',', ""))))
        .collect();
    assert!(wrong.is_empty() && plain.count() >= 6, "{wrong:?}: {pool}");
}

#[test]
fn the_features_of_the_front_page_are_those_of_the_crate() {
    let manifest = read("pool/Cargo.toml");
    let (_, features) = manifest.split_once("[features]\n").unwrap();
    let features = features.lines().take_while(|line| !line.starts_with('['));
    let mut features: Vec<&str> = features.filter_map(|line| line.split_once(" = [")).map(|(name, _)| name).collect();
    features.retain(|&name| name != "default");
    features.sort_unstable();

    let page = read("pool/README.md");
    let (_, table) = page.split_once("| feature | what |\n").unwrap();
    let rows = table.lines().skip(1).map_while(|line| line.strip_prefix("| `"));
    let mut named: Vec<&str> = rows.map(|row| row.split_once('`').unwrap().0).collect();
    named.sort_unstable();
    assert_eq!(named, features);
    assert!(page.contains("None is on by default") && manifest.contains("\ndefault = []\n"));
}
