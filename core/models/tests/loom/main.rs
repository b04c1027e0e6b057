//! Models of the protocol: loom runs the real sender, receiver and waiting code in every schedule (up to a number of
//! preemptions) and with every value that the memory model lets a load return. `make loom` runs them;
//! `docs/adr/0015-models.md` says what they stand on.
//!
//! Each model comes with the steps that it cannot do without: left out, some schedule must fail.
#![cfg(loom)]
#![allow(missing_docs)]

mod change;
mod end;
mod lead;
mod news;
mod ready;
mod region;
mod ring;
mod sleep;
mod topic;

use loom::cell::UnsafeCell;
use ramway_models::{ErrorKind, Receiver, Result, Sender};
use ramway_models::{Ring, process};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

const LOST: &str = "deadlock";
const RACE: &str = "Causality violation";

/// Drops what it holds, unless a model has failed: then the model's memory must not be touched any more.
struct Held<T>(ManuallyDrop<T>);

impl<T> Held<T> {
    fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    fn into_inner(mut self) -> T {
        // SAFETY: `self` is forgotten right after.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        std::mem::forget(self);
        value
    }
}

impl<T> Deref for Held<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        }
    }
}

/// A ring whose payloads loom watches: each 16-byte cell has a loom cell beside it, written while its frame is
/// reserved and read while it is received. A position that is published too early is then a data race.
#[derive(Clone)]
struct Watched {
    ring: Ring,
    cells: Rc<Vec<UnsafeCell<u64>>>,
}

impl Watched {
    /// `frames` frames of 16 bytes, that is, of empty messages.
    fn new(frames: usize, named: bool) -> Self {
        let cells = (0..frames).map(|_| UnsafeCell::new(0)).collect();
        Self { ring: Ring::new(frames as u64 * 16, named), cells: Rc::new(cells) }
    }

    fn sender(&self, membarrier: bool) -> Tx {
        Tx { tx: Held::new(self.ring.sender(membarrier)), watched: self.clone() }
    }

    fn receiver(&self, membarrier: bool) -> Rx {
        Rx { rx: Held::new(self.ring.receiver(membarrier)), watched: self.clone() }
    }
}

struct Tx {
    tx: Held<Sender>,
    watched: Watched,
}

impl Tx {
    fn put(&mut self, value: u64, wait: bool, flush: bool) -> Result<()> {
        let slot = if wait { self.tx.reserve(0)? } else { self.tx.try_reserve(0)? };
        let cell = self.watched.ring.cell(&slot);
        // SAFETY: loom checks that nobody else has access.
        self.watched.cells[cell].with_mut(|at| unsafe { *at = value });
        let slot = slot.with_tag(value);
        if flush { slot.commit(0) } else { slot.commit_unflushed(0) }
    }

    /// Waits for room.
    fn send(&mut self, value: u64) {
        self.put(value, true, true).unwrap();
    }

    fn try_send(&mut self, value: u64) -> bool {
        match self.put(value, false, true) {
            Ok(()) => true,
            Err(error) if matches!(error.kind(), ErrorKind::Full | ErrorKind::Closed) => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn kill(self) {
        self.watched.ring.clone().kill_sender(self.tx.into_inner());
    }
}

struct Rx {
    rx: Held<Receiver>,
    watched: Watched,
}

impl Rx {
    fn take(&mut self, wait: bool) -> Result<u64> {
        let message = if wait { self.rx.recv()? } else { self.rx.try_recv()? };
        let cell = self.watched.ring.cell(&message);
        // SAFETY: loom checks that nobody writes.
        let value = self.watched.cells[cell].with(|at| unsafe { *at });
        assert_eq!(value, message.tag());
        // Held back until loom has seen the read: a release that went before it would be a race.
        drop(message);
        Ok(value)
    }

    fn recv(&mut self) -> Result<u64, ErrorKind> {
        self.take(true).map_err(|error| error.kind())
    }

    fn try_recv(&mut self) -> Result<u64, ErrorKind> {
        self.take(false).map_err(|error| error.kind())
    }

    fn kill(self) {
        self.watched.ring.clone().kill_receiver(self.rx.into_inner());
    }
}

/// Two processes, and the end of both.
fn two(one: impl FnOnce() + 'static, other: impl FnOnce() + 'static) {
    let other = loom::thread::spawn(move || process(1, other));
    process(0, one);
    other.join().unwrap();
}
