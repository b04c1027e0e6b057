//! A buffer as a file of bounded size, and as the place that a reader's bytes go to.

use crate::buffer::Buffer;
use std::io::{self, BufRead, ErrorKind, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};

/// How much is zeroed for a reader at a time: it stays in the second level cache until the reader overwrites it. (Files
/// in the page cache: 16 KiB 124 µs a mebibyte, 64 KiB 98, 128 KiB 92, 1 MiB 87.)
const STEP: usize = 128 * 1024;

impl Buffer {
    /// Appends up to `n` bytes from `reader`, until it has no more; gives how many those were. The cursor stays.
    ///
    /// A reader is safe code that gets a `&mut [u8]`, so what it gets is zeroed before, in steps of 128 KiB. From files,
    /// sockets and pipes, [`read_fd`](Self::read_fd) and [`read_fd_at`](Self::read_fd_at) need not do that.
    ///
    /// Blocks as the reader does, which is called again where it was interrupted.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput): there is no room for `n` bytes, and nothing was read. Else the
    /// reader's; what came before it stays in the buffer, as with [`read_to_end`](Read::read_to_end).
    ///
    /// # Panics
    /// The reader says that it read more than it was asked for, or panics itself.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get(5);
    /// let mut reader: &[u8] = b"hello, world";
    /// assert_eq!(buffer.read_from(&mut reader, 5)?, 5);
    /// assert_eq!(buffer, b"hello");
    /// assert_eq!(reader, b", world");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_from<R: Read + ?Sized>(&mut self, reader: &mut R, n: usize) -> io::Result<usize> {
        self.check_room(n, ErrorKind::InvalidInput)?;
        let start = self.len();
        let end = start + n;
        let mut ready = start; // what lies between the length and here is initialised
        while self.len() < end {
            let (len, upto) = (self.len(), end.min(self.len() + STEP));
            let spare = self.spare_capacity_mut();
            if ready < upto {
                spare[ready - len..upto - len].fill(std::mem::MaybeUninit::new(0));
                ready = upto;
            }
            let to: *mut [std::mem::MaybeUninit<u8>] = &mut spare[..ready - len];
            // SAFETY: zeroed above or in an earlier round, and by nobody else written since but by the reader.
            let to = unsafe { &mut *(to as *mut [u8]) };
            let asked = to.len();
            match reader.read(to) {
                Ok(0) => break,
                Ok(got) => {
                    assert!(got <= asked, "the reader says it read {got} of {asked} bytes");
                    // SAFETY: that far it is initialised.
                    unsafe { self.set_len(len + got) };
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.len() - start)
    }

    /// Writes at the cursor as much as there is room for, and moves the cursor behind it.
    #[inline]
    fn write_at_cursor(&mut self, bytes: &[u8]) -> usize {
        let Ok(at) = usize::try_from(self.position()) else { return 0 };
        let count = bytes.len().min(self.capacity().saturating_sub(at));
        if count == 0 {
            return 0;
        }
        let len = self.len();
        if at > len {
            self.spare_capacity_mut()[..at - len].fill(std::mem::MaybeUninit::new(0));
        }
        // SAFETY: `at + count` is at most the capacity, and nobody else refers to the memory.
        unsafe { self.as_mut_ptr().add(at).copy_from_nonoverlapping(bytes.as_ptr(), count) };
        if at + count > len {
            // SAFETY: up to `len` it was before; the gap is zeroed and the bytes are copied.
            unsafe { self.set_len(at + count) };
        }
        self.set_position((at + count) as u64);
        count
    }

    /// What is written from the cursor on.
    #[inline]
    fn unread(&self) -> &[u8] {
        let at = usize::try_from(self.position()).unwrap_or(usize::MAX);
        &self[at.min(self.len())..]
    }
}

/// Overwrites what is at the cursor, as far as the capacity, and no further: `Ok(0)` there, and
/// [`WriteZero`](ErrorKind::WriteZero) from [`write_all`](Write::write_all). Between the end and a cursor beyond it,
/// zeros are written first. A write of no bytes does nothing.
///
/// ```
/// use std::io::Write;
///
/// let pool = ramway_pool::BufferPool::new();
/// let mut buffer = pool.get(4);
/// assert_eq!(buffer.write(b"hello")?, 4);
/// assert_eq!(buffer.write_all(b"o").unwrap_err().kind(), std::io::ErrorKind::WriteZero);
/// # Ok::<(), std::io::Error>(())
/// ```
impl Write for Buffer {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.write_at_cursor(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut count = 0;
        for slice in slices {
            let written = self.write_at_cursor(slice);
            count += written;
            if written < slice.len() {
                break;
            }
        }
        Ok(count)
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Moves the cursor; `SeekFrom::End` counts from the end of what is written. To before the start is
/// [`InvalidInput`](ErrorKind::InvalidInput), and the cursor stays; to beyond the end, or the capacity, is allowed.
///
/// ```
/// use std::io::{Seek, SeekFrom, Write};
///
/// let pool = ramway_pool::BufferPool::new();
/// let mut buffer = pool.get(8);
/// buffer.write_all(b"ab")?;
/// assert_eq!(buffer.seek(SeekFrom::End(1))?, 3);
/// buffer.write_all(b"d")?;
/// assert_eq!(buffer, b"ab\0d");
/// # Ok::<(), std::io::Error>(())
/// ```
impl Seek for Buffer {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(to) => (to, 0),
            SeekFrom::Current(by) => (self.position(), by),
            SeekFrom::End(by) => (self.len() as u64, by),
        };
        let to = from.checked_add_signed(by).ok_or_else(|| {
            io::Error::new(ErrorKind::InvalidInput, format!("seek from byte {from} by {by}: not in 0..=2^64-1"))
        })?;
        self.set_position(to);
        Ok(to)
    }

    fn stream_position(&mut self) -> io::Result<u64> {
        Ok(self.position())
    }
}

/// Reads what is written from the cursor on, and moves the cursor behind it.
///
/// ```
/// use std::io::Read;
///
/// let pool = ramway_pool::BufferPool::new();
/// let mut buffer = pool.get(8);
/// buffer.extend_from_slice(b"\x01\x02rest")?;
/// let mut number = [0; 2];
/// buffer.read_exact(&mut number)?;
/// assert_eq!(u16::from_le_bytes(number), 0x0201);
/// # Ok::<(), std::io::Error>(())
/// ```
impl Read for Buffer {
    #[inline]
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = Read::read(&mut self.unread(), to)?;
        self.consume(count);
        Ok(count)
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let count = self.unread().read_vectored(slices)?;
        self.consume(count);
        Ok(count)
    }

    /// Too few: nothing is read, and the cursor stays. (With other readers that is unspecified.)
    #[inline]
    fn read_exact(&mut self, to: &mut [u8]) -> io::Result<()> {
        let Some(bytes) = self.unread().get(..to.len()) else { return Err(ErrorKind::UnexpectedEof.into()) };
        to.copy_from_slice(bytes);
        self.consume(to.len());
        Ok(())
    }

    fn read_to_end(&mut self, to: &mut Vec<u8>) -> io::Result<usize> {
        let unread = self.unread();
        let count = unread.len();
        to.try_reserve(count)?;
        to.extend_from_slice(unread);
        self.consume(count);
        Ok(count)
    }
}

/// What is written from the cursor on is the reader's buffer: nothing is copied, and the end comes when it is consumed.
///
/// ```
/// use std::io::BufRead;
///
/// let pool = ramway_pool::BufferPool::new();
/// let mut buffer = pool.get(8);
/// buffer.extend_from_slice(b"a\nbc\n")?;
/// assert_eq!(buffer.lines().collect::<Result<Vec<_>, _>>()?, ["a", "bc"]);
/// # Ok::<(), std::io::Error>(())
/// ```
impl BufRead for Buffer {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.unread())
    }

    /// Moves the cursor by `count`, at most to the end of what is written.
    #[inline]
    fn consume(&mut self, count: usize) {
        let count = count.min(self.unread().len());
        self.set_position(self.position() + count as u64);
    }
}
