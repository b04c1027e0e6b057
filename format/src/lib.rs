//! The facts of the format (`facts.toml`), and what is generated from them: the constants of every language and the
//! tables of `docs/ABI.md`.
//!
//! `make facts` writes all of it; the test `generated` says what is not up to date. A language is a module here with one
//! function from the facts to the text of a file, and a line in [`generated`].

mod c;
mod csharp;
mod go;
mod java;
mod model;
mod node;
mod page;
mod rust;
mod text;
mod zig;

pub use model::{Constant, Facts, Group, Type, Value};

use std::fs;
use std::path::{Path, PathBuf};

/// What goes wrong here is a sentence.
pub type Result<T, E = String> = std::result::Result<T, E>;

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reads `facts.toml` and checks that it agrees with itself.
///
/// # Errors
/// The file cannot be read, or says what cannot be.
pub fn facts() -> Result<Facts> {
    let path = root().join("format/facts.toml");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&text)
}

/// Reads the text of a `facts.toml`.
///
/// # Errors
/// It says what cannot be.
pub fn parse(text: &str) -> Result<Facts> {
    Facts::parse(text)
}

/// A generated file: its path below the root, and its whole text.
pub struct Generated {
    /// Below the repository's root.
    pub path: &'static str,
    /// All of the file.
    pub text: String,
}

/// Every generated file, and every file with a generated part, as it has to be.
///
/// # Errors
/// A file with a generated part cannot be read, or has no such part.
pub fn generated(facts: &Facts) -> Result<Vec<Generated>> {
    let whole = |path, text| Ok(Generated { path, text });
    let parts = |path, parts: Vec<(&str, String)>| {
        let text = fs::read_to_string(root().join(path)).map_err(|e| format!("{path}: {e}"))?;
        let text = parts.iter().try_fold(text, |text, (name, part)| text::replace_part(&text, name, part));
        Ok(Generated { path, text: text.map_err(|e| format!("{path}: {e}"))? })
    };
    [
        whole("core/src/facts.rs", rust::core(facts)),
        whole("bindings/go/facts.go", go::file(facts)),
        whole("bindings/java/src/main/java/dev/ramway/Facts.java", java::file(facts)),
        parts("bindings/java/src/main/java/dev/ramway/ErrorKind.java", vec![("error kinds", java::errors(facts))]),
        parts(
            "bindings/java/src/main/java/dev/ramway/ElementType.java",
            vec![("element types", java::element_types(facts))],
        ),
        whole("bindings/zig/src/facts.zig", zig::file(facts)),
        whole("bindings/csharp/src/Facts/Facts.cs", csharp::file(facts)),
        whole("bindings/node/lib/facts.ts", node::file(facts)),
        whole("capi/src/facts.rs", c::library(facts)),
        whole("capi/include/ramway/facts.h", c::header(facts)),
        parts("capi/include/ramway/result.hpp", vec![("status", c::cpp_status(facts))]),
        parts("capi/include/ramway/rpc.hpp", vec![("rpc statuses", c::cpp_rpc_status(facts))]),
        parts("docs/ABI.md", page::parts(facts)),
    ]
    .into_iter()
    .collect()
}

/// Writes every generated file that is not up to date, and gives their paths.
///
/// # Errors
/// As [`facts`] and [`generated`]; a file cannot be written.
pub fn write() -> Result<Vec<&'static str>> {
    let mut written = Vec::new();
    for file in stale()? {
        fs::write(root().join(file.path), &file.text).map_err(|e| format!("{}: {e}", file.path))?;
        written.push(file.path);
    }
    Ok(written)
}

/// The generated files that differ from what they have to be.
///
/// # Errors
/// As [`facts`] and [`generated`].
pub fn stale() -> Result<Vec<Generated>> {
    let mut files = generated(&facts()?)?;
    files.retain(|file| fs::read_to_string(root().join(file.path)).unwrap_or_default() != file.text);
    Ok(files)
}
