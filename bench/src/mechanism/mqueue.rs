//! Two POSIX message queues, one each way.

use super::pipe::can_stream;
use crate::Result;
use crate::case::{Burst, Mode};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use std::ffi::CString;
use std::io::Error;

pub(crate) struct Queues;

/// A limit of the kernel for processes without privileges, or what Linux has by default.
fn limit(name: &str, default: u64) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/sys/fs/mqueue/{name}"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(default)
}

fn longest() -> u64 {
    limit("msgsize_max", 8192)
}

/// A name that is taken away when this is dropped, unless it already was.
struct Name(CString);

impl Name {
    fn unlink(&self) {
        // SAFETY: reads a string that ends in a zero. An error means that the name is gone.
        unsafe { libc::mq_unlink(self.0.as_ptr()) };
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        self.unlink();
    }
}

/// An open queue.
struct Queue(libc::mqd_t);

impl Queue {
    fn create(name: &Name, setup: &Setup) -> Result<Self> {
        let size = setup.largest.max(8) as u64;
        let count = (setup.capacity / size).clamp(1, limit("msg_max", 10));
        // SAFETY: all zero is a valid struct; the call reads it and the name, which outlive it.
        let queue = unsafe {
            let mut attributes: libc::mq_attr = std::mem::zeroed();
            attributes.mq_maxmsg = count as _;
            attributes.mq_msgsize = size as _;
            let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
            libc::mq_open(name.0.as_ptr(), flags, 0o600 as libc::mode_t, &raw mut attributes)
        };
        Self::check(queue, &format!("a message queue for {count} messages of {size} bytes (see /proc/sys/fs/mqueue)"))
    }

    fn open(name: &Name) -> Result<Self> {
        // SAFETY: reads the name.
        let queue = unsafe { libc::mq_open(name.0.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        Self::check(queue, "the other process's message queue")
    }

    fn check(queue: libc::mqd_t, what: &str) -> Result<Self> {
        if queue == -1 { Err(format!("{what}: {}", Error::last_os_error()).into()) } else { Ok(Self(queue)) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: closes what this alone owns.
        unsafe { libc::mq_close(self.0) };
    }
}

struct Ends {
    out: Queue,
    input: Queue,
    output: Vec<u8>,
    buffer: Vec<u8>,
    /// Of the creating side: in case the other one never came.
    _names: Option<[Name; 2]>,
}

impl Mechanism for Queues {
    fn about(&self) -> About {
        let what = "two POSIX message queues, as deep as an unprivileged process may have them, blocking";
        About::new("mqueue", Kind::Kernel, true, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        can_stream(burst) && burst.size as u64 <= longest() && burst.mode != Mode::Batch
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let ticket = format!("/ramway-bench-{}", std::process::id());
        let [there, back] = names(&ticket)?;
        // A name that is there was left by a dead process that had this number.
        there.unlink();
        back.unlink();
        let (out, input) = (Queue::create(&there, setup)?, Queue::create(&back, setup)?);
        let [output, buffer] = buffers(setup);
        let ends = Ends { out, input, output, buffer, _names: Some([there, back]) };
        Ok(Prepared::new(ticket, move || Ok(Box::new(ends) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        let [there, back] = names(ticket)?;
        let (input, out) = (Queue::open(&there)?, Queue::open(&back)?);
        // Dropped here, the names go before anything can be killed with them in place.
        drop([there, back]);
        let [output, buffer] = buffers(setup);
        Ok(Box::new(Ends { out, input, output, buffer, _names: None }))
    }
}

/// For what is sent and what is received. A queue's longest message has to fit.
fn buffers(setup: &Setup) -> [Vec<u8>; 2] {
    [(); 2].map(|()| vec![0; setup.largest.max(8)])
}

fn names(ticket: &str) -> Result<[Name; 2]> {
    let name = |way: &str| Ok::<_, crate::Failure>(Name(CString::new(format!("{ticket}-{way}"))?));
    Ok([name("there")?, name("back")?])
}

impl Channel for Ends {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        fill(&mut self.output[..size]);
        // SAFETY: the pointer and the length are of one slice.
        match unsafe { libc::mq_send(self.out.0, self.output.as_ptr().cast(), size, 0) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error().into()),
        }
    }

    fn receive(&mut self, size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let (start, length) = (self.buffer.as_mut_ptr(), self.buffer.len());
        // SAFETY: the pointer and the length are of one slice.
        match unsafe { libc::mq_receive(self.input.0, start.cast(), length, std::ptr::null_mut()) } {
            -1 => Err(Error::last_os_error().into()),
            got if got as usize == size => {
                read(&self.buffer[..size]);
                Ok(1)
            }
            _ => Err("the message received is not as long as the one sent".into()),
        }
    }
}
