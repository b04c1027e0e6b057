//! Which files.

use std::io;
use std::path::{Path, PathBuf};

/// The files that are named and those below the directories that are named, each once and sorted by name; and how many
/// directories could not be read, which is said on standard error.
pub fn all(paths: &[PathBuf]) -> (Vec<PathBuf>, usize) {
    let (mut files, mut failed) = (Vec::new(), 0);
    for path in paths {
        // What does not exist counts as a file: opening it says what is wrong.
        if path.is_dir() { below(path, &mut files, &mut failed) } else { files.push(path.clone()) }
    }
    // By their bytes, as `LC_ALL=C sort` would; the paths' own order compares part by part.
    files.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    files.dedup();
    (files, failed)
}

/// Regular files only: a symbolic link may lead in a circle, and who reads from a named pipe waits.
fn below(directory: &Path, files: &mut Vec<PathBuf>, failed: &mut usize) {
    let mut look = || -> io::Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                below(&entry.path(), files, failed);
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
        Ok(())
    };
    if let Err(error) = look() {
        eprintln!("digest: {}: {error}", directory.display());
        *failed += 1;
    }
}
