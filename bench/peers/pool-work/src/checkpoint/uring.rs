//! Loading by one io_uring: requests of a few MiB, several in flight.

use super::file::Checkpoint;
use super::memory::{Memory, SECTOR, Tensor, in_steps};
use super::read::Loaded;
use crate::Result;
use io_uring::{IoUring, cqueue, opcode, squeue, types::Fd};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};

/// When buffers are registered with the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Never.
    No,
    /// Once, before the first load: those that the memory gives out must be the same in every load.
    Once,
    /// In each load, after they have been allocated, and unregistered at its end.
    EachLoad,
}

/// A ring, and what is registered with it.
pub struct Ring {
    ring: IoUring,
    depth: u32,
    chunk: usize,
    register: Register,
    /// Where a registered buffer begins: its number and length.
    registered: HashMap<usize, (u16, usize)>,
    /// The file once more, if the page cache is to be passed by.
    direct: Option<File>,
    /// Requests of the last load that had no registered buffer although there should be one.
    pub missed: usize,
}

/// What is left of a piece of a tensor.
#[derive(Clone, Copy)]
struct Piece {
    start: *mut u8,
    len: usize,
    offset: u64,
    /// Bytes of it at the file's end may be missing.
    optional: usize,
    buffer: Option<u16>,
}

impl Ring {
    /// A ring for `depth` requests of at most `chunk` bytes; with `direct`, past the page cache.
    pub fn new(file: &Checkpoint, depth: u32, chunk: usize, register: Register, direct: bool) -> Result<Self> {
        let plain = |_| IoUring::new(depth);
        let ring = IoUring::builder().setup_single_issuer().setup_coop_taskrun().build(depth).or_else(plain);
        let ring = ring.map_err(|cause| format!("no io_uring here: {cause}"))?;
        let direct = direct.then(|| file.open_direct()).transpose()?;
        let chunk = chunk.next_multiple_of(SECTOR);
        Ok(Self { ring, depth, chunk, register, registered: HashMap::new(), direct, missed: 0 })
    }

    /// Where a tensor is read from and how much of it: whole sectors past the page cache.
    fn extent(&self, offset: u64, len: usize) -> (u64, usize, usize) {
        if self.direct.is_none() {
            return (offset, len, 0);
        }
        let begin = offset & !(SECTOR as u64 - 1);
        let skip = (offset - begin) as usize;
        (begin, (skip + len).next_multiple_of(SECTOR), skip)
    }

    /// Memory for every tensor.
    fn allocate(&self, file: &Checkpoint, memory: &Memory) -> Result<Loaded> {
        let take = |(index, place): (usize, &super::file::Place)| {
            let (_, room, skip) = self.extent(place.offset, place.len);
            memory.take(index, room, skip, place.len)
        };
        file.tensors.iter().enumerate().map(take).collect()
    }

    /// Registers what the memory gives out for this file, if that is to be done once.
    pub fn prepare(&mut self, file: &Checkpoint, memory: &Memory) -> Result<()> {
        if self.register != Register::Once {
            return Ok(());
        }
        if let Memory::Pool(pool) = memory {
            // What is preallocated stays, so that no address changes hands behind the kernel's back.
            let mut counts: HashMap<usize, usize> = HashMap::new();
            for place in &file.tensors {
                *counts.entry(in_steps(self.extent(place.offset, place.len).1)).or_default() += 1;
            }
            for (len, count) in counts {
                pool.preallocate(count, len)?;
            }
        }
        let mut tensors = self.allocate(file, memory)?;
        self.register(&mut tensors)?;
        memory.give_back(tensors);
        Ok(())
    }

    fn register(&mut self, tensors: &mut [Tensor]) -> Result<()> {
        let mut vectors = Vec::with_capacity(tensors.len());
        self.registered.clear();
        for (index, tensor) in tensors.iter_mut().enumerate() {
            let (start, len) = tensor.whole();
            self.registered.insert(start.addr(), (u16::try_from(index)?, len));
            vectors.push(libc::iovec { iov_base: start.cast(), iov_len: len });
        }
        // SAFETY: the buffers live until they are unregistered (`EachLoad`), or belong to a memory that keeps them for
        // longer than the ring: preallocated in a pool that nobody trims, or kept.
        let outcome = unsafe { self.ring.submitter().register_buffers(&vectors) };
        outcome.map_err(|cause| match cause.raw_os_error() {
            Some(libc::ENOMEM) => format!("the kernel does not lock so much memory (ulimit -l): {cause}").into(),
            _ => format!("register buffers: {cause}").into(),
        })
    }

    /// Loads.
    pub fn load(&mut self, file: &Checkpoint, memory: &Memory) -> Result<Loaded> {
        let mut tensors = self.allocate(file, memory)?;
        if self.register == Register::EachLoad {
            self.register(&mut tensors)?;
        }
        let pieces = self.pieces(file, &mut tensors);
        let fd = self.direct.as_ref().map_or(file.fd(), |direct| direct.as_raw_fd());
        let read = self.read(fd, pieces);
        if self.register == Register::EachLoad {
            self.ring.submitter().unregister_buffers()?;
        }
        read?;
        for tensor in &mut tensors {
            // SAFETY: every piece was read.
            unsafe { tensor.written() };
        }
        Ok(tensors)
    }

    fn pieces(&mut self, file: &Checkpoint, tensors: &mut [Tensor]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.missed = 0;
        for (place, tensor) in file.tensors.iter().zip(tensors) {
            let (begin, _, skip) = self.extent(place.offset, place.len);
            let room = tensor.room();
            let known = self.registered.get(&room.as_ptr().addr()).filter(|(_, len)| *len >= room.len());
            let buffer = known.map(|(number, _)| *number);
            for at in (0..room.len()).step_by(self.chunk) {
                let len = self.chunk.min(room.len() - at);
                let start = room[at..].as_mut_ptr().cast();
                let optional = (at + len).saturating_sub(skip + place.len);
                pieces.push(Piece { start, len, offset: begin + at as u64, optional, buffer });
                self.missed += usize::from(self.register != Register::No && buffer.is_none());
            }
        }
        pieces
    }

    /// Reads all pieces, at most `depth` at a time. What was begun has ended when this returns.
    fn read(&mut self, fd: RawFd, mut pieces: Vec<Piece>) -> Result<()> {
        let mut left: Vec<usize> = (0..pieces.len()).rev().collect();
        let mut flying = 0;
        let mut failure: Option<crate::Failure> = None;
        loop {
            if failure.is_none() {
                while flying < self.depth as usize {
                    let Some(index) = left.pop() else { break };
                    let entry = Self::entry(fd, &pieces[index]).user_data(index as u64);
                    // SAFETY: the tensors live until everything that was begun has ended.
                    if unsafe { self.ring.submission().push(&entry) }.is_err() {
                        left.push(index);
                        break;
                    }
                    flying += 1;
                }
            }
            if flying == 0 {
                return failure.map_or(Ok(()), Err);
            }
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) if [Some(libc::EAGAIN), Some(libc::EBUSY)].contains(&cause.raw_os_error()) => {}
                Err(cause) => {
                    // The kernel may be writing to memory that would be freed on the way out.
                    eprintln!("wait for io_uring: {cause}");
                    std::process::abort();
                }
            }
            let done: Vec<cqueue::Entry> = self.ring.completion().collect();
            for entry in done {
                flying -= 1;
                let piece = &mut pieces[entry.user_data() as usize];
                match entry.result() {
                    len if len > 0 && (len as usize) < piece.len => {
                        let len = len as usize;
                        piece.start = piece.start.wrapping_add(len);
                        piece.offset += len as u64;
                        piece.len -= len;
                        if piece.len > piece.optional {
                            left.push(entry.user_data() as usize);
                        }
                    }
                    0 => failure = Some("the file is shorter than its header says".into()),
                    len if len > 0 => {}
                    error if [libc::EINTR, libc::EAGAIN].contains(&-error) => left.push(entry.user_data() as usize),
                    error => failure = Some(Error::from_raw_os_error(-error).into()),
                }
            }
        }
    }

    fn entry(fd: RawFd, piece: &Piece) -> squeue::Entry {
        let len = piece.len as u32;
        match piece.buffer {
            Some(number) => opcode::ReadFixed::new(Fd(fd), piece.start, len, number).offset(piece.offset).build(),
            None => opcode::Read::new(Fd(fd), piece.start, len).offset(piece.offset).build(),
        }
    }
}
