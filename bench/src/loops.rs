//! The tests, the same over every [`Channel`]. Nothing here allocates while it is measured.

use crate::case::{Burst, REQUEST, Test};
use crate::channel::{Channel, DAMAGED, End, fill, sum, sum_of, verify};
use crate::control::Control;
use crate::{Result, clock};

/// What the two ends of a burst have in common.
struct Work<'a> {
    burst: &'a Burst,
    control: &'a Control,
}

impl<C: Channel> End for C {
    fn lead(&mut self, burst: &Burst, control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        self.configure(burst.mode)?;
        let work = Work { burst, control };
        match burst.test {
            Test::Rtt => work.ping(self, samples),
            Test::Call => work.call(self, samples),
            Test::OneWay if burst.smallest != burst.size => work.send_mixed(self),
            Test::OneWay => work.send_stream(self),
            Test::Wake => work.wake(self),
            Test::Paced | Test::Bursty => work.send_when_due(self),
            Test::Pauses => work.ping_after_pauses(self, samples),
            Test::Idle => work.send_late(self),
            Test::View => Err(NO_ARRAYS.into()),
            Test::SequentialRead | Test::SequentialWrite | Test::RandomRead => Err(NO_MESSAGES.into()),
            Test::PoolGet | Test::PoolAlternate | Test::PoolMixed | Test::PoolPipeline | Test::PoolHeld => {
                Err(NO_BUFFERS.into())
            }
            Test::Readers | Test::Publish | Test::Lapped | Test::Latest | Test::WakeAll | Test::Producers => {
                Err(ONE_TO_ONE.into())
            }
        }
    }

    fn follow(&mut self, burst: &Burst, control: &Control) -> Result<()> {
        self.configure(burst.mode)?;
        let work = Work { burst, control };
        match burst.test {
            Test::Rtt => work.echo(self),
            Test::Call => work.answer(self),
            Test::OneWay if burst.smallest != burst.size => work.receive_mixed(self),
            Test::OneWay => work.receive_stream(self),
            Test::Wake => work.sleep(self),
            Test::Paced | Test::Bursty => work.receive_when_due(self),
            Test::Pauses => work.echo_after_pauses(self),
            Test::Idle => work.receive_late(self),
            Test::View => Err(NO_ARRAYS.into()),
            Test::SequentialRead | Test::SequentialWrite | Test::RandomRead => Err(NO_MESSAGES.into()),
            Test::PoolGet | Test::PoolAlternate | Test::PoolMixed | Test::PoolPipeline | Test::PoolHeld => {
                Err(NO_BUFFERS.into())
            }
            Test::Readers | Test::Publish | Test::Lapped | Test::Latest | Test::WakeAll | Test::Producers => {
                Err(ONE_TO_ONE.into())
            }
        }
    }
}

const NO_ARRAYS: &str = "has no arrays to make of a message";
const NO_MESSAGES: &str = "carries messages: there is no memory to go through";
const NO_BUFFERS: &str = "carries messages: it has no buffers to give";
const ONE_TO_ONE: &str = "carries messages from one sender to one reader, which gets all of them";

/// A gap up to this is waited for by looking at the clock: a sleep would be longer than the gap.
const SHORT_GAP_NS: u64 = 200_000;
/// How long before the time a sleeper is back to look at the clock.
const EARLY_NS: u64 = 100_000;

impl Work<'_> {
    #[inline(never)]
    fn ping(&self, channel: &mut impl Channel, samples: &mut Vec<u64>) -> Result<()> {
        let Burst { size, count, group, .. } = *self.burst;
        let mut total = 0u64;
        let mut left = group;
        let mut last = clock::now();
        for n in 0..count {
            channel.send(size, true, |bytes| fill(bytes, n))?;
            channel.receive(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
            left -= 1;
            if left == 0 {
                left = group;
                let now = clock::now();
                samples.push(now - last);
                last = now;
            }
        }
        verify(total, size, count)
    }

    #[inline(never)]
    fn echo(&self, channel: &mut impl Channel) -> Result<()> {
        let Burst { size, count, .. } = *self.burst;
        let mut total = 0u64;
        for n in 0..count {
            channel.receive(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
            channel.send(size, true, |bytes| fill(bytes, n))?;
        }
        verify(total, size, count)
    }

    /// A channel has no calls: what the messages of calls cost by themselves.
    #[inline(never)]
    fn call(&self, channel: &mut impl Channel, samples: &mut Vec<u64>) -> Result<()> {
        let Burst { size, count, batch, .. } = *self.burst;
        let under_way = u64::from(batch).min(count);
        let mut total = 0u64;
        let mut round_trips = RoundTrips::new(self.burst.group);
        for n in 0..under_way {
            channel.send(REQUEST, true, |bytes| fill(bytes, n))?;
        }
        for n in 0..count {
            channel.receive(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
            round_trips.passed(samples);
            if n + under_way < count {
                channel.send(REQUEST, true, |bytes| fill(bytes, n + under_way))?;
            }
        }
        verify(total, size, count)
    }

    #[inline(never)]
    fn answer(&self, channel: &mut impl Channel) -> Result<()> {
        let Burst { size, count, .. } = *self.burst;
        let mut total = 0u64;
        for n in 0..count {
            channel.receive(REQUEST, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
            channel.send(size, true, |bytes| fill(bytes, n))?;
        }
        verify(total, REQUEST, count)
    }

    #[inline(never)]
    fn send_stream(&self, channel: &mut impl Channel) -> Result<()> {
        let Burst { size, count, batch, .. } = *self.burst;
        if batch <= 1 {
            for n in 0..count {
                channel.send(size, true, |bytes| fill(bytes, n))?;
            }
            return Ok(());
        }
        let mut n = 0;
        while n < count {
            let together = u64::from(batch).min(count - n) as u32;
            channel.send_together(size, together, |at, bytes| fill(bytes, n + u64::from(at)))?;
            n += u64::from(together);
        }
        Ok(())
    }

    #[inline(never)]
    fn receive_stream(&self, channel: &mut impl Channel) -> Result<()> {
        let Burst { size, count, batch, group, work_ns, .. } = *self.burst;
        let (group, labour) = (u64::from(group), clock::ticks(work_ns));
        let mut total = 0u64;
        let mut stamps = Stamps::new(group);
        let mut left = count;
        while left > 0 {
            let max = u64::from(batch).min(left) as u32;
            let got = if labour == 0 {
                channel.receive(size, max, |bytes| total = total.wrapping_add(sum(bytes)))?
            } else {
                channel.receive(size, max, |bytes| {
                    total = total.wrapping_add(sum(bytes));
                    spin(labour);
                })?
            };
            left -= u64::from(got);
            stamps.passed(u64::from(got), self.control);
        }
        verify(total, size, count)
    }

    /// Of different sizes, so every message says which it is: its first word is its number.
    #[inline(never)]
    fn send_mixed(&self, channel: &mut impl Channel) -> Result<()> {
        for n in 0..self.burst.count {
            channel.send(self.burst.size_of(n), true, |bytes| fill(bytes, n))?;
        }
        Ok(())
    }

    #[inline(never)]
    fn receive_mixed(&self, channel: &mut impl Channel) -> Result<()> {
        let Burst { count, group, .. } = *self.burst;
        let mut damaged = false;
        let mut stamps = Stamps::new(u64::from(group));
        for n in 0..count {
            let size = self.burst.size_of(n);
            channel.receive(size, 1, |bytes| {
                damaged |= bytes.len() != size || first_word(bytes) != n || sum(bytes) != sum_of(size, n);
            })?;
            stamps.passed(1, self.control);
        }
        if damaged { Err(DAMAGED.into()) } else { Ok(()) }
    }

    fn wake(&self, channel: &mut impl Channel) -> Result<()> {
        for n in 0..self.burst.count {
            self.control.let_sleep(n + 1)?;
            channel.send(self.burst.size, true, |bytes| fill(bytes, n))?;
        }
        Ok(())
    }

    fn sleep(&self, channel: &mut impl Channel) -> Result<()> {
        let Burst { size, count, .. } = *self.burst;
        let mut total = 0u64;
        for n in 0..count {
            self.control.arm(n + 1);
            channel.receive(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
            self.control.woken();
        }
        verify(total, size, count)
    }

    /// Messages carry the time at which they were due: a sender that is late does not make the receiver look good.
    #[inline(never)]
    fn send_when_due(&self, channel: &mut impl Channel) -> Result<()> {
        let Burst { size, count, batch, gap_ns, .. } = *self.burst;
        let gap = clock::ticks(gap_ns);
        let batch = u64::from(batch.max(1));
        let mut alarm = Alarm::new(gap_ns);
        let first = clock::now() + gap;
        for n in 0..count {
            let due = first + n / batch * gap;
            if n % batch == 0 {
                alarm.wait_for(due);
            }
            let flush = (n + 1) % batch == 0 || n + 1 == count;
            if size == 0 {
                self.control.sending(due);
            }
            channel.send(size, flush, |bytes| fill(bytes, due))?;
        }
        Ok(())
    }

    #[inline(never)]
    fn receive_when_due(&self, channel: &mut impl Channel) -> Result<()> {
        let Burst { size, count, work_ns, .. } = *self.burst;
        let labour = clock::ticks(work_ns);
        let mut damaged = false;
        for _ in 0..count {
            let mut due = 0;
            channel.receive(size, 1, |bytes| {
                due = first_word(bytes);
                damaged |= bytes.len() != size || sum(bytes) != sum_of(size, due);
            })?;
            let now = clock::now();
            if size == 0 {
                due = self.control.sent();
            }
            self.control.sample(now.saturating_sub(due));
            spin(labour);
        }
        if damaged { Err(DAMAGED.into()) } else { Ok(()) }
    }

    /// Pauses on both sides, so that either comes to wait at any moment of the other's work. A sample is a round trip
    /// without the other side's pause, which both know.
    fn ping_after_pauses(&self, channel: &mut impl Channel, samples: &mut Vec<u64>) -> Result<()> {
        let Burst { size, count, gap_ns, .. } = *self.burst;
        let gap = clock::ticks(gap_ns);
        let mut total = 0u64;
        for n in 0..count {
            spin(pause(2 * n, gap));
            let begin = clock::now();
            channel.send(size, true, |bytes| fill(bytes, n))?;
            channel.receive(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
            samples.push((clock::now() - begin).saturating_sub(pause(2 * n + 1, gap)));
        }
        verify(total, size, count)
    }

    fn echo_after_pauses(&self, channel: &mut impl Channel) -> Result<()> {
        let Burst { size, count, gap_ns, .. } = *self.burst;
        let gap = clock::ticks(gap_ns);
        let mut total = 0u64;
        for n in 0..count {
            channel.receive(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
            spin(pause(2 * n + 1, gap));
            channel.send(size, true, |bytes| fill(bytes, n))?;
        }
        verify(total, size, count)
    }

    fn send_late(&self, channel: &mut impl Channel) -> Result<()> {
        for n in 0..self.burst.count {
            std::thread::sleep(std::time::Duration::from_nanos(self.burst.gap_ns));
            self.control.sending(clock::now());
            channel.send(self.burst.size, true, |bytes| fill(bytes, n))?;
        }
        Ok(())
    }

    fn receive_late(&self, channel: &mut impl Channel) -> Result<()> {
        let Burst { size, count, .. } = *self.burst;
        let mut total = 0u64;
        for _ in 0..count {
            channel.receive(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
            self.control.woken();
        }
        verify(total, size, count)
    }
}

#[inline(always)]
fn first_word(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |word| u64::from_ne_bytes(*word))
}

/// Works for a number of ticks, by looking at the clock.
#[inline(always)]
fn spin(ticks: u64) {
    if ticks > 0 {
        let until = clock::now() + ticks;
        while clock::now() < until {
            std::hint::spin_loop();
        }
    }
}

/// From nothing to `gap`, the same in both processes.
fn pause(n: u64, gap: u64) -> u64 {
    let random = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    ((u128::from(random) * u128::from(gap)) >> 32) as u64
}

/// A time stamp for every `group` replies.
pub struct RoundTrips {
    group: u32,
    left: u32,
    last: u64,
}

impl RoundTrips {
    /// The first of them begins now.
    pub fn new(group: u32) -> Self {
        Self { group, left: group, last: clock::now() }
    }

    /// A reply is there.
    #[inline(always)]
    pub fn passed(&mut self, samples: &mut Vec<u64>) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.group;
            let now = clock::now();
            samples.push(now - self.last);
            self.last = now;
        }
    }
}

/// A time stamp for every `group` messages of a stream, from the first message's arrival.
pub(crate) struct Stamps {
    group: u64,
    passed: u64,
    last: Option<u64>,
}

impl Stamps {
    pub(crate) fn new(group: u64) -> Self {
        Self { group, passed: 0, last: None }
    }

    #[inline(always)]
    pub(crate) fn passed(&mut self, messages: u64, control: &Control) {
        self.passed += messages;
        if self.passed >= self.group || self.last.is_none() {
            self.stamp(control);
        }
    }

    #[inline(always)]
    fn stamp(&mut self, control: &Control) {
        let now = clock::now();
        if let Some(last) = self.last {
            // What came together may be more than a group.
            let ticks = now - last;
            control.sample(if self.passed == self.group { ticks } else { ticks * self.group / self.passed });
        }
        self.last = Some(now);
        self.passed = 0;
    }
}

/// Waits for points in time.
struct Alarm {
    sleeps: bool,
    /// The same moment in ticks and on CLOCK_MONOTONIC.
    anchor: (u64, u64),
}

impl Alarm {
    fn new(gap_ns: u64) -> Self {
        let sleeps = gap_ns > SHORT_GAP_NS;
        if sleeps {
            // SAFETY: how late the kernel may wake this thread: 1 ns instead of 50 µs.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        }
        Self { sleeps, anchor: (clock::now(), clock::monotonic_ns()) }
    }

    #[inline(always)]
    fn wait_for(&mut self, due: u64) {
        if self.sleeps {
            self.sleep_until(due);
        }
        while clock::now() < due {
            std::hint::spin_loop();
        }
    }

    fn sleep_until(&self, due: u64) {
        let ns = self.anchor.1 + (clock::ps(due.saturating_sub(self.anchor.0)) / 1000.0) as u64;
        let ns = ns.saturating_sub(EARLY_NS);
        let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
        // SAFETY: reads the struct that it is given; an early return is made up for by looking at the clock.
        unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut()) };
    }
}
