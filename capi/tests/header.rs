//! `include/ramway.h` is what the sources say. `RAMWAY_WRITE_HEADER=1` (or `make -C capi header`) writes it anew.

use std::path::Path;

#[test]
fn the_committed_header_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    // In the order of the header: what others use comes first. Without lib.rs, through whose modules everything would
    // come a second time.
    let files = [
        "facts",
        "status",
        "options",
        "sender",
        "receiver",
        "tensor",
        "ring",
        "topic",
        "publisher",
        "subscriber",
        "bus",
        "region",
        "segments",
        "select",
        "peers",
        "inbox",
        "outbox",
        "rpc/method",
        "rpc/reply",
        "rpc/client",
        "rpc/request",
        "rpc/server",
        "inline",
        "version",
    ];
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in files {
        builder = builder.with_src(root.join(format!("src/{file}.rs")));
    }
    let mut made = Vec::new();
    builder.generate().expect("the sources can be read").write(&mut made);
    let made = String::from_utf8(made).expect("a header is text");

    let mut declared = std::collections::HashSet::new();
    let is_declaration =
        |line: &&str| line.contains("ramway_") && line.contains('(') && !line.starts_with([' ', '#', '/']);
    for line in made.lines().filter(is_declaration) {
        let name = line.split('(').next().unwrap_or_default().rsplit([' ', '*']).next();
        assert!(declared.insert(name), "{line}: declared twice");
    }

    let header = root.join("include/ramway.h");
    if std::env::var_os("RAMWAY_WRITE_HEADER").is_some() {
        std::fs::write(&header, &made).expect("the header can be written");
        return;
    }
    let committed = std::fs::read_to_string(&header).unwrap_or_default();
    let different = made.lines().zip(committed.lines()).enumerate().find(|(_, (made, found))| made != found);
    if let Some((line, (made, found))) = different {
        panic!("include/ramway.h, line {}: run `make -C capi header`\n  sources: {made}\n  header:  {found}", line + 1);
    }
    assert_eq!(made.len(), committed.len(), "include/ramway.h ends too early or too late: run `make -C capi header`");
}
