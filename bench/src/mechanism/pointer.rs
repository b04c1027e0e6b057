//! The ceiling of a one-way stream: two threads of one process that hand over pointers. One fills a buffer, the other sums
//! it; as many buffers as a ring of the same capacity holds messages. Nothing is framed, checked or mapped twice.

use super::memcpy::Bystander;
use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, End, Kind, Mechanism, Prepared, Setup, fill, sum, verify};
use crate::clock;
use crate::control::Control;
use crate::machine::Pinned;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::time::Duration;

pub(crate) struct Pointer;

struct Pool {
    memory: Vec<u64>,
    /// Where the reading thread runs: where the following process does, for every other mechanism.
    reader_cpu: Option<usize>,
}

impl Mechanism for Pointer {
    fn about(&self) -> About {
        About::new(
            "pointer",
            Kind::ByHand,
            false,
            "two threads that hand over pointers to as many buffers as the ring has room for: the ceiling of a stream",
        )
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::OneWay
            && burst.size > 0
            && burst.work_ns == 0
            && burst.size == burst.smallest
            && burst.mode == Mode::Each
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let (reader_cpu, words) = (setup.cpus[1], setup.capacity as usize / 8);
        if words * 8 < setup.largest {
            return Err("the message does not fit".into());
        }
        let finish = move || Ok(Box::new(Pool { memory: vec![1; words], reader_cpu }) as Box<dyn End>);
        Ok(Prepared::new(String::new(), finish))
    }

    fn join(&self, _setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Bystander))
    }
}

/// One word to a line.
#[repr(align(128))]
struct Line<T>(T);

impl End for Pool {
    fn lead(&mut self, burst: &Burst, control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        let Burst { size, count, group, .. } = *burst;
        let buffers = self.memory.len() * 8 / size;
        let start = self.memory.as_mut_ptr().cast::<u8>();
        // A buffer's pointer is in its cell while it is full, null while it is free.
        let cells: Vec<_> = (0..buffers).map(|_| Line(AtomicPtr::new(std::ptr::null_mut::<u8>()))).collect();
        let reader_cpu = self.reader_cpu;
        let (ready, done, total) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        // The following process spins for a while before it leaves this processor to the thread.
        std::thread::sleep(Duration::from_micros(200));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _pinned = Pinned::to(reader_cpu);
                ready.store(1, Release);
                let mut sum_of_all = 0u64;
                let mut left = group;
                let mut last = clock::now();
                for n in 0..count {
                    let cell = &cells[n as usize % buffers].0;
                    let buffer = await_pointer(cell, |buffer| !buffer.is_null());
                    // SAFETY: the pointer leads to `size` bytes of the pool, which the writer leaves alone until the
                    // cell is null again.
                    sum_of_all = sum_of_all.wrapping_add(sum(unsafe { std::slice::from_raw_parts(buffer, size) }));
                    cell.store(std::ptr::null_mut(), Release);
                    left -= 1;
                    if left == 0 {
                        left = group;
                        let now = clock::now();
                        samples.push(now - last);
                        last = now;
                    }
                }
                total.store(sum_of_all, Relaxed);
                done.store(1, Release);
            });
            while ready.load(Acquire) == 0 {
                std::hint::spin_loop();
            }
            control.begin();
            for n in 0..count {
                let index = n as usize % buffers;
                let cell = &cells[index].0;
                await_pointer(cell, |buffer| buffer.is_null());
                // SAFETY: buffer `index` lies in the pool; its cell is null, so the reader does not look at it.
                unsafe {
                    let buffer = start.add(index * size);
                    fill(std::slice::from_raw_parts_mut(buffer, size), n);
                    cell.store(buffer, Release);
                }
            }
            while done.load(Acquire) == 0 {
                std::hint::spin_loop();
            }
            control.end();
        });
        verify(total.into_inner(), size, count)
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Ok(())
    }
}

fn await_pointer(cell: &AtomicPtr<u8>, wanted: impl Fn(*mut u8) -> bool) -> *mut u8 {
    loop {
        // Acquire: what the other side did to the buffer comes before.
        let buffer = cell.load(Acquire);
        if wanted(buffer) {
            return buffer;
        }
        std::hint::spin_loop();
    }
}
