//! What a run says: the data, which is also the JSON, and its text.

use crate::stats;
use crate::table::{short, table};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// `checkpoint`.
    pub program: String,
    /// Of the process: `system`, `jemalloc`, `mimalloc`.
    pub allocator: String,
    /// The kernel, the processor, how many of them.
    pub machine: String,
    /// Tensors of the file.
    pub tensors: usize,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Ways that were compared with each other.
    pub groups: Vec<Group>,
    /// Groups that could not be measured, and why.
    pub skipped: Vec<String>,
    /// What the figures say together.
    pub findings: Vec<String>,
    /// What was to be reached.
    pub bars: Vec<Bar>,
}

/// How many times as fast a load with a warm page cache is to be with the pool.
const BAR: f64 = 3.8;

/// What was to be reached with one reader.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bar {
    /// `read`, `pread` or `uring`.
    pub reader: String,
    /// Time of the better of the ways that allocate for each tensor (of `Vec::with_capacity`) divided by that of the better
    /// way with the pool's usual pages: the median of the ratios within the rounds.
    pub times: f64,
    /// What it should be at least.
    pub bar: f64,
    /// Whether it is.
    pub met: bool,
}

/// Ways that were measured in the same rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Group {
    /// Short, with dashes.
    pub id: String,
    /// For people.
    pub title: String,
    /// How often each was measured.
    pub rounds: usize,
    /// One for each way.
    pub rows: Vec<Row>,
}

/// A way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Short, with dashes.
    pub name: String,
    /// One line.
    pub what: String,
    /// Why there are no figures.
    pub failure: Option<String>,
    /// What is to be known about them.
    pub note: Option<String>,
    /// The figures.
    pub figures: Option<Figures>,
}

/// Milliseconds and counts of one load of all tensors and the end of their memory. Medians over the rounds unless they say
/// otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The whole, in the best round.
    pub least_ms: f64,
    /// The whole.
    pub median_ms: f64,
    /// Until every byte was there.
    pub load_ms: f64,
    /// Giving the memory back.
    pub free_ms: f64,
    /// 10^9 bytes of tensors a second of the whole.
    pub gb_per_s: f64,
    /// Time of `Vec::with_capacity` for each tensor divided by this time: the median of the ratios within the rounds.
    pub times_vec: Option<f64>,
    /// The same of `vec![0; n]`.
    pub times_zeroed: Option<f64>,
    /// Page faults without a disk.
    pub faults: f64,
    /// Page faults with one.
    pub major_faults: f64,
    /// Processor time of all threads in the program.
    pub user_ms: f64,
    /// Processor time of all threads in the kernel.
    pub system_ms: f64,
    /// The whole, round by round; a round is the same moment in all rows of a group.
    pub rounds_ms: Vec<f64>,
}

impl Report {
    /// Adds the groups of another run on the same file.
    pub fn add(&mut self, other: Self) {
        self.groups.extend(other.groups);
        self.skipped.extend(other.skipped);
    }

    fn figures(&self, group: &str, row: &str) -> Option<&Figures> {
        let group = self.groups.iter().find(|other| other.id == group)?;
        group.rows.iter().find(|other| other.name == row)?.figures.as_ref()
    }

    /// Says where the time of a load goes that allocates for each tensor, from the rows of one reader and of the parts.
    pub fn find(&mut self) {
        for reader in ["read", "pread", "uring"] {
            let best = |names: &[&str]| {
                let all = names.iter().filter_map(|name| self.figures(reader, name));
                all.min_by(|a, b| a.median_ms.total_cmp(&b.median_ms))
            };
            let figures = (
                best(&["vec", "vec-registered"]),
                best(&["pool", "pool-registered"]),
                best(&["kept", "kept-registered"]),
            );
            let (Some(vec), Some(pool), Some(kept)) = figures else { continue };
            let times = |than: &Figures| stats::ratio(&vec.rounds_ms, &than.rounds_ms).unwrap_or(f64::NAN);
            let (reached, most) = (times(pool), times(kept));
            let more = vec.median_ms - kept.median_ms;
            let faults = (vec.faults - kept.faults).max(0.0);
            // Where an allocator keeps what it is given back, there is nothing to divide by.
            let each = if faults < 1000.0 { String::new() } else { format!(", {:.2} us each", more * 1000.0 / faults) };
            let text = format!(
                "{reader}: {reached:.2} times as fast with the pool as with the better of two ways that allocate (to reach: \
                 {BAR}); with memory that is kept by hand {most:.2}. Without the pool it takes {:.0} ms: {:.0} are the copy, \
                 {more:.0} are {faults:.0} page faults and giving the pages back{each}",
                vec.median_ms, kept.median_ms,
            );
            self.bars.push(Bar { reader: reader.into(), times: reached, bar: BAR, met: reached >= BAR });
            self.findings.push(text);
        }
        let parts = ["copy-kept", "one-buffer", "touch-vec"].map(|name| self.figures("parts", name));
        if let [Some(copy), Some(one), Some(touch)] = parts {
            let text = format!(
                "parts: the program itself copies the bytes in {:.0} ms ({:.1} GB/s) between memory that is there; the kernel \
                 reads them into a buffer that stays in the processor's cache in {:.0} ms; a byte written to each page of new \
                 memory, and the memory freed, takes {:.0} ms without a byte read ({:.0} faults)",
                copy.median_ms, copy.gb_per_s, one.median_ms, touch.median_ms, touch.faults,
            );
            self.findings.push(text);
        }
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = format!(
            "checkpoint: {} tensors, {:.0} MB; allocator: {}; {}\n",
            self.tensors,
            self.bytes as f64 / 1e6,
            self.allocator,
            self.machine
        );
        let head =
            ["", "min ms", "median", "load", "free", "GB/s", "x vec", "x zeroed", "faults", "user ms", "kernel ms"];
        for group in &self.groups {
            let rows = group.rows.iter().map(|row| {
                let Some(figures) = &row.figures else { return vec![row.name.clone()] };
                let times = |times: Option<f64>| times.map_or("-".into(), short);
                let mut cells = vec![row.name.clone()];
                cells.extend([figures.least_ms, figures.median_ms, figures.load_ms, figures.free_ms].map(short));
                cells.extend([short(figures.gb_per_s), times(figures.times_vec), times(figures.times_zeroed)]);
                cells.extend([format!("{:.0}", figures.faults), short(figures.user_ms), short(figures.system_ms)]);
                cells
            });
            let _ = write!(text, "\n{}: {} ({} rounds)\n{}\n", group.id, group.title, group.rounds, table(&head, rows));
            for row in &group.rows {
                for said in row.failure.iter().chain(&row.note) {
                    let _ = writeln!(text, "  {}: {said}", row.name);
                }
            }
        }
        for said in self.skipped.iter().chain(&self.findings) {
            let _ = write!(text, "\n{said}\n");
        }
        text
    }
}
