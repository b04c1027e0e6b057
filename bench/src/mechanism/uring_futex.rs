//! The ring by hand, whose receivers wait for a message by an io_uring request: `IORING_OP_FUTEX_WAIT`, what a program
//! would use that waits for sockets and files in the same place. Where there is nothing to wait for it is the same ring.

use super::hand_ring::{self, Sleep};
use crate::Result;
use crate::case::{Burst, Mode};
use crate::channel::{About, End, Kind, Mechanism, Prepared, Setup};
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, opcode};
use std::io::Error;
use std::sync::atomic::AtomicU32;

pub(crate) struct UringFutex;

/// `linux/futex.h`: the word is 32 bits wide. Without `FUTEX2_PRIVATE` it is keyed by the file.
const FUTEX2_SIZE_U32: u32 = 2;
const MATCH_ANY: u64 = u32::MAX as u64;

struct Uring {
    ring: IoUring,
    /// A request is in the kernel.
    waiting: bool,
}

impl Uring {
    fn new() -> Result<Self> {
        // One thread submits and waits, so completions need not interrupt it. An old kernel refuses that.
        let ring = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(8);
        let ring = ring.or_else(|_| IoUring::new(8)).map_err(|e| format!("io_uring is not available: {e}"))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::FutexWait::CODE) {
            return Err("this kernel's io_uring cannot wait on a futex: Linux 6.7 can".into());
        }
        Ok(Self { ring, waiting: false })
    }
}

impl Sleep for Uring {
    fn sleep(&mut self, word: &AtomicU32) -> Result<()> {
        if !self.waiting {
            let wait = opcode::FutexWait::new(word.as_ptr().cast_const(), 1, MATCH_ANY, FUTEX2_SIZE_U32).build();
            // SAFETY: the word is in a mapping that outlives this ring, whose requests go with it.
            unsafe { self.ring.submission().push(&wait)? };
            self.waiting = true;
        }
        let second = Timespec::new().sec(1);
        let arguments = SubmitArgs::new().timespec(&second);
        match self.ring.submitter().submit_with_args(1, &arguments) {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => return Err(error.into()),
            _ => {}
        }
        if let Some(completion) = self.ring.completion().next() {
            self.waiting = false;
            // EAGAIN: the word was not 1 any more.
            if !matches!(-completion.result(), 0 | libc::EAGAIN | libc::EINTR) {
                return Err(Error::from_raw_os_error(-completion.result()).into());
            }
        }
        Ok(())
    }
}

impl Mechanism for UringFutex {
    fn about(&self) -> About {
        let what = "hand-ring, whose receivers sleep by io_uring's FUTEX_WAIT";
        About::new("uring-futex", Kind::ByHand, false, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        super::ring::can(burst) && matches!(burst.mode, Mode::Block | Mode::Hybrid)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        hand_ring::prepare(setup, Uring::new()?)
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        hand_ring::join(ticket, Uring::new()?)
    }
}
