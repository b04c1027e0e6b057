//! Two kernel pipes, one each way.

use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use std::fs::File;
use std::io::{Error, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub(crate) struct Pipes;

/// A byte stream that carries messages of a size that both sides know.
pub(super) struct Stream {
    writer: File,
    reader: File,
    out: Pending,
    /// Read and not yet handed out: from `next` to `end`. Room for a message that is not complete and one read more.
    input: Vec<u8>,
    next: usize,
    end: usize,
}

/// Bytes that are written and not yet flushed. The buffer is filled with zeros only when it grows.
#[derive(Default)]
pub(super) struct Pending {
    buffer: Vec<u8>,
    len: usize,
}

impl Pending {
    /// `size` more bytes, for the caller to write.
    #[inline(always)]
    pub(super) fn add(&mut self, size: usize) -> &mut [u8] {
        let begin = self.len;
        self.len += size;
        if self.len > self.buffer.len() {
            self.buffer.resize(self.len, 0);
        }
        &mut self.buffer[begin..self.len]
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}

/// What one `read` asks for: a large message's part, or many small ones.
const READ: usize = 1 << 20;

impl Stream {
    pub(super) fn new(writer: OwnedFd, reader: OwnedFd, setup: &Setup) -> Self {
        let (writer, reader) = (File::from(writer), File::from(reader));
        let input = vec![0; setup.largest + READ];
        Self { writer, reader, out: Pending::default(), input, next: 0, end: 0 }
    }
}

/// A read end and a write end.
pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: fills in the two descriptors, which are then owned here.
    unsafe {
        if libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(Error::last_os_error().into());
        }
        // As much as an unprivileged process may have; a refusal leaves the default.
        libc::fcntl(fds[1], libc::F_SETPIPE_SZ, 1 << 20);
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

/// The descriptors that a ticket names, owned by this process alone.
pub(super) fn inherited(ticket: &str) -> Result<Vec<OwnedFd>> {
    // SAFETY: the parent passed these for this purpose and nothing else here owns them.
    ticket.split(',').map(|fd| Ok(unsafe { OwnedFd::from_raw_fd(fd.parse()?) })).collect()
}

/// What messages through the kernel can do: nobody polls.
pub(super) fn can_stream(burst: &Burst) -> bool {
    let memory = matches!(burst.test, Test::SequentialRead | Test::SequentialWrite | Test::RandomRead);
    burst.size > 0 && !memory && !matches!(burst.mode, Mode::Spin | Mode::Hybrid)
}

impl Mechanism for Pipes {
    fn about(&self) -> About {
        About::new("pipe", Kind::Kernel, true, "two pipes of 1 MiB")
    }

    fn can(&self, burst: &Burst) -> bool {
        can_stream(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let (there_read, there_write) = pipe()?;
        let (back_read, back_write) = pipe()?;
        let inherit = vec![there_read.as_raw_fd(), back_write.as_raw_fd()];
        let ticket = format!("{},{}", inherit[0], inherit[1]);
        let end = Stream::new(there_write, back_read, setup);
        let finish = move || {
            // The child has its own copies; with these open its death would go unnoticed.
            drop((there_read, back_write));
            Ok(Box::new(end) as Box<dyn End>)
        };
        Ok(Prepared::new(ticket, finish).inherit(inherit))
    }

    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        let mut fds = inherited(ticket)?.into_iter();
        let (reader, writer) = (fds.next().ok_or("no reader")?, fds.next().ok_or("no writer")?);
        Ok(Box::new(Stream::new(writer, reader, setup)))
    }
}

impl Channel for Stream {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        fill(self.out.add(size));
        if flush {
            self.writer.write_all(self.out.bytes())?;
            self.out.clear();
        }
        Ok(())
    }

    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        if self.end - self.next < size {
            self.input.copy_within(self.next..self.end, 0);
            self.end -= self.next;
            self.next = 0;
            while self.end < size {
                // Whatever is there, but no more than fits beside a message that is not complete.
                let got = self.reader.read(&mut self.input[self.end..self.end + READ])?;
                if got == 0 {
                    return Err("the other process closed".into());
                }
                self.end += got;
            }
        }
        let mut count = 0;
        while count < max && self.end - self.next >= size {
            read(&self.input[self.next..self.next + size]);
            self.next += size;
            count += 1;
        }
        Ok(count)
    }
}
