//! What a descriptor has, straight into a buffer.

use crate::buffer::Buffer;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

#[cfg(not(target_os = "linux"))]
use libc::{off_t as Offset, pread};
#[cfg(target_os = "linux")]
use libc::{off64_t as Offset, pread64 as pread};

/// The most that every system takes in one call (macOS: `INT_MAX`).
const MOST: usize = i32::MAX as usize & !0xfff;

/// From a descriptor, straight into the room behind what is written: nothing is zeroed before, and nothing copied after.
impl Buffer {
    /// Appends up to `n` bytes by one `read(2)`: what there is now, or what the call waits for. Gives how many; 0 at the
    /// end of the file, or if `n` is 0. The cursor stays. Called again where a signal interrupted it.
    ///
    /// Blocks as the descriptor does. With `O_DIRECT`: `n` and the length until now must be multiples of the block size,
    /// and the pool's `alignment` too.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput): there is no room for `n` bytes. Else those of `read(2)`. The buffer is
    /// as it was.
    ///
    /// ```
    /// use std::io::Write;
    ///
    /// let pool = ramway_pool::BufferPool::new();
    /// let (reader, mut writer) = std::io::pipe()?;
    /// writer.write_all(b"hello")?;
    /// let mut buffer = pool.get(4096);
    /// assert_eq!(buffer.read_fd(&reader, 4096)?, 5);
    /// assert_eq!(buffer, b"hello");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_fd(&mut self, fd: impl AsFd, n: usize) -> io::Result<usize> {
        self.read_with(n, |to, n| {
            // SAFETY: `to` is valid for `n` bytes, and the descriptor is open as long as it is borrowed.
            unsafe { libc::read(fd.as_fd().as_raw_fd(), to.cast(), n) }
        })
    }

    /// As [`read_fd`](Self::read_fd), from byte `offset` of a file, whose own position stays (`pread(2)`): for several
    /// threads that read one file.
    ///
    /// # Errors
    /// Those of [`read_fd`](Self::read_fd); an offset beyond 2^63-1 is [`InvalidInput`](ErrorKind::InvalidInput).
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let path = std::env::current_exe()?;
    /// let file = std::fs::File::open(&path)?;
    /// let mut buffer = pool.get(8);
    /// assert_eq!(buffer.read_fd_at(&file, 100, 8)?, 8);
    /// assert_eq!(buffer, std::fs::read(path)?[100..108]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_fd_at(&mut self, fd: impl AsFd, offset: u64, n: usize) -> io::Result<usize> {
        let offset = check_offset(offset)?;
        self.read_with(n, |to, n| read_at(fd.as_fd(), to, n, offset))
    }

    /// Appends the `n` bytes from byte `offset` of a file on, by as many `pread(2)` as it takes. The cursor stays.
    ///
    /// # Errors
    /// [`UnexpectedEof`](ErrorKind::UnexpectedEof): the file ends before. Else those of [`read_fd_at`](Self::read_fd_at).
    /// The length is as it was.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let path = std::env::current_exe()?;
    /// let file = std::fs::File::open(&path)?;
    /// let mut buffer = pool.get(4096);
    /// buffer.read_exact_fd_at(&file, 1000, 4096)?;
    /// assert!(buffer == std::fs::read(path)?[1000..5096]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_exact_fd_at(&mut self, fd: impl AsFd, offset: u64, n: usize) -> io::Result<()> {
        self.check_room(n, ErrorKind::InvalidInput)?;
        let start = self.len();
        let mut done = 0;
        while done < n {
            // A sum beyond 2^64 is beyond any file.
            let got = match self.read_fd_at(&fd, offset.saturating_add(done as u64), n - done) {
                Ok(0) => Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    format!("{n} bytes from byte {offset} on: the file ends after {done} of them"),
                )),
                other => other,
            };
            match got {
                Ok(got) => done += got,
                Err(error) => {
                    self.truncate(start);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Appends what `read` says that it wrote of the up to `n` bytes from the pointer on; -1: see `errno`.
    fn read_with(&mut self, n: usize, mut read: impl FnMut(*mut u8, usize) -> isize) -> io::Result<usize> {
        self.check_room(n, ErrorKind::InvalidInput)?;
        let (len, n) = (self.len(), n.min(MOST));
        loop {
            let got = read(self.spare_capacity_mut().as_mut_ptr().cast(), n);
            match usize::try_from(got) {
                Ok(got) => {
                    assert!(got <= n, "the system says it read {got} of {n} bytes");
                    // SAFETY: the system wrote as many bytes behind the ones that were there.
                    unsafe { self.set_len(len + got) };
                    return Ok(got);
                }
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    }
}

fn check_offset(offset: u64) -> io::Result<Offset> {
    Offset::try_from(offset)
        .map_err(|_| io::Error::new(ErrorKind::InvalidInput, format!("byte {offset} of a file: not below 2^63")))
}

fn read_at(fd: BorrowedFd<'_>, to: *mut u8, n: usize, offset: Offset) -> isize {
    // SAFETY: `to` is valid for `n` bytes (see `read_with`), and the descriptor is open as long as it is borrowed.
    unsafe { pread(fd.as_raw_fd(), to.cast(), n, offset) }
}
