//! What a copy of a message costs by itself: memory bandwidth of one processor, over the same amount of memory as a ring has.

use crate::Result;
use crate::case::{Burst, Test};
use crate::channel::{About, End, Kind, Mechanism, Prepared, Setup};
use crate::clock;
use crate::control::Control;

pub(crate) struct Memcpy;

struct Buffers {
    from: Vec<u8>,
    to: Vec<u8>,
}

/// The following process's end of a mechanism that lives in the leading one alone: it does nothing.
pub struct Bystander;

impl Mechanism for Memcpy {
    fn about(&self) -> About {
        About::new("memcpy", Kind::ByHand, true, "one processor copies from one buffer to another: no message at all")
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::OneWay && burst.size > 0 && burst.size == burst.smallest && burst.work_ns == 0
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let half = setup.capacity as usize / 2;
        if half < setup.largest {
            return Err("the message does not fit into half the capacity twice".into());
        }
        let finish = move || Ok(Box::new(Buffers { from: vec![1; half], to: vec![1; half] }) as Box<dyn End>);
        Ok(Prepared::new(String::new(), finish))
    }

    fn join(&self, _setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Bystander))
    }
}

impl End for Bystander {
    fn lead(&mut self, _burst: &Burst, _control: &Control, _samples: &mut Vec<u64>) -> Result<()> {
        Ok(())
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Ok(())
    }
}

impl End for Buffers {
    fn lead(&mut self, burst: &Burst, _control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        let size = burst.size;
        let parts = self.from.len() / size;
        let mut last = clock::now();
        let mut left = burst.group;
        for n in 0..burst.count as usize {
            let at = n % parts * size;
            let from = std::hint::black_box(&self.from[at..at + size]);
            self.to[at..at + size].copy_from_slice(from);
            std::hint::black_box(&mut self.to);
            left -= 1;
            if left == 0 {
                left = burst.group;
                let now = clock::now();
                samples.push(now - last);
                last = now;
            }
        }
        Ok(())
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Ok(())
    }
}
