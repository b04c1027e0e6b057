//! A ring buffer under a process-shared, robust mutex, with a condition variable for each side: what textbooks teach.
//! Messages are copied in and out under the lock; several that go together take it once. Where the time goes is measured
//! apart: taking and giving the lock, waiting for a condition, notifying, copying.

use super::pipe::{Pending, can_stream};
use crate::area::Area;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use crate::control::Control;
use crate::{Result, clock};
use std::io::Error;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) struct MutexRing;

/// Before each message: its length.
const HEADER: usize = 8;
const DATA: usize = 4096;
// Where things are in the first page: both positions are only touched under the lock.
const MUTEX: usize = 0;
const FILLED: usize = 128;
const DRAINED: usize = 256;
const TAIL: usize = 384;
const HEAD: usize = 392;

/// Beyond it the other process hangs.
const WAIT_MAX_S: i64 = 60;

/// The parts of an operation.
#[derive(Clone, Copy)]
enum Part {
    Lock,
    Condition,
    Notify,
    Copy,
}

const PARTS: [&str; 4] = ["lock", "condition wait", "notify", "copy"];

/// A stop watch that is off unless somebody wants the parts.
#[derive(Default)]
struct Split {
    on: bool,
    last: u64,
    ticks: [u64; 4],
}

impl Split {
    #[inline(always)]
    fn start(&mut self) {
        if self.on {
            self.last = clock::now();
        }
    }

    /// What has passed since the last reading was for this.
    #[inline(always)]
    fn was(&mut self, part: Part) {
        if self.on {
            let now = clock::now();
            self.ticks[part as usize] += now - self.last;
            self.last = now;
        }
    }
}

/// One direction.
struct Shared {
    area: Area,
    capacity: usize,
}

/// What a call of pthreads returned, as an error that says what was tried.
fn check(code: libc::c_int, what: &str) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(format!("{what}: {}", Error::from_raw_os_error(code)).into()) }
}

impl Shared {
    fn new(capacity: usize) -> Result<Self> {
        let shared = Self { area: Area::new(DATA + capacity)?, capacity };
        // SAFETY: zeroed attributes that are initialised before use; a mutex and two condition variables in memory that
        // nobody else has mapped yet, each in a place of its own that is large and aligned enough.
        unsafe {
            let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
            check(libc::pthread_mutexattr_init(&mut attributes), "a mutex's attributes")?;
            let across = libc::PTHREAD_PROCESS_SHARED;
            check(libc::pthread_mutexattr_setpshared(&mut attributes, across), "a process-shared mutex")?;
            let robust = libc::PTHREAD_MUTEX_ROBUST;
            check(libc::pthread_mutexattr_setrobust(&mut attributes, robust), "a robust mutex")?;
            check(libc::pthread_mutex_init(shared.mutex(), &attributes), "a mutex")?;
            libc::pthread_mutexattr_destroy(&mut attributes);
            let mut attributes: libc::pthread_condattr_t = std::mem::zeroed();
            check(libc::pthread_condattr_init(&mut attributes), "a condition variable's attributes")?;
            check(libc::pthread_condattr_setpshared(&mut attributes, across), "a process-shared condition variable")?;
            check(libc::pthread_condattr_setclock(&mut attributes, libc::CLOCK_MONOTONIC), "its clock")?;
            for at in [FILLED, DRAINED] {
                check(libc::pthread_cond_init(shared.condition(at), &attributes), "a condition variable")?;
            }
            libc::pthread_condattr_destroy(&mut attributes);
        }
        Ok(shared)
    }

    fn mutex(&self) -> *mut libc::pthread_mutex_t {
        self.area.bytes(MUTEX, FILLED - MUTEX).cast()
    }

    fn condition(&self, at: usize) -> *mut libc::pthread_cond_t {
        self.area.bytes(at, DRAINED - FILLED).cast()
    }

    fn lock(&self) -> Result<()> {
        // SAFETY: initialised by the creating side, and mapped for as long as `self`.
        self.taken(unsafe { libc::pthread_mutex_lock(self.mutex()) })
    }

    /// The mutex was taken, perhaps from a process that died with it.
    fn taken(&self, code: libc::c_int) -> Result<()> {
        match code {
            0 => Ok(()),
            libc::EOWNERDEAD => {
                self.unlock();
                Err("the other process died with the lock".into())
            }
            code => check(code, "the mutex"),
        }
    }

    fn unlock(&self) {
        // SAFETY: as in `lock`. Fails only if this thread does not have it.
        unsafe { libc::pthread_mutex_unlock(self.mutex()) };
    }

    /// Gives the lock up until somebody notifies.
    fn wait(&self, condition: usize) -> Result<()> {
        // SAFETY: as in `lock`, and this thread has it; the times are the call's own.
        let code = unsafe {
            let mut until: libc::timespec = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut until);
            until.tv_sec += WAIT_MAX_S;
            libc::pthread_cond_timedwait(self.condition(condition), self.mutex(), &until)
        };
        if code == libc::ETIMEDOUT {
            self.unlock();
            return Err("the other process does not answer".into());
        }
        self.taken(code)
    }

    fn notify(&self, condition: usize) {
        // SAFETY: as in `lock`. Enters the kernel only if somebody waits.
        unsafe { libc::pthread_cond_signal(self.condition(condition)) };
    }

    /// The two positions. Relaxed, here and below: accessed under the lock only.
    fn positions(&self) -> (u64, u64) {
        (self.area.word(TAIL).load(Relaxed), self.area.word(HEAD).load(Relaxed))
    }

    /// Copies bytes to a position, in two parts where they go around the end.
    fn put(&self, position: u64, bytes: &[u8]) {
        let at = (position % self.capacity as u64) as usize;
        let first = bytes.len().min(self.capacity - at);
        // SAFETY: free places of the ring, which nobody else touches without the lock.
        unsafe {
            let (to, again) = (self.area.bytes(DATA + at, first), self.area.bytes(DATA, bytes.len() - first));
            to.copy_from_nonoverlapping(bytes.as_ptr(), first);
            again.copy_from_nonoverlapping(bytes.as_ptr().add(first), bytes.len() - first);
        }
    }

    /// Copies bytes from a position.
    fn get(&self, position: u64, bytes: &mut [u8]) {
        let at = (position % self.capacity as u64) as usize;
        let first = bytes.len().min(self.capacity - at);
        // SAFETY: filled places of the ring, which nobody else touches without the lock.
        unsafe {
            let (from, again) = (self.area.bytes(DATA + at, first), self.area.bytes(DATA, bytes.len() - first));
            from.copy_to_nonoverlapping(bytes.as_mut_ptr(), first);
            again.copy_to_nonoverlapping(bytes.as_mut_ptr().add(first), bytes.len() - first);
        }
    }
}

struct Ends {
    out: Shared,
    input: Shared,
    /// Messages with their lengths.
    output: Pending,
    buffer: Vec<u8>,
    split: Split,
}

impl Mechanism for MutexRing {
    fn about(&self) -> About {
        let what = "a ring buffer under a robust process-shared mutex and two condition variables, copied in and out";
        About::new("mutex-ring", Kind::ByHand, true, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        can_stream(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let capacity = (setup.capacity as usize).max(HEADER + setup.largest);
        let (there, back) = (Shared::new(capacity)?, Shared::new(capacity)?);
        let fds = vec![there.area.fd(), back.area.fd()];
        let ticket = format!("{} {} {capacity}", fds[0], fds[1]);
        Ok(Prepared::new(ticket, move || Ok(Box::new(Timed::new(there, back)) as Box<dyn End>)).inherit(fds))
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        let numbers = ticket.split(' ').map(str::parse).collect::<std::result::Result<Vec<usize>, _>>()?;
        let &[there, back, capacity] = numbers.as_slice() else { return Err("not a ticket for two rings".into()) };
        let area = |fd: usize| Area::inherited(fd as i32, DATA + capacity);
        let (input, out) = (Shared { area: area(there)?, capacity }, Shared { area: area(back)?, capacity });
        Ok(Box::new(Timed::new(out, input)))
    }
}

impl Channel for Ends {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let bytes = self.output.add(HEADER + size);
        let (header, message) = bytes.split_first_chunk_mut::<HEADER>().expect("room for a header");
        *header = (size as u64).to_ne_bytes();
        fill(message);
        if !flush {
            return Ok(());
        }
        let Self { out, output, split, .. } = self;
        let bytes = output.bytes();
        if bytes.len() > out.capacity {
            return Err("the messages do not fit into the ring together".into());
        }
        split.start();
        out.lock()?;
        split.was(Part::Lock);
        let tail = loop {
            let (tail, head) = out.positions();
            if bytes.len() as u64 <= out.capacity as u64 - (tail - head) {
                break tail;
            }
            out.wait(DRAINED)?;
            split.was(Part::Condition);
        };
        out.put(tail, bytes);
        out.area.word(TAIL).store(tail + bytes.len() as u64, Relaxed);
        split.was(Part::Copy);
        out.unlock();
        split.was(Part::Lock);
        // After unlocking, so that who wakes up does not find the mutex taken.
        out.notify(FILLED);
        split.was(Part::Notify);
        output.clear();
        Ok(())
    }

    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let Self { input, buffer, split, .. } = self;
        let step = HEADER + size;
        split.start();
        input.lock()?;
        split.was(Part::Lock);
        let (tail, head) = loop {
            let (tail, head) = input.positions();
            if tail != head {
                break (tail, head);
            }
            input.wait(FILLED)?;
            split.was(Part::Condition);
        };
        // Those that are asked for together are of one size.
        let taken = ((tail - head) as usize / step).clamp(1, max as usize) * step;
        if buffer.len() < taken {
            buffer.resize(taken, 0);
        }
        let length = taken.min((tail - head) as usize);
        input.get(head, &mut buffer[..length]);
        input.area.word(HEAD).store(head + taken as u64, Relaxed);
        split.was(Part::Copy);
        input.unlock();
        split.was(Part::Lock);
        input.notify(DRAINED);
        split.was(Part::Notify);
        let mut count = 0;
        for message in buffer[..taken].chunks_exact(step) {
            let (length, message) = message.split_at(HEADER);
            if length != (size as u64).to_ne_bytes() {
                return Err("the message received is not as long as the one sent".into());
            }
            read(message);
            count += 1;
        }
        Ok(count)
    }
}

/// A stream or a round trip is preceded by a few operations whose parts are timed: each costs two readings of the clock,
/// so they do not count otherwise.
struct Timed {
    ends: Ends,
}

/// How many: the same before a long burst and a short one, because system calls are counted by the difference of two.
fn timed(burst: &Burst) -> u64 {
    match burst.test {
        _ if burst.size > 4096 || burst.work_ns > 0 => 4,
        Test::OneWay => 512,
        _ => 64,
    }
}

impl Timed {
    fn new(out: Shared, input: Shared) -> Self {
        let (output, buffer, split) = (Pending::default(), Vec::new(), Split::default());
        Self { ends: Ends { out, input, output, buffer, split } }
    }

    /// Does them in `run`, then begins what is measured.
    fn first(
        &mut self,
        burst: &Burst,
        control: &Control,
        run: impl FnOnce(&mut Ends, &Burst) -> Result<()>,
    ) -> Result<()> {
        if !matches!(burst.test, Test::Rtt | Test::OneWay) {
            return Ok(());
        }
        let count = timed(burst);
        self.ends.split = Split { on: true, ..Split::default() };
        // A group that never ends: no samples.
        run(&mut self.ends, &Burst { count, group: u32::MAX, ..*burst })?;
        for (name, ticks) in PARTS.into_iter().zip(self.ends.split.ticks) {
            // The report divides by the burst's operations.
            control.part(name, (u128::from(ticks) * u128::from(burst.count) / u128::from(count)) as u64);
        }
        self.ends.split.on = false;
        control.begin();
        Ok(())
    }
}

impl End for Timed {
    fn lead(&mut self, burst: &Burst, control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        self.first(burst, control, |ends, burst| ends.lead(burst, control, &mut Vec::new()))?;
        self.ends.lead(burst, control, samples)
    }

    fn follow(&mut self, burst: &Burst, control: &Control) -> Result<()> {
        self.first(burst, control, |ends, burst| ends.follow(burst, control))?;
        self.ends.follow(burst, control)
    }
}
