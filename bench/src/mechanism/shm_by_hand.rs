//! What is written first: `shm_open`, `ftruncate`, `mmap`, and in each direction one slot with a flag. The sender copies
//! a message in and sets the flag, the receiver copies it out and clears the flag, and both poll. Names are the program's
//! own to choose, to remove, and to leave behind when it is killed at the wrong moment.

use crate::Result;
use crate::case::{Burst, Mode};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use std::ffi::CString;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

pub(crate) struct ShmByHand;

const PAGE: usize = 4096;
/// Where the second slot's words are in the first page: not in the same lines.
const BACK: usize = 1024;
/// Of a slot: where its length is, beside the flag.
const LENGTH: usize = 8;

/// Polls between two calls of `sched_yield`, which matter only where both sides share a processor.
const POLLS_PER_YIELD: u32 = 1 << 16;
/// Yields without progress after which the other process counts as gone.
const YIELDS_MAX: u32 = 1 << 16;

/// A mapped shared memory object: a page of words, then both slots' bytes.
struct Object {
    start: *mut u8,
    length: usize,
    /// Bytes of a slot.
    room: usize,
    /// Of the creating side: in case the other one never came.
    name: Option<CString>,
}

impl Object {
    fn open(name: CString, room: usize, create: bool) -> Result<Self> {
        let room = room.next_multiple_of(PAGE);
        let length = PAGE + 2 * room;
        let how = if create { libc::O_CREAT | libc::O_EXCL } else { 0 };
        // SAFETY: reads the name and makes a descriptor, which is then owned here.
        let fd = unsafe {
            if create {
                // A name that is there was left by a dead process that had this number.
                libc::shm_unlink(name.as_ptr());
            }
            match libc::shm_open(name.as_ptr(), libc::O_RDWR | how, 0o600) {
                -1 => return Err(format!("shm_open: {}", Error::last_os_error()).into()),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        let mut object = Self { start: std::ptr::null_mut(), length, room, name: create.then_some(name.clone()) };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: sets the size of that file, and maps all of it wherever the kernel puts it.
        unsafe {
            if create && libc::ftruncate(fd.as_raw_fd(), length as i64) != 0 {
                return Err(Error::last_os_error().into());
            }
            if !create {
                // Both have it: from here on nothing is left behind.
                libc::shm_unlink(name.as_ptr());
            }
            let start = libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0);
            if start == libc::MAP_FAILED {
                return Err(Error::last_os_error().into());
            }
            object.start = start.cast();
        }
        Ok(object)
    }

    /// 1 while a slot is full.
    #[inline(always)]
    fn flag(&self, slot: usize) -> &AtomicU32 {
        // SAFETY: in the first page, aligned, and only ever accessed atomically.
        unsafe { &*self.start.add(slot * BACK).cast() }
    }

    /// Where a slot's length is, and its bytes.
    #[inline(always)]
    fn slot(&self, slot: usize) -> (*mut u64, *mut u8) {
        // SAFETY: inside the mapping.
        unsafe { (self.start.add(slot * BACK + LENGTH).cast(), self.start.add(PAGE + slot * self.room)) }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: unmaps what was mapped, if it was, and removes a name, if it is still there.
        unsafe {
            if !self.start.is_null() {
                libc::munmap(self.start.cast(), self.length);
            }
            if let Some(name) = &self.name {
                libc::shm_unlink(name.as_ptr());
            }
        }
    }
}

struct Ends {
    object: Object,
    /// Which slot this side fills; the other one is the one that it empties.
    out: usize,
    buffer: Vec<u8>,
}

impl Ends {
    fn new(object: Object, out: usize, setup: &Setup) -> Self {
        Self { object, out, buffer: vec![0; setup.largest] }
    }
}

#[inline(always)]
fn await_value(flag: &AtomicU32, value: u32) -> Result<()> {
    for _ in 0..YIELDS_MAX {
        for _ in 0..POLLS_PER_YIELD {
            // Acquire: what the other side did to the slot was before it changed the flag.
            if flag.load(Acquire) == value {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        std::thread::yield_now();
    }
    Err("the other process does not answer".into())
}

impl Mechanism for ShmByHand {
    fn about(&self) -> About {
        let what = "shm_open, ftruncate and mmap; one slot and a flag each way, copied in and out, polled";
        About::new("shm-by-hand", Kind::ByHand, true, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        super::ring::can(burst) && matches!(burst.mode, Mode::Spin | Mode::Each)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let ticket = format!("/ramway-bench-{}", std::process::id());
        let ends = Ends::new(Object::open(CString::new(ticket.as_str())?, setup.largest, true)?, 0, setup);
        Ok(Prepared::new(ticket, move || Ok(Box::new(ends) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Ends::new(Object::open(CString::new(ticket)?, setup.largest, false)?, 1, setup)))
    }
}

impl Channel for Ends {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let message = &mut self.buffer[..size];
        fill(message);
        let flag = self.object.flag(self.out);
        await_value(flag, 0)?;
        let (length, bytes) = self.object.slot(self.out);
        // SAFETY: the slot is empty, so the receiver leaves it alone until the flag is set; a slot has room for the
        // largest message, as the buffer has.
        unsafe {
            length.write(size as u64);
            std::ptr::copy_nonoverlapping(message.as_ptr(), bytes, size);
        }
        // Release: the message goes before the flag.
        flag.store(1, Release);
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let flag = self.object.flag(1 - self.out);
        await_value(flag, 1)?;
        let (length, bytes) = self.object.slot(1 - self.out);
        let message = &mut self.buffer[..size];
        // SAFETY: the slot is full, so the sender leaves it alone until the flag is cleared.
        unsafe {
            if length.read() != size as u64 {
                return Err("the message received is not as long as the one sent".into());
            }
            std::ptr::copy_nonoverlapping(bytes, message.as_mut_ptr(), size);
        }
        // Release: the copy was made before the flag is cleared.
        flag.store(0, Release);
        read(message);
        Ok(1)
    }
}
