//! What is wrong with a configuration: where, what, and what to do.

use std::fmt;
use std::path::Path;

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// On this line of the file, counted from 1.
    Line(usize),
    /// On the command line.
    Flags,
    /// Nowhere: what is missing.
    Whole,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What, what was expected, what to do.
    pub text: String,
}

/// All that is wrong with one configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The file, as it was named; empty for the command line.
    pub file: String,
    /// In the order of the file.
    pub list: Vec<Problem>,
}

impl Problems {
    pub(super) fn of(path: &Path, mut list: Vec<Problem>) -> Self {
        list.sort_by_key(|problem| problem.place);
        Self { file: path.display().to_string(), list }
    }

    pub(super) fn of_flags(list: Vec<Problem>) -> Self {
        Self { file: String::new(), list }
    }

    pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        let text = format!("cannot be read: {error}; name a file of rules after --config");
        Self::of(path, vec![Problem { place: Place::Whole, text }])
    }
}

/// One problem a line, each with its place.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.list.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            match problem.place {
                Place::Line(line) => write!(f, "{}:{line}: ", self.file)?,
                Place::Whole if !self.file.is_empty() => write!(f, "{}: ", self.file)?,
                Place::Flags | Place::Whole => {}
            }
            f.write_str(&problem.text)?;
        }
        Ok(())
    }
}
