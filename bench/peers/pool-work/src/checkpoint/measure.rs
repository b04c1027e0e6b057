//! Rounds, in which every way is measured once, in another order.

use super::file::{Checkpoint, Mapping, checksum};
use super::memory::{Memory, Tensor};
use super::read::{by_copy, by_pread, by_read, into_one_buffer, sum, touch_only};
use super::report::{Figures, Group, Row};
use super::uring::Ring;
use crate::random::Random;
use crate::usage::Usage;
use crate::{Failure, Result, stats};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::time::Instant;

/// What one load does.
pub enum How {
    /// `read`.
    Read,
    /// `pread` from so many threads.
    Pread(usize),
    /// An io_uring; or why there is none.
    Ring(Result<Box<Ring>>),
    /// Copies from this mapping.
    Copy(Mapping),
    /// Writes a byte of each page.
    Touch,
    /// Reads everything into this.
    OneBuffer(Vec<MaybeUninit<u8>>),
    /// Maps the file, with all of its pages if true.
    Map(bool),
}

/// One row.
pub struct Way {
    /// Short, with dashes.
    pub name: &'static str,
    /// One line.
    pub what: &'static str,
    /// Where the bytes go.
    pub memory: Memory,
    /// How they get there.
    pub how: How,
}

/// Ways that are compared.
pub struct Contest {
    /// Short, with dashes.
    pub id: &'static str,
    /// For people.
    pub title: String,
    /// Every byte is read once after it was loaded, which is then a part of the load.
    pub used: bool,
    /// The file is dropped from the page cache before each load.
    pub cold: bool,
    /// How often each way is measured, the warm-up not counted.
    pub rounds: usize,
    /// How often before.
    pub warmup: usize,
    /// The rows.
    pub ways: Vec<Way>,
}

enum Held {
    Tensors(Vec<Tensor>),
    Mapping(Mapping),
    Nothing,
}

/// One load.
struct Sample {
    load_ns: f64,
    free_ns: f64,
    usage: Usage,
}

impl Way {
    fn load(&mut self, file: &Checkpoint) -> Result<Held> {
        let memory = &self.memory;
        Ok(match &mut self.how {
            How::Read => Held::Tensors(by_read(file, memory)?),
            How::Pread(threads) => Held::Tensors(by_pread(file, memory, *threads)?),
            How::Ring(Ok(ring)) => Held::Tensors(ring.load(file, memory)?),
            How::Ring(Err(why)) => return Err(why.to_string().into()),
            How::Copy(mapping) => Held::Tensors(by_copy(file, memory, mapping)?),
            How::Touch => Held::Tensors(touch_only(file, memory)?),
            How::OneBuffer(buffer) => {
                into_one_buffer(file, buffer)?;
                Held::Nothing
            }
            How::Map(populate) => Held::Mapping(Mapping::of(file, *populate)?),
        })
    }

    fn give_back(&self, held: Held) {
        match held {
            Held::Tensors(tensors) => self.memory.give_back(tensors),
            Held::Mapping(mapping) => drop(mapping),
            Held::Nothing => {}
        }
    }

    /// Loads and compares every byte, by its tensor's checksum; then spoils what was loaded, so that what the next load
    /// shows was read by it.
    fn verify(&mut self, file: &Checkpoint) -> Result<()> {
        if matches!(self.how, How::Touch | How::OneBuffer(_)) {
            return Ok(());
        }
        let mut held = self.load(file)?;
        for (index, place) in file.tensors.iter().enumerate() {
            let bytes = match &held {
                Held::Tensors(tensors) => tensors[index].bytes(),
                Held::Mapping(mapping) => &mapping.bytes()[place.offset as usize..][..place.len],
                Held::Nothing => continue,
            };
            if bytes.len() != place.len || checksum(bytes) != place.sum {
                return Err(format!("{}: the bytes of {} are not those of the file", self.name, place.name).into());
            }
        }
        if let Held::Tensors(tensors) = &mut held {
            tensors.iter_mut().for_each(Tensor::spoil);
        }
        self.give_back(held);
        Ok(())
    }

    fn prepare(&mut self, file: &Checkpoint) -> Result<()> {
        if let How::Ring(Ok(ring)) = &mut self.how {
            ring.prepare(file, &self.memory)?;
        }
        // Twice: the second load gets what the first one gave back.
        self.verify(file)?;
        self.verify(file)
    }

    fn sample(&mut self, file: &Checkpoint, contest: (bool, bool)) -> Result<Sample> {
        let (used, cold) = contest;
        if cold {
            file.forget()?;
        }
        let before = Usage::now();
        let began = Instant::now();
        let held = self.load(file)?;
        if used {
            for (index, place) in file.tensors.iter().enumerate() {
                black_box(match &held {
                    Held::Tensors(tensors) => sum(tensors[index].bytes()),
                    Held::Mapping(mapping) => sum(&mapping.bytes()[place.offset as usize..][..place.len]),
                    Held::Nothing => 0,
                });
            }
        }
        let loaded = Instant::now();
        self.give_back(held);
        let ended = Instant::now();
        Ok(Sample {
            load_ns: (loaded - began).as_nanos() as f64,
            free_ns: (ended - loaded).as_nanos() as f64,
            usage: Usage::now().since(before),
        })
    }

    /// What is to be said beside the figures.
    fn note(&self) -> Option<String> {
        match &self.how {
            How::Ring(Ok(ring)) if ring.missed > 0 => {
                Some(format!("{} requests went to memory that is not registered", ring.missed))
            }
            _ => None,
        }
    }
}

impl Contest {
    /// Verifies every way, measures all of them in turn, and verifies them again. A way that fails is a row that says so;
    /// wrong bytes end the run.
    ///
    /// # Errors
    /// Wrong bytes; a page cache that keeps what it should forget.
    pub fn run(mut self, file: &Checkpoint, progress: &mut dyn FnMut(&str)) -> Result<Group> {
        if self.cold {
            file.forget()?;
        } else {
            file.remember()?;
        }
        let mut failures: Vec<Option<Failure>> = Vec::new();
        for way in &mut self.ways {
            progress(&format!("{}: verifying {}", self.id, way.name));
            failures.push(match way.prepare(file) {
                Err(cause) if cause.to_string().contains("are not those of the file") => return Err(cause),
                outcome => outcome.err(),
            });
        }
        let mut samples: Vec<Vec<Sample>> = self.ways.iter().map(|_| Vec::new()).collect();
        let mut order: Vec<usize> = (0..self.ways.len()).collect();
        let mut random = Random::new(self.rounds as u64);
        for round in 0..self.warmup + self.rounds {
            progress(&format!("{}: round {} of {}", self.id, round + 1, self.warmup + self.rounds));
            random.shuffle(&mut order);
            for &index in &order {
                if failures[index].is_some() {
                    continue;
                }
                match self.ways[index].sample(file, (self.used, self.cold)) {
                    Ok(sample) if round >= self.warmup => samples[index].push(sample),
                    Ok(_) => {}
                    Err(cause) => failures[index] = Some(cause),
                }
            }
        }
        for (way, failure) in self.ways.iter_mut().zip(&failures) {
            if failure.is_none() {
                way.verify(file)?;
            }
        }
        let totals = |index: usize| -> Vec<f64> {
            samples[index].iter().map(|sample| sample.load_ns + sample.free_ns).collect()
        };
        let baseline = |name: &str| self.ways.iter().position(|way| way.name == name).map(totals);
        let (vec, zeroed) = (baseline("vec"), baseline("vec-zeroed"));
        let row = |(index, way): (usize, &Way)| {
            let failure = failures[index].as_ref().map(ToString::to_string);
            let mine = totals(index);
            let of = |value: fn(&Sample) -> f64| -> Vec<f64> { samples[index].iter().map(value).collect() };
            let times = |other: &Option<Vec<f64>>| other.as_ref().and_then(|other| stats::ratio(other, &mine));
            let figures = failure.is_none().then(|| Figures {
                least_ms: stats::least(&mine) / 1e6,
                median_ms: stats::median(&mine) / 1e6,
                load_ms: stats::median(&of(|sample| sample.load_ns)) / 1e6,
                free_ms: stats::median(&of(|sample| sample.free_ns)) / 1e6,
                gb_per_s: file.bytes as f64 / stats::median(&mine),
                times_vec: times(&vec),
                times_zeroed: times(&zeroed),
                faults: stats::median(&of(|sample| sample.usage.faults as f64)),
                major_faults: stats::median(&of(|sample| sample.usage.major_faults as f64)),
                user_ms: stats::median(&of(|sample| sample.usage.user_ns as f64)) / 1e6,
                system_ms: stats::median(&of(|sample| sample.usage.system_ns as f64)) / 1e6,
                rounds_ms: mine.iter().map(|ns| ns / 1e6).collect(),
            });
            Row { name: way.name.into(), what: way.what.into(), failure, note: way.note(), figures }
        };
        let rows = self.ways.iter().enumerate().map(row).collect();
        Ok(Group { id: self.id.into(), title: self.title.clone(), rounds: self.rounds, rows })
    }
}
