//! One side of a bus, over its memory and socket, from the page's rings: it publishes the frames that it is told to, right or wrong,
//! and gives the ones that come.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;

use super::files::{Result, bytes, tried};
use super::image::{BLOCKS, CLOSED, CONSUMER, EPOCH, HEAD, PAGE, PRODUCER, ROLE_FLAGS, TAIL, WAIT, frame_header, hex};
use super::rpc::{CAPACITY, Frame};
use super::socket::Socket;

/// Between two looks at a ring.
const PAUSE: Duration = Duration::from_micros(200);

/// A side of a bus of two rings of [`CAPACITY`] bytes at an alignment of 16, both of whose roles it has.
pub struct Peer {
    memory: Mapping,
    socket: Option<Socket>,
    out: Ring,
    back: Ring,
}

/// A direction.
struct Ring {
    block: u64,
    data: u64,
    position: u64,
}

/// The memory of a bus.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

impl Peer {
    /// The listener's side, or else the connector's; it attaches to both of its roles.
    pub fn new(memory: &OwnedFd, socket: Socket, listener: bool) -> Result<Self> {
        let memory = Mapping::new(memory)?;
        let rings = [0, 1].map(|i| Ring { block: BLOCKS[i as usize], data: PAGE + i * CAPACITY, position: 0 });
        let [to, from] = rings;
        let (out, back) = if listener { (to, from) } else { (from, to) };
        let peer = Self { memory, socket: Some(socket), out, back };
        for (block, own, other) in peer.roles() {
            peer.memory.u32(block + own + EPOCH).store(1, Ordering::Release);
            peer.memory.wake(block + other + WAIT)?;
        }
        Ok(peer)
    }

    /// The own role and the other one of each ring.
    fn roles(&self) -> [(u64, u64, u64); 2] {
        [(self.out.block, PRODUCER, CONSUMER), (self.back.block, CONSUMER, PRODUCER)]
    }

    /// Publishes frames, all at once.
    pub fn send(&mut self, frames: &[Frame], deadline: Instant) -> Result<()> {
        let mut made = Vec::new();
        for frame in frames {
            let payload = bytes(&frame.hex)?;
            let tag = tried("a tag", frame.tag.parse())?;
            made.extend_from_slice(&frame_header(payload.len() as u32, frame.type_id, tag));
            made.extend_from_slice(&payload);
            made.resize(made.len().next_multiple_of(16), 0);
        }
        let Ring { block, data, position } = self.out;
        let next = position + made.len() as u64;
        let head = self.memory.u64(block + HEAD);
        while next - head.load(Ordering::Acquire) > CAPACITY {
            pause(deadline, "it does not receive")?;
        }
        for (i, &byte) in (position..).zip(&made) {
            self.memory.byte(data + i % CAPACITY).store(byte, Ordering::Relaxed);
        }
        self.out.position = next;
        self.memory.u64(block + TAIL).store(next, Ordering::Release);
        self.memory.wake(block + CONSUMER + WAIT)
    }

    /// The next frame.
    pub fn receive(&mut self, deadline: Instant) -> Result<Frame> {
        loop {
            if let Some(frame) = self.next()? {
                return Ok(frame);
            }
            pause(deadline, "no frame comes")?;
        }
    }

    /// The next frame, if there is one within this time.
    pub fn next_within(&mut self, time: Duration) -> Result<Option<Frame>> {
        let until = Instant::now() + time;
        loop {
            let frame = self.next()?;
            if frame.is_some() || Instant::now() >= until {
                return Ok(frame);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn next(&mut self) -> Result<Option<Frame>> {
        let Ring { block, data, position } = self.back;
        let tail = self.memory.u64(block + TAIL).load(Ordering::Acquire);
        if tail == position {
            return Ok(None);
        }
        let mut at = position;
        let mut take = |count: u64| -> Vec<u8> {
            let taken =
                (at..at + count).map(|i| self.memory.byte(data + i % CAPACITY).load(Ordering::Relaxed)).collect();
            at += count;
            taken
        };
        let (len, type_id, tag) = (word(&take(4)), word(&take(4)), take(8));
        let size = (16 + u64::from(len)).next_multiple_of(16);
        if size > tail.wrapping_sub(position) || tail.wrapping_sub(position) > CAPACITY {
            return Err(format!("it publishes a frame of {len} bytes, and a tail of {tail} after {position}"));
        }
        let payload = take(u64::from(len));
        self.back.position = position + size;
        self.memory.u64(block + HEAD).store(self.back.position, Ordering::Release);
        self.memory.wake(block + PRODUCER + WAIT)?;
        let tag = u64::from_le_bytes(tag.try_into().expect("8 bytes")).to_string();
        Ok(Some(Frame { type_id, tag, hex: hex(&payload) }))
    }

    /// Closes in an orderly way, and hangs up.
    pub fn close(&mut self) -> Result<()> {
        for (block, own, other) in self.roles() {
            self.memory.u32(block + own + ROLE_FLAGS).fetch_or(CLOSED, Ordering::SeqCst);
            self.memory.wake(block + other + WAIT)?;
        }
        self.hang_up();
        Ok(())
    }

    /// Its connection.
    ///
    /// # Errors
    /// It has hung up.
    pub fn socket(&self) -> Result<&Socket> {
        self.socket.as_ref().ok_or_else(|| "there is no connection any more".into())
    }

    /// Hangs up.
    pub fn hang_up(&mut self) {
        self.socket = None;
    }

    /// Waits until the other side has hung up; whether it has closed in an orderly way.
    pub fn ended(&mut self, deadline: Instant) -> Result<bool> {
        if let Some(socket) = &self.socket {
            socket.end(deadline)?;
        }
        let closed = |(block, _, other)| self.memory.u32(block + other + ROLE_FLAGS).load(Ordering::Acquire) & CLOSED;
        Ok(self.roles().map(closed).iter().all(|&flag| flag != 0))
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("4 bytes"))
}

fn pause(deadline: Instant, what: &str) -> Result<()> {
    if Instant::now() >= deadline {
        return Err(what.into());
    }
    std::thread::sleep(PAUSE);
    Ok(())
}

impl Mapping {
    fn new(memory: &OwnedFd) -> Result<Self> {
        let len = (PAGE + 2 * CAPACITY) as usize;
        let there = tried("fstat", rustix::fs::fstat(memory))?.st_size;
        if there != len as i64 {
            return Err(format!("the bus has {there} bytes, expected {len}"));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice, of memory that cannot shrink.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, memory, 0) };
        let start = NonNull::new(tried("mmap", start)?.cast()).ok_or("mmap gave nothing")?;
        Ok(Self { start, len })
    }

    /// A place of `size` bytes, aligned to that.
    fn at(&self, at: u64, size: u64) -> *mut u8 {
        assert!(at.is_multiple_of(size) && at + size <= self.len as u64, "{at:#x} is not in the bus");
        // SAFETY: inside of the mapping.
        unsafe { self.start.as_ptr().add(at as usize) }
    }

    fn u32(&self, at: u64) -> &AtomicU32 {
        // SAFETY: aligned, inside of the mapping, which lives as long as `self`; the other side accesses it atomically too.
        unsafe { AtomicU32::from_ptr(self.at(at, 4).cast()) }
    }

    fn u64(&self, at: u64) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.at(at, 8).cast()) }
    }

    fn byte(&self, at: u64) -> &AtomicU8 {
        // SAFETY: as above; the other side reads what is published and writes what it has room for.
        unsafe { AtomicU8::from_ptr(self.at(at, 1)) }
    }

    /// As every side does that has published or released something.
    fn wake(&self, at: u64) -> Result<()> {
        let word = self.u32(at);
        // SeqCst: after what was published.
        if word.swap(0, Ordering::SeqCst) != 0 {
            tried("futex", futex::wake(word, futex::Flags::empty(), i32::MAX as u32))?;
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nobody uses the mapping any more. A failure would leave it, which harms nobody.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
