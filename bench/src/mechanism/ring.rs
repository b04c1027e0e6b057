//! Two of Ramway's rings, one each way.

use crate::Result;
use crate::channel::{Channel, End, Mechanism, Prepared};
use crate::plan::Mode;
use ramway::{Receiver, Ring, Sender, WaitPolicy};

/// `copy`: by `send` from a buffer of the sender's own, else written in place by `reserve` and `commit`.
pub(crate) struct Rings {
    pub(crate) copy: bool,
}

pub(super) struct Halves {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// Where messages are written before they are copied; empty if they are not.
    pub(super) buffer: Vec<u8>,
    pub(super) copy: bool,
}

impl Mechanism for Rings {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn prepare(&self, directory: &str, capacity: u64) -> Result<Prepared> {
        let sender = Ring::create(format!("{directory}/there")).capacity(capacity).sender()?;
        let receiver = Ring::create(format!("{directory}/back")).capacity(capacity).receiver()?;
        let copy = self.copy;
        let finish = move || Ok(Box::new(Halves { sender, receiver, buffer: Vec::new(), copy }) as Box<dyn End>);
        Ok(Prepared { ticket: directory.to_owned(), inherit: vec![], finish: Box::new(finish) })
    }

    fn join(&self, ticket: &str) -> Result<Box<dyn End>> {
        let receiver = Ring::open(format!("{ticket}/there")).receiver()?;
        let sender = Ring::open(format!("{ticket}/back")).sender()?;
        Ok(Box::new(Halves { sender, receiver, buffer: Vec::new(), copy: self.copy }))
    }
}

impl Channel for Halves {
    fn configure(&mut self, mode: Mode) {
        let policy = match mode {
            Mode::Spin | Mode::Each | Mode::Batch => WaitPolicy::Spin,
            Mode::Hybrid => WaitPolicy::Hybrid,
            Mode::Block => WaitPolicy::Block,
        };
        self.sender.set_wait_policy(policy);
        self.receiver.set_wait_policy(policy);
    }

    #[inline(always)]
    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        if self.copy {
            self.buffer.resize(size, 0);
            fill(&mut self.buffer);
            self.sender.send(0, &self.buffer)?;
        } else {
            let mut slot = self.sender.reserve(size)?;
            fill(&mut slot);
            if flush { slot.commit(size)? } else { slot.commit_unflushed(size)? }
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        if max == 1 {
            let message = self.receiver.recv()?;
            assert!(message.len() == size);
            read(&message);
            return Ok(1);
        }
        let mut count = 0;
        for message in self.receiver.recv_batch(max as usize)?.iter() {
            assert!(message.len() == size);
            read(&message);
            count += 1;
        }
        Ok(count)
    }
}
