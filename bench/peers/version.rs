//! The version of the library that a package `peer-LIBRARY` measures, as the lock file has it, in `PEER_VERSION`.

use std::{env, fs};

/// The build script; that of a package with more to do calls it.
pub fn main() {
    let lock = "../Cargo.lock";
    println!("cargo::rerun-if-changed={lock}");
    println!("cargo::rerun-if-changed=../version.rs");
    let package = env::var("CARGO_PKG_NAME").expect("cargo names the package");
    let library = package.strip_prefix("peer-").expect("packages here are called peer-LIBRARY");
    let locked = fs::read_to_string(lock).expect("the workspace's lock file");
    let entry = format!("name = \"{library}\"\nversion = \"");
    let version = locked.split_once(&entry).and_then(|(_, rest)| rest.split('"').next());
    println!("cargo::rustc-env=PEER_VERSION={}", version.expect("the library is in the lock file"));
}
