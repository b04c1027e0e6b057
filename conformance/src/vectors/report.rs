//! What came of playing every vector to every language: a table, or JSON.

use serde::Serialize;

use crate::table;

/// One language's results.
#[derive(Serialize)]
pub struct Tally {
    /// The language.
    pub name: String,
    /// Why it was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Readers of good images.
    pub good: Count,
    /// Readers of hostile images.
    pub hostile: Count,
    /// Exchanges.
    pub handshake: Count,
    /// What it makes itself.
    pub made: Count,
    /// What differed.
    pub failures: Vec<Failure>,
}

/// How many.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Count {
    /// As the vector says.
    pub passed: u32,
    /// Otherwise.
    pub failed: u32,
}

/// One difference.
#[derive(Clone, Serialize)]
pub struct Failure {
    /// The vector's name.
    pub vector: String,
    /// The role that it was read in.
    #[serde(rename = "as")]
    pub role: String,
    /// What was found instead.
    pub text: String,
}

impl Count {
    fn add(&mut self, passed: bool) {
        if passed { self.passed += 1 } else { self.failed += 1 }
    }

    fn cell(self) -> String {
        match self.failed {
            0 => self.passed.to_string(),
            failed => format!("{failed} of {} differ", self.passed + failed),
        }
    }
}

impl Tally {
    /// A language that nothing has been asked of yet.
    pub fn new(name: &str, skipped: Option<String>) -> Self {
        let (good, hostile, handshake, made) = Default::default();
        Self { name: name.into(), skipped, good, hostile, handshake, made, failures: Vec::new() }
    }

    /// Notes one result in the column that `of` picks.
    pub fn note(&mut self, of: fn(&mut Self) -> &mut Count, failure: Option<Failure>) {
        of(self).add(failure.is_none());
        self.failures.extend(failure);
    }

    /// How many results there are.
    pub fn total(&self) -> Count {
        [self.good, self.hostile, self.handshake, self.made].into_iter().fold(Count::default(), |sum, one| Count {
            passed: sum.passed + one.passed,
            failed: sum.failed + one.failed,
        })
    }
}

/// Prints all of it, but for the line that counts.
pub fn print(tallies: &[Tally], json: bool) {
    if json {
        let text = serde_json::to_string_pretty(&serde_json::json!({ "languages": tallies }));
        println!("{}", text.unwrap_or_default());
        return;
    }
    let row = |tally: &Tally| match &tally.skipped {
        Some(missing) => vec![tally.name.clone(), format!("skipped: missing {missing}")],
        None => {
            let counts = [tally.good, tally.hostile, tally.handshake, tally.made];
            std::iter::once(tally.name.clone()).chain(counts.map(Count::cell)).collect()
        }
    };
    let rows: Vec<_> = tallies.iter().map(row).collect();
    println!("{}", table::figures(&["vectors", "good", "hostile", "handshake", "made"], 1, &rows));
    for tally in tallies {
        for failure in &tally.failures {
            println!("{}: {} as {}: {}", tally.name, failure.vector, failure.role, failure.text);
        }
    }
}
