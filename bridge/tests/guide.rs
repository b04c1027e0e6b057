//! The guide's files of rules are accepted as they stand on the page.

use std::path::Path;

use ramway_bridge::config::Config;

#[test]
fn what_the_guide_shows_is_accepted() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides/bridge.md");
    let page = std::fs::read_to_string(page).expect("the guide");
    let folder = std::env::temp_dir().join(format!("ramway-bridge-guide.{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder of its own");
    for file in ["ca.pem", "desk.pem", "desk.key", "robot.pem", "robot.key"] {
        std::fs::write(folder.join(file), "").expect("a file");
    }
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().expect("an end")).collect();
    assert_eq!(blocks.len(), 5, "the blocks that this test knows of");
    let read: Vec<_> = blocks.iter().map(|block| Config::parse(block, &folder.join("bridge.toml"))).collect();
    std::fs::remove_dir_all(&folder).expect("it is ours");
    for (block, read) in blocks.iter().zip(read) {
        assert!(read.is_ok(), "{block}\n{}", read.expect_err("it is wrong"));
    }
}
