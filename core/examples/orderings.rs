//! One function for each hot path, so that its machine code can be looked at: `scripts/orderings.sh`, which compiles this
//! and does not run it.

use ramway::{Publisher, Receiver, Result, Sender, Subscriber};

#[unsafe(no_mangle)]
#[inline(never)]
fn ring_send(tx: &mut Sender, data: &[u8]) -> Result<()> {
    tx.try_send(1, data)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn ring_recv(rx: &mut Receiver) -> Result<u8> {
    // Dropped here: the space goes back to the sender.
    rx.try_recv().map(|message| message[0])
}

#[unsafe(no_mangle)]
#[inline(never)]
fn topic_send(tx: &mut Publisher, data: &[u8]) -> Result<()> {
    tx.try_send(1, data)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn topic_recv(rx: &mut Subscriber) -> Result<u8> {
    rx.try_recv().map(|message| message[0])
}

fn main() {
    std::hint::black_box((ring_send as fn(_, _) -> _, ring_recv as fn(_) -> _));
    std::hint::black_box((topic_send as fn(_, _) -> _, topic_recv as fn(_) -> _));
}
