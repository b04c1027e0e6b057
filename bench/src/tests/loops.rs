//! What the loops notice, with a channel that says what it is told to.

use crate::control::Control;
use crate::*;

/// Receives what the other side would have sent, but for one message.
struct Canned {
    burst: Burst,
    next: u64,
    wrong: Option<(u64, Wrong)>,
}

#[derive(Clone, Copy)]
enum Wrong {
    Byte,
    Repeated,
    Lost,
}

impl Channel for Canned {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        fill(&mut vec![0; size]);
        Ok(())
    }

    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        for _ in 0..max {
            let mut seed = self.next;
            let mut message = vec![0; size];
            match self.wrong {
                Some((at, Wrong::Repeated)) if at == self.next => seed -= 1,
                Some((at, Wrong::Lost)) if at <= self.next => seed += 1,
                _ => {}
            }
            fill(&mut message, seed);
            if let Some((at, Wrong::Byte)) = self.wrong
                && at == self.next
            {
                message[size - 1] ^= 1;
            }
            assert_eq!(size, self.burst.size_of(self.next));
            self.next += 1;
            read(&message);
        }
        Ok(max)
    }
}

fn follow(burst: Burst, wrong: Option<(u64, Wrong)>) -> Result<()> {
    let control = Control::new()?;
    Canned { burst, next: 0, wrong }.follow(&burst, &control)
}

#[test]
fn every_byte_counts() {
    let stream = Burst::new(Test::OneWay, Mode::Each, 64, 40);
    let together = Burst { batch: 8, mode: Mode::Batch, ..stream };
    let mixed = Burst { size: 4096, smallest: 2048, ..stream };
    let echo = Burst::new(Test::Rtt, Mode::Spin, 32, 40);
    let paced = Burst::new(Test::Paced, Mode::Hybrid, 32, 40);
    let pauses = Burst::new(Test::Pauses, Mode::Hybrid, 32, 40);
    for burst in [stream, together, mixed, echo, paced, pauses] {
        assert!(follow(burst, None).is_ok(), "{burst:?}");
        // A message of the paced kind says itself when it was due: another one is as good.
        let wrongs: &[Wrong] =
            if burst.test == Test::Paced { &[Wrong::Byte] } else { &[Wrong::Byte, Wrong::Repeated, Wrong::Lost] };
        for &wrong in wrongs {
            let error = follow(burst, Some((20, wrong))).expect_err("damage");
            assert!(error.to_string().contains("not the bytes sent"), "{error}");
        }
    }
}

#[test]
fn sums_are_those_of_the_words() {
    let mut bytes = [0u8; 64];
    fill(&mut bytes, 5);
    assert_eq!(sum(&bytes), (5..13).sum::<u64>());
    assert_eq!(sum_of(64, 5), sum(&bytes));
    // Messages of seeds 0 and 1.
    let both = (0..8).sum::<u64>() + (1..9).sum::<u64>();
    assert!(verify(both, 64, 2).is_ok());
    assert!(verify(both + 1, 64, 2).is_err());
    assert!(verify(0, 0, 1000).is_ok());
}

#[test]
fn mixed_sizes_fill_their_range() {
    let burst = Burst { size: 4096, smallest: 2048, ..Burst::new(Test::OneWay, Mode::Each, 4096, 10_000) };
    let sizes: Vec<usize> = (0..burst.count).map(|n| burst.size_of(n)).collect();
    assert!(sizes.iter().all(|size| (2048..=4096).contains(size) && size % 8 == 0));
    assert!(sizes.contains(&2048) && sizes.contains(&4096));
}
