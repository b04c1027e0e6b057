//! Pools of buffers: the rows that get buffers and give them back, in one process. A program that measures another pool
//! implements [`Source`] and [`Buffers`] and offers [`Pools`]; the loops are shared, compiled for each pool by itself so
//! that its calls are inlined as they would be at a user's.

mod check;
mod held;
mod loops;
mod sizes;
mod timed;

use crate::case::{Burst, Test};
use crate::channel::{About, End, Mechanism, Prepared, Setup};
use crate::control::Control;
use crate::mechanism::Bystander;
use crate::usage::{Counts, count};
use crate::{Failure, Result};

pub use sizes::Sizes;
pub use timed::{Timed, built_in};

/// Buffers that may be on their way from the thread that got them to the one that gives them back.
pub const PIPELINE: usize = 64;

/// One thread's way to a pool's buffers.
pub trait Buffers {
    /// A buffer; dropping it gives it back.
    type Buffer<'a>
    where
        Self: 'a;
    /// A buffer with room for `len` bytes, none of which need be written.
    fn get(&self, len: usize) -> Self::Buffer<'_>;
    /// Where its room begins.
    fn start(buffer: &mut Self::Buffer<'_>) -> *mut u8;
}

/// A pool, which several threads may use.
pub trait Source: Send + Sync + Sized + 'static {
    /// What a thread gets its buffers from.
    type Thread<'a>: Buffers
    where
        Self: 'a;
    /// Another one, for a thread that uses two in turn: of the same type unless there is one of a type only.
    type Other: Source;
    /// A pool for buffers of up to `len` bytes, which `threads` threads will use.
    fn open(len: usize, threads: usize) -> Self;
    /// For the calling thread.
    fn thread(&self) -> Self::Thread<'_>;
    /// Called when no buffer is out, after at most `most` bytes were at a time: what is lost or grew without bound.
    ///
    /// # Errors
    /// Ends the row.
    fn settled(&self, most: usize) -> std::result::Result<(), Failure> {
        let _ = most;
        Ok(())
    }
}

/// A pool whose buffers may be given back by another thread than the one that got them.
///
/// # Safety
/// The buffers of its threads may be dropped on any thread while the pool and the thread's way to it are there.
pub unsafe trait Crosses: Source {}

/// How a pool without [`Crosses`] says that it cannot.
type Pipeline<S> = fn(&S, &Burst, &Control, &mut Vec<u64>, [Option<usize>; 2]) -> Result<()>;

/// The mechanism of a pool.
pub struct Pools<S: Source> {
    about: fn() -> About,
    pipeline: Option<Pipeline<S>>,
    /// Whether its memory is the allocator's, so that only the allocator knows what is held.
    heap: bool,
}

impl<S: Source> Pools<S> {
    /// Whose buffers stay on their thread.
    pub const fn new(about: fn() -> About) -> Self {
        Self { about, pipeline: None, heap: false }
    }

    /// Which holds nothing itself: the allocator does.
    pub const fn heap(mut self) -> Self {
        self.heap = true;
        self
    }
}

impl<S: Crosses> Pools<S> {
    /// Whose buffers may go to other threads.
    pub const fn crossing(about: fn() -> About) -> Self {
        Self { about, pipeline: Some(loops::pipeline::<S>), heap: false }
    }
}

impl<S: Source> Mechanism for Pools<S> {
    fn about(&self) -> About {
        (self.about)()
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test.is_pool() && (burst.test != Test::PoolPipeline || self.pipeline.is_some())
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let (cpus, pipeline, heap) = (setup.cpus, self.pipeline, self.heap);
        let end = move || Ok(Box::new(Row::<S> { pools: None, pipeline, cpus, heap }) as Box<dyn End>);
        Ok(Prepared::new("", end))
    }

    fn join(&self, _setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Bystander))
    }
}

/// A row's pools, which stay from burst to burst.
struct Row<S: Source> {
    pools: Option<(S, S::Other)>,
    pipeline: Option<Pipeline<S>>,
    cpus: [Option<usize>; 2],
    heap: bool,
}

impl<S: Source> End for Row<S> {
    fn lead(&mut self, burst: &Burst, control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        if burst.test == Test::PoolHeld {
            return held::held::<S>(burst, control, self.heap);
        }
        let threads = if burst.test == Test::PoolPipeline { 2 } else { burst.threads.max(1) as usize };
        let open = || (S::open(burst.size, threads), S::Other::open(burst.size, threads));
        let (pool, other) = self.pools.get_or_insert_with(open);
        // The count would be a good part of an allocation.
        count(Counts::Nothing);
        let outcome = match burst.test {
            Test::PoolGet => loops::get(pool, burst, control, samples, self.cpus),
            Test::PoolAlternate => loops::alternate(pool, other, burst, control, samples),
            Test::PoolMixed => loops::mixed(pool, burst, control, samples),
            Test::PoolPipeline => match self.pipeline {
                Some(pipeline) => pipeline(pool, burst, control, samples, self.cpus),
                None => Err("its buffers cannot be dropped by another thread".into()),
            },
            _ => Err("carries no messages, and has no memory to go through".into()),
        };
        count(Counts::Calls);
        outcome?;
        let at_a_time = match burst.test {
            Test::PoolPipeline => PIPELINE + 2,
            Test::PoolMixed => threads * burst.batch as usize,
            _ => threads,
        };
        let checked = threads * check::at_once(burst.size);
        pool.settled(at_a_time.max(checked) * burst.size)
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Ok(())
    }
}
