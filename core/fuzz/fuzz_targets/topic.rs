//! A topic whose memory other processes write as they like, before and after the sides of this process attach. Each input is
//! a list of writes and of calls; nothing may crash, hang, or give more than the log can hold.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ramway::{Policy, Publisher, Subscriber, Topic, TopicBuilder};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::time::Duration;

const CAPACITY: usize = 4096;
/// The header page, the area of four slots, the data.
const AREA: usize = 0x1000;
const SLOTS: usize = 0x2000;
const DATA: usize = 0x3000;
const LEN: usize = DATA + CAPACITY;

/// A topic's file, and what it holds in the middle of its life.
struct Stage {
    name: String,
    file: File,
    bytes: Vec<u8>,
}

/// One of each kind, made by the library itself: subscribers get views, or copies, or none of them may gate.
fn stages() -> &'static [Stage] {
    static STAGES: OnceLock<Vec<Stage>> = OnceLock::new();
    STAGES.get_or_init(|| {
        (0..3)
            .map(|kind| {
                let name = format!("/dev/shm/ramway-fuzz-topic-{}-{kind}", std::process::id());
                let builder = Topic::create(&name).capacity(CAPACITY as u64).slots(4).persistent(true);
                let builder = builder.may_eject(kind == 1).lossy_only(kind == 2);
                let mut publisher = builder.publisher().unwrap();
                for n in 0..70usize {
                    publisher.send_tagged(1, n as u64, &vec![n as u8; [100, 0, 300][n % 3]]).unwrap();
                }
                drop(publisher);
                let file = File::options().read(true).write(true).open(&name).unwrap();
                let bytes = std::fs::read(&name).unwrap();
                assert_eq!(bytes.len(), LEN);
                Stage { name, file, bytes }
            })
            .collect()
    })
}

/// The fuzzer's bytes, taken from the front; zeros when they are used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let n = self.0.len().min(N);
        bytes[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        bytes
    }
}

/// One of the words that are shared, but for the geometry, which the target `header` writes.
fn word(number: u8) -> usize {
    let number = number as usize;
    match number % 4 {
        0 => [0x480, 0x488, 0x500, 0x600, 0x608, 0x610, AREA, AREA + 0x80][number / 4 % 8],
        1 => 0x580 + 8 * (number / 4 % 16),
        _ => SLOTS + 0x80 * (number / 4 % 4) + 8 * (number / 16 % 9),
    }
}

fn joins(name: &str, [policy, start]: [u8; 2]) -> TopicBuilder {
    let builder = Topic::open(name).policy([Policy::Reliable, Policy::Lossy, Policy::Latest][policy as usize % 3]);
    if policy % 3 == 2 {
        return builder;
    }
    let builder = match start % 5 {
        0 => builder.from_oldest(),
        1 => builder.from_now(),
        2 => builder.history(u64::from(start / 5)),
        3 => builder.after_seq(u64::from(start)),
        _ => builder,
    };
    if policy % 3 == 0 && start % 2 == 0 { builder.label("x").durable(start % 4 == 0) } else { builder }
}

fn use_subscriber(subscriber: &mut Subscriber) {
    let mut buffer = Vec::new();
    for _ in 0..3 {
        if let Ok(message) = subscriber.try_recv() {
            assert!(message.len() <= CAPACITY);
            black_box((message.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)), message.tensor().is_ok()));
        }
        black_box(subscriber.recv_timeout(Duration::from_nanos(1)).is_ok());
        if let Ok(mut batch) = subscriber.try_recv_batch(1000) {
            assert!(batch.iter().map(|message| message.len()).sum::<usize>() <= 2 * CAPACITY);
        }
        black_box(subscriber.try_recv_into(&mut buffer).is_ok());
        black_box(subscriber.latest_into(&mut buffer).is_ok());
        assert!(buffer.capacity() <= 4 * CAPACITY);
    }
    assert!(subscriber.len() <= CAPACITY && subscriber.lag().bytes <= CAPACITY as u64);
    black_box(subscriber.skip_to_newest().is_ok());
}

fn use_publisher(publisher: &mut Publisher, len: usize) {
    black_box(publisher.try_send_tagged(1, 2, &[0x5A; CAPACITY][..len % CAPACITY]).is_ok());
    if let Ok(mut slot) = publisher.try_reserve(len % 2000) {
        slot.fill(7);
        black_box(slot.commit_unflushed(len % 100).is_ok());
    }
    assert!(publisher.len() <= CAPACITY);
    black_box((publisher.last_tag(), publisher.seq(), publisher.subscribers(), publisher.flush().is_ok()));
}

fuzz_target!(|data: &[u8]| {
    let stage = &stages()[data.first().map_or(0, |byte| *byte as usize % 3)];
    stage.file.write_all_at(&stage.bytes, 0).unwrap();
    let mut input = Input(data.get(1..).unwrap_or_default());
    let (mut publisher, mut subscribers): (Option<Publisher>, Vec<Subscriber>) = (None, Vec::new());
    for _ in 0..48 {
        if input.0.is_empty() {
            break;
        }
        match input.take::<1>()[0] % 10 {
            0..=2 => {
                let at = word(input.take::<1>()[0]);
                stage.file.write_all_at(&input.take::<8>(), at as u64).unwrap();
            }
            // A small step of a word.
            3 => {
                let [which, step] = input.take();
                let (at, mut value) = (word(which) as u64, [0; 8]);
                stage.file.read_exact_at(&mut value, at).unwrap();
                let value = u64::from_le_bytes(value).wrapping_add_signed(i64::from(step as i8) * 32);
                stage.file.write_all_at(&value.to_le_bytes(), at).unwrap();
            }
            4 => {
                let at = DATA + u16::from_le_bytes(input.take()) as usize % (CAPACITY - 8);
                stage.file.write_all_at(&input.take::<8>(), at as u64).unwrap();
            }
            5 | 6 => {
                let how = input.take();
                if subscribers.len() < 3 {
                    subscribers.extend(joins(&stage.name, how).subscriber());
                }
            }
            7 => publisher = publisher.or_else(|| Topic::open(&stage.name).publisher().ok()),
            8 => subscribers.iter_mut().for_each(use_subscriber),
            _ => {
                if let Some(publisher) = &mut publisher {
                    use_publisher(publisher, u16::from_le_bytes(input.take()) as usize);
                }
            }
        }
    }
});
