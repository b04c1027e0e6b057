//! Pools that do it wrong: their rows fail, and say why. And what is counted where threads share the work.

use crate::control::Control;
use crate::pools::{Buffers, Crosses, Pools, Source};
use crate::*;
use std::sync::{Arc, Mutex};

/// Gives the same memory to everybody.
struct Twice(Box<[u8; 64]>);

struct Lent(*mut u8);

impl Buffers for &Twice {
    type Buffer<'a>
        = Lent
    where
        Self: 'a;

    fn get(&self, _len: usize) -> Lent {
        Lent(self.0.as_ptr().cast_mut())
    }

    fn start(buffer: &mut Lent) -> *mut u8 {
        buffer.0
    }
}

impl Source for Twice {
    type Thread<'a> = &'a Self;
    type Other = Self;

    fn open(_len: usize, _threads: usize) -> Self {
        Self(Box::new([0; 64]))
    }

    fn thread(&self) -> &Self {
        self
    }
}

/// Gives each buffer to one owner of each thread.
struct PerThread(Mutex<Vec<Arc<[u8; 64]>>>);

struct Shared(Arc<[u8; 64]>);

struct Thread<'a>(&'a PerThread, std::cell::Cell<usize>);

impl Buffers for Thread<'_> {
    type Buffer<'b>
        = Shared
    where
        Self: 'b;

    fn get(&self, _len: usize) -> Shared {
        let mut all = self.0.0.lock().expect("no panic");
        let at = self.1.get();
        self.1.set(at + 1);
        if all.len() <= at {
            all.push(Arc::new([0; 64]));
        }
        Shared(all[at].clone())
    }

    fn start(buffer: &mut Shared) -> *mut u8 {
        Arc::as_ptr(&buffer.0).cast_mut().cast()
    }
}

impl Source for PerThread {
    type Thread<'a> = Thread<'a>;
    type Other = Self;

    fn open(_len: usize, _threads: usize) -> Self {
        Self(Mutex::default())
    }

    fn thread(&self) -> Thread<'_> {
        Thread(self, std::cell::Cell::new(0))
    }
}

/// As the C library's allocator, but it says that something was lost.
struct Loses;

impl Buffers for Loses {
    type Buffer<'a> = Vec<u8>;

    fn get(&self, len: usize) -> Vec<u8> {
        Vec::with_capacity(len)
    }

    fn start(buffer: &mut Vec<u8>) -> *mut u8 {
        buffer.as_mut_ptr()
    }
}

impl Source for Loses {
    type Thread<'a> = Self;
    type Other = Self;

    fn open(_len: usize, _threads: usize) -> Self {
        Self
    }

    fn thread(&self) -> Self {
        Self
    }

    fn settled(&self, most: usize) -> Result<()> {
        Err(format!("lost one of {most} bytes").into())
    }
}

// SAFETY: vectors are `Send`.
unsafe impl Crosses for Loses {}

fn about() -> About {
    About::new("faulty", Kind::Peer, false, "does it wrong")
}

/// Samples, and plain numbers by name.
type Shown = (Vec<u64>, Vec<(String, f64)>);

/// What a row of this mechanism measures, in this process.
fn lead(mechanism: &dyn Mechanism, burst: &Burst) -> Result<Shown> {
    let setup = Setup {
        directory: Default::default(),
        disk: Default::default(),
        capacity: 0,
        largest: burst.size,
        cpus: [None; 2],
        realtime: false,
    };
    let mut end = (mechanism.prepare(&setup)?.finish)()?;
    let control = Control::new()?;
    let mut samples = Vec::new();
    end.lead(burst, &control, &mut samples)?;
    Ok((samples, control.ratios()))
}

fn burst(test: Test, threads: u32) -> Burst {
    Burst { threads, batch: 4, group: 8, ..Burst::new(test, Mode::Each, 64, 4096) }
}

#[test]
fn one_buffer_with_two_owners_fails_its_row() {
    let _alone = super::alone();
    let twice = Pools::<Twice>::new(about);
    let error = lead(&twice, &burst(Test::PoolGet, 1)).expect_err("two owners").to_string();
    assert!(error.contains("two owners"), "{error}");
    // Each thread for itself sees nothing wrong, unless another writes between its write and its look.
    let mut found = false;
    for _ in 0..200 {
        let shared = Pools::<PerThread>::new(about);
        found |=
            lead(&shared, &burst(Test::PoolGet, 8)).is_err_and(|error| error.to_string().contains("somebody else"));
        if found {
            break;
        }
    }
    assert!(found);
}

#[test]
fn what_was_lost_fails_its_row() {
    let _alone = super::alone();
    let loses = Pools::<Loses>::crossing(about);
    for test in [Test::PoolGet, Test::PoolAlternate, Test::PoolMixed, Test::PoolPipeline, Test::PoolHeld] {
        let error = lead(&loses, &burst(test, 1)).expect_err("lost").to_string();
        assert!(error.starts_with("lost one of"), "{test:?}: {error}");
    }
    let stays = Pools::<Twice>::new(about);
    assert!(!stays.can(&burst(Test::PoolPipeline, 1)) && stays.can(&burst(Test::PoolGet, 1)));
}

#[test]
fn threads_share_all_of_the_work() {
    let _alone = super::alone();
    let mechanism = mechanism::find("pool").expect("built in");
    let (samples, ratios) = lead(mechanism, &burst(Test::PoolMixed, 4)).expect("measured");
    // One sample of every whole piece, whichever thread did it.
    assert_eq!(samples.len(), 4096 / 8);
    let [(name, share)] = ratios.as_slice() else { panic!("{ratios:?}") };
    assert!(name == "slowest thread / mean" && (0.0..=1.0).contains(share), "{name} {share}");
    let (_, ratios) = lead(mechanism, &burst(Test::PoolHeld, 1)).expect("measured");
    assert!(ratios.len() == 2 && ratios.iter().all(|(_, held)| *held >= 1.0), "{ratios:?}");
}
