//! Files that are written at the end of a long run: tried at its beginning, and whole or not there at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ramway_cli::failure::{Failure, Outcome};

/// A file to be.
pub struct Pending {
    path: PathBuf,
    /// What becomes the file; `None` where the path is a pipe or a device, which is written to as it is.
    part: Option<PathBuf>,
    file: File,
}

impl Pending {
    /// Makes sure now that `path` can be written later.
    pub fn new(path: &Path) -> Outcome<Self> {
        let cannot = |error: io::Error| Failure::io(&error, format!("cannot write {}", path.display()));
        let special = match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(cannot(io::ErrorKind::IsADirectory.into())),
            Ok(found) => !found.is_file(),
            Err(_) => false,
        };
        let mut options = OpenOptions::new();
        options.write(true);
        if special {
            let file = options.open(path).map_err(cannot)?;
            return Ok(Self { path: path.to_owned(), part: None, file });
        }
        if path.exists() {
            // A file that may not be written is not replaced either.
            options.open(path).map_err(cannot)?;
        }
        // Through a link, as a plain write would go.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let Some(name) = path.file_name() else { return Err(cannot(io::ErrorKind::InvalidInput.into())) };
        let mut part = std::ffi::OsString::from(".");
        part.push(name);
        part.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(part);
        let file = options.create_new(true).open(&part).map_err(cannot)?;
        Ok(Self { path, part: Some(part), file })
    }

    /// Makes it a file with this in it.
    pub fn write(mut self, text: &str) -> Outcome {
        let cannot = |error: io::Error| Failure::io(&error, format!("cannot write {}", self.path.display()));
        self.file.write_all(text.as_bytes()).map_err(cannot)?;
        if let Some(part) = &self.part {
            self.file.sync_all().map_err(cannot)?;
            fs::rename(part, &self.path).map_err(cannot)?;
            self.part = None;
        }
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}
