//! Where the hypervisor has put the two processors: the raw flag between them, timed before and after each burst.
//!
//! Two virtual processors can be moved to other cores at any time. Where they share a cache a word there and back takes a
//! fifth of what it takes elsewhere, and everything that two processes do follows. A median of both is luck, so each burst
//! is sorted by the flags beside it:
//!
//! - A flag of up to [`NEAR`] times the run's shortest is *near*, one of [`FAR`] times or more is *far*.
//! - A burst with two near flags is near, one with two far flags is far, every other one is *mixed*. Where the second flag
//!   is [`NEAR`] times the first or the other way round, it is repeated at once, up to [`REPEATS`] times.
//! - A run has two placements if it has [`PROBES`] flags of each, each is a twentieth of all flags or more, and no more than a
//!   tenth lies between them. Any other run, such as one on a machine without a hypervisor or one whose processors change their
//!   frequency, has one placement, and nothing of it is dropped.

use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::pair::Pair;
use crate::programs::Known;
use crate::report::{Distance, Report, Seen};
use crate::run::Options;
use crate::stats::{Series, median};
use std::time::Duration;

#[cfg(test)]
mod tests;
mod views;

pub(crate) use views::*;

/// A flag of up to this times the run's shortest one is near.
const NEAR: f64 = 1.7;
/// A flag of this times the run's shortest one or more is far.
const FAR: f64 = 2.4;
/// Two times of the flag that are further apart than this are of two placements: between the two above.
const APART: f64 = 2.0;
/// The fewest flags of each that make two placements.
const PROBES: usize = 3;
/// The smallest part of all flags that makes a placement, as a divisor. A processor that is taken away for 0.1 s, as virtual ones
/// are once in a few seconds, makes 30 long flags in a row.
const SHARE: usize = 20;
/// How often a burst is repeated.
pub(crate) const REPEATS: u32 = 2;
/// Round trips of a probe: 30 µs where they are near, 150 µs where they are far.
const TRIPS: u64 = 300;
/// The fewest rounds of one of two placements by which a row is judged or compared.
pub(crate) const ROUNDS: usize = 3;

/// What times the flag, and what it has seen.
pub(crate) struct Watch {
    timed: Box<dyn FnMut() -> Result<f64>>,
    pub(crate) judge: Judge,
}

impl Watch {
    /// By a pair of processes on the run's two processors; `None` where there is no placement: see [`none`].
    pub(crate) fn start(options: &Options, known: &[Known]) -> Result<Option<Self>> {
        if none(options.cpus()).is_some() {
            return Ok(None);
        }
        let flag = known.iter().find(|known| known.about.name == "raw-flag").ok_or("raw-flag is not known")?;
        let burst = Burst { group: 10, ..Burst::new(Test::Rtt, Mode::Spin, 0, TRIPS) };
        let pair = Pair::start(&flag.command.clone()?, "raw-flag", 1 << 12, &burst, &options.conditions(false))?;
        let mut pair = pair.ok_or("raw-flag cannot do a round trip")?;
        let mut watch = Self::new(move || {
            let outcome =
                pair.burst(&burst, Duration::ZERO).map_err(|cause| format!("timing the raw flag: {cause}"))?;
            let shortest = outcome.samples_ps.iter().min().ok_or("timing the raw flag: no samples")?;
            Ok(*shortest as f64 / f64::from(burst.group) / 1000.0)
        });
        // The first one touches pages for the first time.
        watch.time()?;
        Ok(Some(watch))
    }

    pub(crate) fn new(timed: impl FnMut() -> Result<f64> + 'static) -> Self {
        Self { timed: Box::new(timed), judge: Judge::default() }
    }

    /// Times the flag: nanoseconds of a round trip. The shortest of some, because a process that loses its processor makes a
    /// flag longer, and nothing makes it shorter than the placement allows.
    pub(crate) fn time(&mut self) -> Result<f64> {
        // A clock that stands still for ten round trips is no reason to divide by zero.
        Ok((self.timed)()?.max(0.1))
    }
}

/// Why two processes with these processors have no placement, if they have none.
pub(crate) fn none(cpus: [Option<usize>; 2]) -> Option<&'static str> {
    match cpus {
        [Some(a), Some(b)] if a != b => None,
        [Some(_), Some(_)] => Some("one processor: there is no placement of two"),
        _ => Some("not pinned: the scheduler moves the processes, so placements are not told apart"),
    }
}

/// Whether the placement of the processors changes what a test measures. It does not where the receiver waits for nothing.
pub(crate) fn matters(test: Test) -> bool {
    test != Test::Idle
}

/// Whether the two moved between these two flags.
pub(crate) fn moved(before: f64, after: f64) -> bool {
    before.max(after) > NEAR * before.min(after)
}

/// What a flag or a burst is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Near,
    Far,
    Mixed,
}

/// The flags of a run so far.
#[derive(Default)]
pub(crate) struct Judge {
    flags: Vec<f64>,
    least: Option<f64>,
    /// Bursts that were repeated.
    pub(crate) repeated: u64,
}

impl Judge {
    /// Takes in a flag. Where it is so short that what was near until now is not, says what that is instead.
    pub(crate) fn see(&mut self, flag: f64) -> Option<Class> {
        self.flags.push(flag);
        let before = self.least.unwrap_or(flag);
        self.least = Some(before.min(flag));
        Some(self.class(before)).filter(|class| *class != Class::Near)
    }

    /// Takes in what an earlier part of the run has seen.
    pub(crate) fn recall(&mut self, seen: &[Seen]) {
        for one in seen {
            for _ in 0..one.probes.min(1 << 20) {
                self.see(one.flag_ns);
            }
        }
    }

    /// How many flags there are.
    pub(crate) fn count(&self) -> usize {
        self.flags.len()
    }

    fn class(&self, flag: f64) -> Class {
        match flag / self.least.unwrap_or(flag) {
            times if times <= NEAR => Class::Near,
            times if times >= FAR => Class::Far,
            _ => Class::Mixed,
        }
    }

    /// A burst between two flags.
    pub(crate) fn burst(&self, before: f64, after: f64) -> Class {
        let (before, after) = (self.class(before), self.class(after));
        if before == after { before } else { Class::Mixed }
    }

    /// Whether the run has two placements.
    pub(crate) fn two(&self) -> bool {
        let count = |class| self.flags.iter().filter(|&&flag| self.class(flag) == class).count();
        let fewest = count(Class::Near).min(count(Class::Far));
        fewest >= PROBES && fewest * SHARE >= self.flags.len() && count(Class::Mixed) * 10 <= self.flags.len()
    }

    /// What the flags from this one on were, for the placements of a group that has `near` and `far` bursts.
    pub(crate) fn seen(&self, from: usize, near: bool, far: bool) -> Vec<Seen> {
        let flags = &self.flags[from.min(self.flags.len())..];
        let of = |placement, is: &dyn Fn(f64) -> bool| {
            let mut found: Vec<f64> = flags.iter().copied().filter(|&flag| is(flag)).collect();
            (!found.is_empty()).then(|| Seen { placement, probes: found.len() as u64, flag_ns: median(&mut found) })
        };
        if !self.two() {
            return of(Distance::One, &|_| true).into_iter().collect();
        }
        let near = near.then(|| of(Distance::Near, &|flag| self.class(flag) == Class::Near)).flatten();
        let far = far.then(|| of(Distance::Far, &|flag| self.class(flag) == Class::Far)).flatten();
        near.into_iter().chain(far).collect()
    }
}

/// A row's bursts, each where it belongs.
pub(crate) struct Sorted {
    pub(crate) near: Series,
    pub(crate) far: Series,
    pub(crate) mixed: Series,
}

impl Sorted {
    pub(crate) fn new() -> Self {
        Self { near: Series::new(), far: Series::new(), mixed: Series::new() }
    }

    pub(crate) fn of(&mut self, class: Class) -> &mut Series {
        match class {
            Class::Near => &mut self.near,
            Class::Far => &mut self.far,
            Class::Mixed => &mut self.mixed,
        }
    }

    /// What was near is not, after a flag that was far shorter.
    pub(crate) fn rename_near(&mut self, class: Class) {
        let near = std::mem::replace(&mut self.near, Series::new());
        self.of(class).take(&near);
    }

    /// What counts: all of it where there is one placement, and without the mixed bursts where there are two.
    pub(crate) fn whole(&self, two: bool) -> Series {
        let mut whole = Series::new();
        whole.take(&self.near);
        whole.take(&self.far);
        if !two {
            whole.take(&self.mixed);
        }
        whole
    }

    pub(crate) fn operations(&self) -> u64 {
        self.near.operations + self.far.operations + self.mixed.operations
    }
}

/// Names the placements at the end of a run, by all that it saw: a group may have been measured before the run knew that there
/// are two.
pub(crate) fn name(report: &mut Report) {
    let all = || report.groups.iter().flat_map(|group| &group.placements);
    let least = all().map(|seen| seen.flag_ns).fold(f64::INFINITY, f64::min);
    let far = |flag_ns: f64| flag_ns > APART * least;
    let two = report.groups.iter().any(|group| group.placements.len() > 1) || all().any(|seen| far(seen.flag_ns));
    for group in &mut report.groups {
        if let [only] = group.placements.as_mut_slice() {
            only.placement = match (two, far(only.flag_ns)) {
                (false, _) => Distance::One,
                (true, false) => Distance::Near,
                (true, true) => Distance::Far,
            };
        }
    }
    let seen = [Distance::Near, Distance::Far, Distance::One].into_iter().filter_map(|placement| {
        let of = report.groups.iter().flat_map(|group| &group.placements).filter(|seen| seen.placement == placement);
        let (flags, probes): (Vec<f64>, Vec<u64>) = of.map(|seen| (seen.flag_ns, seen.probes)).unzip();
        let mut flags = flags;
        (!flags.is_empty()).then(|| Seen { placement, flag_ns: median(&mut flags), probes: probes.iter().sum() })
    });
    let seen = seen.collect();
    if let Some(placement) = &mut report.placement {
        placement.seen = seen;
    }
}
