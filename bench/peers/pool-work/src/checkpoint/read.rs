//! Loading by `read`, by `pread` from several threads, by copying from a mapping; and the parts of it alone.

use super::file::{Checkpoint, Mapping, Place};
use super::memory::{Memory, Tensor};
use crate::Result;
use std::io::Error;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A load: one tensor's memory after the other, in the order of the file.
pub type Loaded = Vec<Tensor>;

fn take(memory: &Memory, index: usize, place: &Place) -> Result<Tensor> {
    memory.take(index, place.len, 0, place.len)
}

/// One file position, one `read` after the other.
pub fn by_read(file: &Checkpoint, memory: &Memory) -> Result<Loaded> {
    let begin = file.tensors.first().map_or(0, |place| place.offset);
    // SAFETY: plain values.
    if unsafe { libc::lseek(file.fd(), begin as libc::off_t, libc::SEEK_SET) } < 0 {
        return Err(Error::last_os_error().into());
    }
    let load = |(index, place)| {
        let mut tensor = take(memory, index, place)?;
        read_whole(file.fd(), tensor.room())?;
        // SAFETY: just read.
        unsafe { tensor.written() };
        Ok(tensor)
    };
    file.tensors.iter().enumerate().map(load).collect()
}

/// Fills all of `room` from the file's position.
fn read_whole(fd: RawFd, room: &mut [MaybeUninit<u8>]) -> Result<()> {
    // SAFETY: the slice is writable for its length.
    whole(room, |_, room| unsafe { libc::read(fd, room.as_mut_ptr().cast(), room.len()) })
}

/// Fills all of `room` from this place in the file.
fn pread_whole(fd: RawFd, room: &mut [MaybeUninit<u8>], offset: u64) -> Result<()> {
    // SAFETY: the slice is writable for its length.
    whole(room, |done, room| unsafe {
        libc::pread(fd, room.as_mut_ptr().cast(), room.len(), (offset + done as u64) as libc::off_t)
    })
}

fn whole(room: &mut [MaybeUninit<u8>], mut read: impl FnMut(usize, &mut [MaybeUninit<u8>]) -> isize) -> Result<()> {
    let mut done = 0;
    while done < room.len() {
        match read(done, &mut room[done..]) {
            0 => return Err("the file is shorter than its header says".into()),
            len if len > 0 => done += len as usize,
            _ => match Error::last_os_error() {
                cause if cause.kind() == std::io::ErrorKind::Interrupted => {}
                cause => return Err(cause.into()),
            },
        }
    }
    Ok(())
}

/// `threads` threads, which are started for the load; each takes the longest tensor that is left, allocates for it and
/// reads it.
pub fn by_pread(file: &Checkpoint, memory: &Memory, threads: usize) -> Result<Loaded> {
    let mut order: Vec<usize> = (0..file.tensors.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(file.tensors[index].len));
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, Tensor)>> {
        let mut mine = Vec::new();
        // Relaxed: a ticket, which publishes nothing.
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let place = &file.tensors[index];
            let mut tensor = take(memory, index, place)?;
            pread_whole(file.fd(), tensor.room(), place.offset)?;
            // SAFETY: just read.
            unsafe { tensor.written() };
            mine.push((index, tensor));
        }
        Ok(mine)
    };
    let mut all = std::thread::scope(|scope| -> Result<Vec<(usize, Tensor)>> {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| "a thread that loads panicked")??);
        }
        Ok(all)
    })?;
    all.sort_unstable_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, tensor)| tensor).collect())
}

/// The same bytes, copied by the program from a mapping that does not fault.
pub fn by_copy(file: &Checkpoint, memory: &Memory, mapping: &Mapping) -> Result<Loaded> {
    let load = |(index, place): (usize, &Place)| {
        let mut tensor = take(memory, index, place)?;
        tensor.room().write_copy_of_slice(&mapping.bytes()[place.offset as usize..][..place.len]);
        // SAFETY: just copied.
        unsafe { tensor.written() };
        Ok(tensor)
    };
    file.tensors.iter().enumerate().map(load).collect()
}

/// No bytes at all: each page of each tensor is written once, which is what makes it fault where it can.
pub fn touch_only(file: &Checkpoint, memory: &Memory) -> Result<Loaded> {
    let load = |(index, place): (usize, &Place)| {
        let mut tensor = take(memory, index, place)?;
        let room = tensor.room();
        for page in room.chunks_mut(4096) {
            // SAFETY: a byte of a slice that is ours; volatile, so that it is written although nobody reads it.
            unsafe { page.as_mut_ptr().write_volatile(MaybeUninit::new(0)) };
        }
        Ok(tensor)
    };
    file.tensors.iter().enumerate().map(load).collect()
}

/// The same bytes, all read into the same 256 KiB, which stay in the processor's cache: what the kernel takes for its half
/// of the copy.
pub fn into_one_buffer(file: &Checkpoint, buffer: &mut [MaybeUninit<u8>]) -> Result<()> {
    for place in &file.tensors {
        let mut done = 0;
        while done < place.len {
            let len = buffer.len().min(place.len - done);
            pread_whole(file.fd(), &mut buffer[..len], place.offset + done as u64)?;
            done += len;
        }
    }
    Ok(())
}

/// Reads every word, as the first use of the numbers would.
pub fn sum(bytes: &[u8]) -> u64 {
    bytes.as_chunks::<8>().0.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)))
}
