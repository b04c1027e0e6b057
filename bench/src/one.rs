//! One row by hand: a mechanism, a size, a number of messages.

use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::pair::Pair;
use crate::plan;
use crate::programs::{self, Known};
use crate::report::{Both, Percentiles};
use crate::rounds::{each_ps, scaled};
use crate::run::{Options, Progress};
use crate::stats::Series;
use serde::Serialize;

/// What to measure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct One {
    /// Its name.
    pub mechanism: String,
    /// What it does; `count` messages (round trips, …) altogether.
    pub burst: Burst,
    /// Bytes of buffering.
    pub capacity: u64,
}

impl One {
    /// This mechanism and this.
    pub fn new(mechanism: &str, burst: Burst, capacity: u64) -> Self {
        Self { mechanism: mechanism.into(), burst, capacity }
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Single {
    /// The mechanism.
    pub mechanism: String,
    /// Of the library, if it is one.
    pub version: String,
    /// What was timed.
    pub test: Test,
    /// How the sides waited or published.
    pub mode: Mode,
    /// Messages that were published together.
    pub batch: u32,
    /// Bytes of a message.
    pub size: usize,
    /// Bytes of buffering that were asked for.
    pub capacity: u64,
    /// Messages or round trips.
    pub messages: u64,
    /// What they took, without the warm-up and without what lies between two bursts.
    pub seconds: f64,
    /// The one divided by the other.
    pub msgs_per_s: f64,
    /// Payload at that rate, one direction.
    pub mib_per_s: Option<f64>,
    /// Nanoseconds of one operation.
    pub ns: Percentiles,
    /// Processor time in percent of one processor, the sender's first.
    pub cpu_percent: Both<f64>,
    /// The most memory that was resident, in bytes.
    pub peak_rss: Both<u64>,
    /// Context switches per operation.
    pub context_switches: Both<f64>,
    /// Whether the payload is copied on its way.
    pub copied: bool,
}

/// What a burst aims at: an interruption is noticed and progress shown between two.
const BURST_PS: f64 = 300e9;
/// Operations of the first burst, which finds out how long one takes.
const FIRST: u64 = 100;

/// What else this mechanism can be asked for.
fn instead(known: &Known, burst: &Burst) -> String {
    let all = [
        (Test::OneWay, [Mode::Each, Mode::Batch, Mode::Block, Mode::Hybrid].as_slice()),
        (Test::Rtt, &[Mode::Spin, Mode::Hybrid, Mode::Block]),
        (Test::Wake, &[Mode::Block]),
    ];
    for size in [burst.size, 32, 0] {
        let can = |test, mode| known.can(&Burst { test, mode, size, smallest: size, ..*burst });
        let tests = all.iter().filter_map(|&(test, modes)| {
            let modes: Vec<_> = modes.iter().filter(|&&mode| can(test, mode)).map(|mode| mode.name()).collect();
            (!modes.is_empty()).then(|| format!("{} {}", test.name(), modes.join(" or ")))
        });
        let tests: Vec<_> = tests.collect();
        if !tests.is_empty() {
            let of = if size == burst.size { String::new() } else { format!(" with messages of {size} B") };
            return format!("; it can do {}{of}", tests.join(", "));
        }
    }
    "; it carries nothing that could be measured by hand".to_owned()
}

/// Measures one row. The plan and the choice of rows in `options` do not matter here.
///
/// # Errors
/// There is no such mechanism, it cannot do this, or it failed; or it was interrupted.
pub fn run_one(one: &One, options: &Options, progress: &mut dyn FnMut(&Progress)) -> Result<Single> {
    let name = &one.mechanism;
    let known = programs::all(options.peers.as_deref())?;
    let known = known.into_iter().find(|known| known.about.name == *name);
    let known = known.ok_or_else(|| match plan::PEERS.split_whitespace().any(|peer| peer == name) {
        true => format!("{name} was not built (make bench-peers)"),
        false => format!("no mechanism is called {name}"),
    })?;
    let command = known.command.clone()?;
    let Burst { test, mode, size, count: messages, batch, .. } = one.burst;
    let cannot = || {
        let can = if known.builtin { instead(&known, &one.burst) } else { String::new() };
        format!("{name} cannot do {} {} with messages of {size} B{can}", test.name(), mode.name())
    };
    if !known.can(&one.burst) {
        return Err(cannot().into());
    }
    let pair = Pair::start(&command, name, one.capacity, &one.burst, &options.conditions(false))?;
    let mut pair = pair.ok_or_else(cannot)?;
    let mut series = Series::new();
    let mut seconds = 0.0;
    let mut left = messages;
    let mut burst = Burst { count: FIRST.next_multiple_of(u64::from(batch)).min(messages), ..one.burst };
    let mut warm = false;
    while left > 0 {
        options.check_interrupted()?;
        let now = Burst { count: burst.count.min(left), ..burst };
        let expected = std::time::Duration::from_nanos((now.gap_ns + now.work_ns).saturating_mul(now.count));
        let outcome = pair.burst(&now, expected)?;
        if warm {
            series.add(series.rounds() as u32, &now, &outcome);
            seconds += outcome.elapsed_ps as f64 / 1e12;
            left -= now.count;
        } else {
            // A tenth of it may warm up, unless that is hardly anything.
            let longer = scaled(&burst, each_ps(&burst, &outcome), BURST_PS);
            warm = longer.count >= messages / 10 || longer.count <= burst.count * 2;
            burst = longer;
        }
        progress(&Progress { done: messages - left, total: messages, label: name.clone() });
    }
    pair.stop()?;
    let figures = series.figures(&burst);
    let msgs_per_s = messages as f64 / seconds;
    Ok(Single {
        mechanism: name.clone(),
        version: known.about.version,
        test,
        mode,
        batch,
        size,
        capacity: one.capacity,
        messages,
        seconds,
        msgs_per_s,
        mib_per_s: (size > 0).then(|| msgs_per_s * size as f64 / f64::from(1 << 20)),
        ns: figures.ns,
        cpu_percent: figures.cpu_percent,
        peak_rss: figures.peak_rss,
        context_switches: figures.context_switches,
        copied: known.about.copied,
    })
}
