//! The versions of the libraries, as the lock file has them.

use std::fs;

fn main() {
    let lock = "../Cargo.lock";
    println!("cargo::rerun-if-changed={lock}");
    let locked = fs::read_to_string(lock).expect("the workspace's lock file");
    for library in ["lifeguard", "object-pool", "opool", "sharded-slab", "zeropool"] {
        let entry = format!("name = \"{library}\"\nversion = \"");
        let versions: Vec<&str> = locked.split(&entry).skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(!versions.is_empty(), "{library} is in the lock file");
        for version in versions {
            // Of zeropool there are two, each in its own variable.
            let old = if version.starts_with("0.2.") && library == "zeropool" { "_0_2" } else { "" };
            println!("cargo::rustc-env={}{old}_VERSION={version}", library.to_uppercase().replace('-', "_"));
        }
    }
}
