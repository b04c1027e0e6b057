//! What a copy of a message costs by itself: memory bandwidth of one processor, over the same amount of memory as a ring has.

use crate::Result;
use crate::channel::{Burst, End, Mechanism, Prepared};
use crate::clock;
use crate::control::Control;

pub(crate) struct Memcpy;

struct Buffers {
    from: Vec<u8>,
    to: Vec<u8>,
}

/// The following process has nothing to do.
pub(super) struct Bystander;

impl Mechanism for Memcpy {
    fn name(&self) -> &'static str {
        "memcpy"
    }

    fn prepare(&self, _directory: &str, capacity: u64) -> Result<Prepared> {
        let finish = move || {
            let half = capacity as usize / 2;
            Ok(Box::new(Buffers { from: vec![1; half], to: vec![1; half] }) as Box<dyn End>)
        };
        Ok(Prepared { ticket: String::new(), inherit: vec![], finish: Box::new(finish) })
    }

    fn join(&self, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Bystander))
    }
}

impl End for Bystander {
    fn lead(&mut self, _burst: &Burst, _control: &Control, _ticks: &mut Vec<u64>) -> Result<()> {
        Ok(())
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Ok(())
    }
}

impl End for Buffers {
    fn lead(&mut self, burst: &Burst, _control: &Control, ticks: &mut Vec<u64>) -> Result<()> {
        let size = burst.size;
        let parts = self.from.len() / size;
        let begin = clock::now();
        for n in 0..burst.count as usize {
            let at = n % parts * size;
            let from = std::hint::black_box(&self.from[at..at + size]);
            self.to[at..at + size].copy_from_slice(from);
            std::hint::black_box(&mut self.to);
        }
        ticks.push(clock::now() - begin);
        Ok(())
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Ok(())
    }
}
