//! One group: its pairs of processes, its rounds, its rows.

use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::channel::About;
use crate::clock;
use crate::control::samples_max;
use crate::fan::RECEIVED_BY_SENT;
use crate::pair::{Conditions, Pair};
use crate::placement::{self, Class, REPEATS, Sorted, Watch};
use crate::plan::{Candidate, GroupPlan};
use crate::programs::Known;
use crate::report::{Apart, Both, Distance, Figures, Group, Row};
use crate::run::Options;
use crate::stats::{Series, is_rate, median};
use crate::syscalls;
use crate::worker::Outcome;
use std::time::{Duration, Instant};

/// The fewest rounds that count, however long they take.
const ROUNDS: u32 = 5;
/// What a burst aims at: long beside what surrounds it, short beside the moods of the machine.
const BURST_PS: f64 = 3e9;
/// The same of a stream that drops what a queue has no room for: the queue must be full for nearly all of it.
const DROPPING_BURST_PS: f64 = 30e9;
/// The same where a number of operations is wanted, not a number of rounds.
const LONG_BURST_PS: f64 = 300e9;

/// What a burst whose system calls are counted would take if they were not.
const TRACED_NS: f64 = 2e6;

/// What a group needs of its run.
pub(crate) struct Clockwork<'a> {
    pub(crate) options: &'a Options,
    pub(crate) conditions: Conditions,
    pub(crate) known: &'a [Known],
}

/// A row in the making.
struct Contender {
    about: About,
    burst: Burst,
    sorted: Sorted,
    /// What counts of it, once all is measured.
    whole: Series,
    syscalls: Option<Both<f64>>,
    state: State,
    /// Bytes that the warm-up has carried.
    moved: u64,
    /// Picoseconds of an operation in the warm-up's best burst.
    fastest_ps: f64,
}

enum State {
    Runs(Pair),
    /// Through; its figures are in the series.
    Done,
    Failed(String),
}

/// Measures a group.
pub(crate) fn measure(
    clockwork: &Clockwork<'_>,
    plan: &GroupPlan,
    watch: Option<&mut Watch>,
    progress: &mut dyn FnMut(Duration, &str),
) -> Result<(Group, Vec<Row>)> {
    let mut watch = watch.filter(|_| placement::matters(plan.burst.test));
    let first = watch.as_ref().map_or(0, |watch| watch.judge.count());
    let mut contenders = Vec::new();
    for candidate in &plan.candidates {
        clockwork.options.check_interrupted()?;
        progress(Duration::ZERO, &candidate.mechanism);
        contenders.extend(clockwork.start(plan, candidate));
    }
    let rounds = clockwork.rounds(plan, watch.as_deref_mut(), &mut contenders, progress)?;
    let two = watch.as_ref().is_some_and(|watch| watch.judge.two());
    for contender in &mut contenders {
        contender.whole = contender.sorted.whole(two);
        clockwork.options.check_interrupted()?;
        contender.count_syscalls();
        contender.stop();
    }
    let any = |of: fn(&Sorted) -> &Series| contenders.iter().any(|contender| of(&contender.sorted).rounds() > 0);
    let (near, far) = (any(|sorted| &sorted.near), any(|sorted| &sorted.far));
    let placements = watch.map_or(Vec::new(), |watch| watch.judge.seen(first, near, far));
    let group = Group { rounds, placements, ..plan.group.clone() };
    let rows = contenders.iter().map(|contender| contender.row(&group, two, &contenders)).collect();
    Ok((group, rows))
}

impl Clockwork<'_> {
    /// The candidate's pair; `None` if it cannot do what the group does.
    fn start(&self, plan: &GroupPlan, candidate: &Candidate) -> Option<Contender> {
        let known = self.known.iter().find(|known| known.about.name == candidate.mechanism)?;
        let contender = |burst, state| {
            let (about, sorted, whole) = (known.about.clone(), Sorted::new(), Series::new());
            Contender { about, burst, sorted, whole, syscalls: None, state, moved: 0, fastest_ps: f64::INFINITY }
        };
        let command = match &known.command {
            Ok(command) => command,
            Err(why) => return Some(contender(plan.burst, State::Failed(why.clone()))),
        };
        for burst in std::iter::once(plan.burst).chain(plan.others.iter().copied()) {
            if !known.can(&burst) {
                continue;
            }
            match Pair::start(command, &candidate.mechanism, candidate.capacity, &burst, &self.conditions) {
                Ok(Some(pair)) => return Some(contender(burst, State::Runs(pair))),
                Ok(None) => {}
                Err(cause) => return Some(contender(burst, State::Failed(cause.to_string()))),
            }
        }
        None
    }

    /// Gives the number of rounds that count.
    fn rounds(
        &self,
        plan: &GroupPlan,
        mut watch: Option<&mut Watch>,
        contenders: &mut [Contender],
        progress: &mut dyn FnMut(Duration, &str),
    ) -> Result<u32> {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        let mut random = clock::now();
        let aim_ps = if plan.at_least > 0 { LONG_BURST_PS } else { BURST_PS };
        let began = Instant::now();
        let (mut rounds, mut warm_ups, mut warm, mut planned) = (0, 0, false, None);
        loop {
            // Another order in each round, so that no row is always after the same other.
            for i in (1..order.len()).rev() {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                order.swap(i, (random >> 33) as usize % (i + 1));
            }
            match &mut watch {
                Some(watch) if warm => self.round(rounds, &order, watch, contenders)?,
                _ => {
                    for &at in &order {
                        self.options.check_interrupted()?;
                        match warm {
                            true => contenders[at].count(rounds, Class::Near),
                            false => contenders[at].warm_up(aim_ps),
                        }
                    }
                }
            }
            if warm {
                rounds += 1;
            } else {
                warm_ups += 1;
                // Two rounds, of which the first is a guess, and a tenth of the time. Longer for a buffer that was not
                // yet full once, whose pages nobody has touched, but then others must not have all of the time either.
                let new = contenders.iter().any(|contender| contender.is_new(plan.group.capacity));
                let until = if new { plan.budget / 3 } else { plan.budget / 10 };
                warm = warm_ups >= 2 && began.elapsed() >= until;
            }
            progress(began.elapsed(), &format!("round {rounds}"));
            let all_failed = contenders.iter().all(|contender| matches!(contender.state, State::Failed(_)));
            let done = match self.options.rounds {
                Some(wanted) => rounds >= wanted,
                None => rounds >= ROUNDS && began.elapsed() >= plan.budget,
            };
            if all_failed {
                return Ok(rounds);
            }
            if done && enough(contenders, plan.at_least) {
                // Mixed bursts do not count: for those there are some more rounds, but not without end.
                let planned = *planned.get_or_insert(rounds);
                let two = watch.as_ref().is_some_and(|watch| watch.judge.two());
                if !two || clean(contenders) || rounds >= 3 * planned {
                    return Ok(rounds);
                }
            }
        }
    }

    /// A round that counts, with the raw flag timed before and after each burst: the one after a burst is the one before the
    /// next.
    fn round(&self, round: u32, order: &[usize], watch: &mut Watch, contenders: &mut [Contender]) -> Result<()> {
        let flag = |contenders: &mut [Contender], watch: &mut Watch| -> Result<f64> {
            let flag = watch.time()?;
            if let Some(class) = watch.judge.see(flag) {
                contenders.iter_mut().for_each(|contender| contender.sorted.rename_near(class));
            }
            Ok(flag)
        };
        let mut before = flag(contenders, watch)?;
        for &at in order {
            let mut repeats = 0;
            loop {
                self.options.check_interrupted()?;
                let Some(outcome) = contenders[at].burst() else { break };
                let after = flag(contenders, watch)?;
                let again = placement::moved(before, after) && repeats < REPEATS;
                let class = watch.judge.burst(before, after);
                before = after;
                if !again {
                    let Contender { sorted, burst, .. } = &mut contenders[at];
                    sorted.of(class).add(round, burst, &outcome);
                    break;
                }
                repeats += 1;
                watch.judge.repeated += 1;
            }
        }
        Ok(())
    }
}

/// Whether every row that still runs has at least `least` operations that count.
fn enough(contenders: &[Contender], least: u64) -> bool {
    let runs = |contender: &&Contender| matches!(contender.state, State::Runs(_));
    contenders.iter().filter(runs).all(|contender| contender.sorted.operations() >= least)
}

/// Whether every row that still runs has clean bursts by which one of two placements can be judged.
fn clean(contenders: &[Contender]) -> bool {
    let runs = |contender: &&Contender| matches!(contender.state, State::Runs(_));
    let enough = |series: &Series| series.rounds() >= placement::ROUNDS;
    contenders.iter().filter(runs).all(|one| enough(&one.sorted.near) || enough(&one.sorted.far))
}

impl Contender {
    /// One burst; `None` if it does not run any more.
    fn burst(&mut self) -> Option<Outcome> {
        let State::Runs(pair) = &mut self.state else { return None };
        let expected = Duration::from_nanos(self.burst.gap_ns.saturating_mul(self.burst.count));
        match pair.burst(&self.burst, expected) {
            Ok(outcome) => Some(outcome),
            Err(cause) => {
                self.state = State::Failed(cause.to_string());
                None
            }
        }
    }

    /// One burst that counts.
    fn count(&mut self, round: u32, class: Class) {
        if let Some(outcome) = self.burst() {
            self.sorted.of(class).add(round, &self.burst, &outcome);
        }
    }

    /// One burst that finds out how long a burst must be.
    fn warm_up(&mut self, aim_ps: f64) {
        let Some(outcome) = self.burst() else { return };
        self.moved += outcome.operations * self.burst.size as u64;
        let now_ps = each_ps(&self.burst, &outcome);
        self.fastest_ps = self.fastest_ps.min(now_ps);
        let aim_ps = if drops(&self.burst, &outcome) { DROPPING_BURST_PS.max(aim_ps) } else { aim_ps };
        // By what was not disturbed, unless that is far from what happens now.
        self.burst = scaled(&self.burst, self.fastest_ps.max(now_ps / 8.0), aim_ps);
    }

    /// Whether a stream has not yet gone once through a buffer of this size.
    fn is_new(&self, capacity: u64) -> bool {
        let runs = matches!(self.state, State::Runs(_));
        runs && self.burst.test == Test::OneWay && self.moved < capacity
    }

    /// In bursts of their own, because who is traced is slow.
    fn count_syscalls(&mut self) {
        let test = self.burst.test;
        // Only a process's first thread is traced.
        let elsewhere = test.is_pool() && (test != Test::PoolGet || self.burst.threads > 1) || test.is_fan();
        if test.is_access() || test == Test::Idle || elsewhere {
            return;
        }
        let State::Runs(pair) = &mut self.state else { return };
        // Few at first: a traced system call takes a hundred times as long.
        let each_ns = self.whole.each_ns().max(1.0);
        let few = ((TRACED_NS / each_ns) as u64).clamp(2, 64);
        let mut counted = traced(pair, &self.burst, few);
        if matches!(counted, Ok(Some(counts)) if counts.iter().all(|&count| count < 0.5)) {
            // None or hardly any: with more operations, one by chance weighs less.
            counted = traced(pair, &self.burst, ((2.0 * TRACED_NS / each_ns) as u64).clamp(few, 50_000));
        }
        match counted {
            Ok(counted) => self.syscalls = counted,
            // The pair is of no use any more, but what it measured before stands.
            Err(_) => self.state = State::Done,
        }
    }

    fn stop(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Done) {
            State::Runs(pair) => pair.stop().map_or_else(|cause| State::Failed(cause.to_string()), |()| State::Done),
            other => other,
        };
    }

    fn row(&self, group: &Group, two: bool, all: &[Self]) -> Row {
        let mixed = if two { self.sorted.mixed.rounds() } else { 0 };
        let row = match &self.state {
            State::Failed(why) => Row::failed(&group.id, self.about.clone(), why.clone()),
            _ if mixed > 0 && self.whole.rounds() == 0 => {
                Row::failed(&group.id, self.about.clone(), placement::never_clean(mixed))
            }
            _ => Row {
                id: format!("{}/{}", group.id, self.about.name),
                group: group.id.clone(),
                about: self.about.clone(),
                failure: None,
                figures: Some(self.figures(group, all, |contender| &contender.whole)),
                apart: if group.placements.len() > 1 { self.apart(group, all) } else { Vec::new() },
                mixed: 0,
            },
        };
        Row { mixed: mixed as u32, ..row }
    }

    fn apart(&self, group: &Group, all: &[Self]) -> Vec<Apart> {
        let of = |placement, of: fn(&Self) -> &Series| {
            (of(self).rounds() > 0).then(|| Apart { placement, figures: self.figures(group, all, of) })
        };
        let near = of(Distance::Near, |contender| &contender.sorted.near);
        let far = of(Distance::Far, |contender| &contender.sorted.far);
        near.into_iter().chain(far).collect()
    }

    fn figures(&self, group: &Group, all: &[Self], of: fn(&Self) -> &Series) -> Figures {
        let mut figures = of(self).figures(&self.burst);
        let series = |name: &Option<String>| {
            let name = name.as_deref().filter(|&name| name != self.about.name)?;
            all.iter().find(|other| other.about.name == name).map(of)
        };
        figures.syscalls = self.syscalls;
        figures.ratio_to_floor = series(&group.floor).and_then(|floor| of(self).ratio_to(floor));
        figures.ratio_to_ceiling = series(&group.ceiling).and_then(|ceiling| ceiling.ratio_to(of(self)));
        figures
    }
}

/// System calls per operation: the difference between a burst and one of twice as many operations, so that what surrounds
/// a burst does not count.
/// The least of three bursts: a side that polls gives its processor away when the other one has lost its own.
fn traced(pair: &mut Pair, burst: &Burst, count: u64) -> Result<Option<Both<f64>>> {
    let count = count.next_multiple_of(u64::from(burst.batch.max(1)));
    let [leading, following, ..] = pair.pids[..] else { return Ok(None) };
    let mut least = [[u64::MAX; 2]; 2];
    for _ in 0..3 {
        for (times, least) in (1..).zip(&mut least) {
            let group = (times * count).div_ceil(1000).max(u64::from(burst.group)) as u32;
            let burst = Burst { count: times * count, group, ..*burst };
            let expected = Duration::from_nanos(burst.gap_ns.saturating_mul(burst.count));
            match syscalls::during([leading, following], || pair.burst(&burst, expected).map(|_| ()))? {
                Some(both) => *least = [least[0].min(both[0]), least[1].min(both[1])],
                None => return Ok(None),
            }
        }
        if least[0].iter().zip(least[1]).all(|(&once, twice)| twice <= once + 2) {
            break;
        }
    }
    let per_op = |side: usize| least[1][side].saturating_sub(least[0][side]) as f64 / count as f64;
    Ok(Some([per_op(0), per_op(1)]))
}

/// What an operation took, in picoseconds.
pub(crate) fn each_ps(burst: &Burst, outcome: &Outcome) -> f64 {
    // What was lost took its time too.
    let operations = if drops(burst, outcome) { burst.count } else { outcome.operations };
    let whole = outcome.elapsed_ps as f64 / operations.max(1) as f64;
    let by_sample =
        matches!(burst.test, Test::Rtt | Test::PoolGet | Test::PoolAlternate | Test::Publish | Test::Latest);
    if !by_sample || outcome.samples_ps.is_empty() {
        return whole;
    }
    // A burst that lost its processor for a while is no slower for that.
    let group = f64::from(burst.group.max(1));
    let mut samples: Vec<f64> = outcome.samples_ps.iter().map(|&ps| ps as f64 / group).collect();
    median(&mut samples)
}

/// Whether what it measured is a stream that may lose messages.
fn drops(burst: &Burst, outcome: &Outcome) -> bool {
    burst.test == Test::Readers && outcome.ratios.iter().any(|(name, _)| name == RECEIVED_BY_SENT)
}

/// The same burst with as many operations as fit into a time.
pub(crate) fn scaled(burst: &Burst, each_ps: f64, aim_ps: f64) -> Burst {
    if burst.test == Test::Idle {
        return *burst;
    }
    let pool = matches!(burst.test, Test::PoolGet | Test::PoolAlternate);
    // A first guess may be one operation between two ticks of the clock, and threads do it side by side.
    let each_ps = if pool { each_ps.max(2000.0) / f64::from(burst.threads.max(1)) } else { each_ps.max(1.0) };
    let together = u64::from(burst.batch.max(1));
    let least = match burst.test {
        test if test.is_access() => 1,
        Test::Paced | Test::Pauses | Test::Wake | Test::WakeAll => 10,
        Test::Bursty => 4 * together,
        _ => 3.max(if burst.mode == Mode::Batch { 4 * together } else { 0 }),
    };
    let count = ((aim_ps / each_ps) as u64).max(least).next_multiple_of(together);
    let mut group = u64::from(burst.group.max(1));
    if is_rate(burst.test) || matches!(burst.test, Test::Publish | Test::Latest) {
        // A microsecond at least, and no more samples than tell something.
        group = group.max((1e6 / each_ps).ceil() as u64).max(count / 1000).next_multiple_of(together);
    }
    if pool {
        // Reading the clock is half a percent of it.
        group = (5e6 / each_ps).ceil() as u64;
    }
    group = group.max(count.div_ceil(samples_max(burst.test)));
    Burst { count, group: group.min(u64::from(u32::MAX)) as u32, ..*burst }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_takes_about_as_long_as_it_should() {
        let rtt = Burst { group: 10, ..Burst::new(Test::Rtt, Mode::Spin, 32, 100) };
        let scaled_to = |burst: &Burst, each_ns: f64| scaled(burst, each_ns * 1000.0, BURST_PS);
        assert_eq!((scaled_to(&rtt, 100.0).count, scaled_to(&rtt, 100.0).group), (30_000, 10));
        // Not fewer than three, however long they take; whole batches, and whole batches to a sample.
        let large = Burst::new(Test::OneWay, Mode::Each, 64 << 20, 4);
        assert_eq!((scaled_to(&large, 1e8).count, scaled_to(&large, 1e8).group), (3, 1));
        let batch = Burst { batch: 32, ..Burst::new(Test::OneWay, Mode::Batch, 32, 320) };
        for each_ns in [0.5, 3.0, 77.0, 1e6] {
            let burst = scaled_to(&batch, each_ns);
            assert!(burst.count % 32 == 0 && burst.group % 32 == 0 && burst.count >= 4 * 32, "{burst:?}");
            assert!(burst.count / u64::from(burst.group) <= samples_max(burst.test), "{burst:?}");
        }
        let idle = Burst::new(Test::Idle, Mode::Hybrid, 32, 1);
        assert_eq!(scaled_to(&idle, 1e9), idle);
        assert_eq!(scaled_to(&Burst::new(Test::SequentialRead, Mode::Each, 1 << 30, 1), 1e8).count, 1);
    }
}
