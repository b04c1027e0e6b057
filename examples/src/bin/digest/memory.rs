//! Where a chunk's memory comes from: a pool with a limit, or an allocation each.

use bytes::Bytes;
use ramway_pool::{BufferPool, ErrorKind, Stats};
use rustix::buffer::spare_capacity;
use std::fs::File;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};

pub struct Memory {
    /// None: vectors.
    pool: Option<BufferPool>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Chunks that were given back so far.
    back: u64,
    /// How often a reader waited.
    waits: u64,
    stopped: bool,
}

impl Memory {
    pub fn vectors() -> Self {
        Self { pool: None, state: Mutex::default(), changed: Condvar::new() }
    }

    /// A pool that owns `limit` bytes at most, which must be enough for a chunk.
    pub fn pool(limit: usize, chunk: usize) -> Result<Self, String> {
        // Whole pages: processors copy from the page cache several times as slowly to some other places within a page.
        let builder = BufferPool::builder().max_bytes(limit).alignment(4096);
        let pool = builder.build().map_err(|error| format!("--max-memory: {error}"))?;
        // Nobody has anything yet: a chunk that is refused now would be waited for in vain.
        pool.try_get(chunk)
            .map_err(|error| format!("--max-memory is too little for one chunk of {chunk} bytes: {error}"))?;
        Ok(Self { pool: Some(pool), ..Self::vectors() })
    }

    pub fn stats(&self) -> Option<Stats> {
        self.pool.as_ref().map(BufferPool::stats)
    }

    pub fn waits(&self) -> u64 {
        self.state().waits
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the lock held")
    }

    /// The next `room` bytes of a file, fewer at its end. Waits for memory; None: stopped.
    pub fn read(&self, file: &File, room: usize) -> io::Result<Option<Bytes>> {
        let Some(pool) = &self.pool else {
            let mut vector = Vec::with_capacity(room);
            // As below: nothing is zeroed before, and the system calls are the same.
            while vector.len() < room && rustix::io::read(file, spare_capacity(&mut vector))? > 0 {}
            return Ok(Some(vector.into()));
        };
        loop {
            // Before the pool is asked: what is given back after that is not missed.
            let seen = self.state().back;
            match pool.try_get(room) {
                Ok(mut buffer) => {
                    while buffer.len() < room && buffer.read_fd(file, room - buffer.len())? > 0 {}
                    return Ok(Some(buffer.freeze()));
                }
                Err(error) if error.kind() == ErrorKind::LimitReached => {
                    let mut state = self.state();
                    state.waits += 1;
                    while state.back == seen && !state.stopped {
                        state = self.changed.wait(state).expect("nobody panics with the lock held");
                    }
                    if state.stopped {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Drops a chunk, and wakes those who wait for its memory.
    pub fn give_back(&self, chunk: Bytes) {
        drop(chunk);
        if self.pool.is_some() {
            self.state().back += 1;
            self.changed.notify_all();
        }
    }

    /// Ends waiting for memory for good.
    pub fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }
}
