//! A ring whose peer writes whatever it likes, before and after this side attaches. Each input is a list of writes to
//! the segment and of calls; nothing may crash, hang, or give more than the ring can hold.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ramway::{Receiver, Ring, Sender};
use std::hint::black_box;
use std::time::Duration;

const HEADER: usize = 4096;
const CAPACITY: usize = 4096;
const LEN: usize = HEADER + CAPACITY;

/// Shared memory, made once; formatted anew for each input.
fn memory() -> *mut u8 {
    static MEMORY: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *MEMORY.get_or_init(|| {
        // SAFETY: a fresh shared mapping.
        let at = unsafe {
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), LEN, prot, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(at, libc::MAP_FAILED);
        at as usize
    }) as *mut u8
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

fn drain(rx: &mut Receiver) {
    let mut total = 0;
    // What it knew of, and once it has given that back as much again.
    for _ in 0..=2 * CAPACITY / 16 {
        let Ok(message) = rx.try_recv() else { return };
        total += 16 + message.len();
        black_box(message.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
    }
    panic!("{total} bytes, more messages than a ring of {CAPACITY} holds");
}

fn use_sender(tx: &mut Sender, len: usize) {
    let payload = [0x5A; 2 * CAPACITY];
    black_box(tx.try_send_tagged(1, 2, &payload[..len % payload.len()]).is_ok());
    if let Ok(mut slot) = tx.try_reserve(len % CAPACITY) {
        slot.fill(7);
        black_box(slot.commit_unflushed(len % 100).is_ok());
    }
    assert!(tx.len() <= CAPACITY);
    black_box((tx.last_tag(), tx.is_peer_alive(), tx.peer_epoch(), tx.flush().is_ok()));
}

fuzz_target!(|data: &[u8]| {
    let memory = memory();
    // SAFETY: nobody else uses the memory.
    unsafe {
        memory.write_bytes(0, LEN);
        Ring::format(memory, LEN, [16, 64, 4096][data.first().map_or(0, |byte| *byte as usize % 3)]).unwrap();
    }
    let mut input = Input(data.get(1..).unwrap_or_default());
    let (mut tx, mut rx): (Option<Sender>, Option<Receiver>) = (None, None);
    let mut buffer = Vec::new();
    for _ in 0..64 {
        if input.0.is_empty() {
            break;
        }
        match input.take::<1>()[0] % 10 {
            // A write of 8 bytes among the words of the header, or anywhere.
            0..=2 => {
                let word = [
                    0x00, 0x10, 0x20, 0x400, 0x408, 0x418, 0x480, 0x488, 0x490, 0x498, 0x4A0, 0x500, 0x580, 0x588,
                    0x600, 0x608,
                ][input.take::<1>()[0] as usize % 16];
                let value = input.take::<8>();
                // SAFETY: inside the memory; this side reads it with atomics or once.
                unsafe { memory.add(word).copy_from(value.as_ptr(), 8) };
            }
            3 => {
                let at = u16::from_le_bytes(input.take()) as usize % (LEN - 8);
                let value = input.take::<8>();
                // SAFETY: as above.
                unsafe { memory.add(at).copy_from(value.as_ptr(), 8) };
            }
            // A small step of tail or head.
            4 => {
                let [which, step] = input.take();
                let word = memory.wrapping_add([0x480, 0x500][which as usize % 2]).cast::<u64>();
                // SAFETY: as above, and aligned.
                unsafe { word.write(word.read().wrapping_add_signed(i64::from(step as i8) * 16)) };
            }
            // SAFETY: shared memory of that length, and no role is taken twice by this loop.
            5 => rx = rx.or_else(|| unsafe { Ring::attach_receiver(memory, LEN) }.ok()),
            // SAFETY: as above.
            6 => tx = tx.or_else(|| unsafe { Ring::attach_sender(memory, LEN) }.ok()),
            7 => {
                if let Some(rx) = &mut rx {
                    drain(rx);
                    black_box(rx.recv_timeout(Duration::from_nanos(1)).is_ok());
                }
            }
            8 => {
                if let Some(rx) = &mut rx {
                    black_box(rx.try_recv_into(&mut buffer).is_ok());
                    assert!(buffer.capacity() <= 4 * CAPACITY);
                    if let Ok(mut batch) = rx.try_recv_batch(1000) {
                        assert!(batch.iter().map(|message| 16 + message.len()).sum::<usize>() <= CAPACITY);
                    }
                    assert!(rx.len() <= CAPACITY);
                }
            }
            _ => {
                if let Some(tx) = &mut tx {
                    use_sender(tx, u16::from_le_bytes(input.take()) as usize);
                }
            }
        }
    }
});
