//! Notes the compiler's version for the report's description of the machine.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let Some(compiler) = std::env::var_os("RUSTC") else { return };
    if let Ok(output) = Command::new(compiler).arg("--version").output() {
        println!("cargo:rustc-env=RAMWAY_BENCH_RUSTC={}", String::from_utf8_lossy(&output.stdout).trim());
    }
}
