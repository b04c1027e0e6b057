//! The ring against a model that is a queue: random sequences of every call on either side, checked to the byte.
//!
//! One thread calls both sides, so what must happen is exact: which messages arrive, with which contents and where in
//! memory; when a message fits, and when it does not whether it ever could.

mod support;

use proptest::prelude::*;
use ramway::layout::frame_size;
use ramway::{ErrorKind, Receiver, Ring, Sender};
use std::collections::VecDeque;
use std::io::IoSlice;
use support::Dir;

/// One call. Lengths are in thousandths of the capacity, so that they mean something in every ring.
#[derive(Clone, Debug)]
enum Call {
    Send { len: u32, tag: u64 },
    SendVectored { len: u32, cut: u32 },
    SendBatch { lens: Vec<u32> },
    Reserve { len: u32, keep: u32, flush: bool },
    Abort { len: u32 },
    CommitTooMuch { len: u32 },
    Flush,
    Recv,
    RecvForget,
    RecvInto,
    RecvBatch { max: usize, take: usize },
    RestartSender,
    RestartReceiver,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    // Mostly short messages, sometimes nothing, sometimes as long as it gets and beyond.
    let len = prop_oneof![4 => 0u32..40, 2 => 0u32..300, 2 => 900u32..1010, 1 => Just(0), 1 => Just(1000)];
    let call = prop_oneof![
        6 => (len.clone(), any::<u64>()).prop_map(|(len, tag)| Call::Send { len, tag }),
        1 => (len.clone(), 0u32..=1000).prop_map(|(len, cut)| Call::SendVectored { len, cut }),
        1 => prop::collection::vec(0u32..100, 0..6).prop_map(|lens| Call::SendBatch { lens }),
        3 => (len.clone(), 0u32..=1000, any::<bool>()).prop_map(|(len, keep, flush)| Call::Reserve { len, keep, flush }),
        2 => len.clone().prop_map(|len| Call::Abort { len }),
        1 => len.prop_map(|len| Call::CommitTooMuch { len }),
        1 => Just(Call::Flush),
        6 => Just(Call::Recv),
        2 => Just(Call::RecvForget),
        2 => Just(Call::RecvInto),
        2 => (1usize..6, 0usize..7).prop_map(|(max, take)| Call::RecvBatch { max, take }),
        1 => Just(Call::RestartSender),
        1 => Just(Call::RestartReceiver),
    ];
    prop::collection::vec(call, 1..120)
}

#[derive(Clone, Debug, PartialEq)]
struct Expected {
    type_id: u32,
    tag: u64,
    data: Vec<u8>,
}

/// What a ring is, without a ring.
struct Model {
    capacity: u64,
    align: u32,
    /// Not yet received; the last `unflushed` of them not yet visible.
    queue: VecDeque<Expected>,
    unflushed: usize,
    /// Received and never given back: the next receiver gets them again.
    forgotten: VecDeque<Expected>,
    last_tag: Option<u64>,
    sent: u32,
}

impl Model {
    fn frame(&self, len: usize) -> u64 {
        frame_size(len as u64, self.align)
    }

    fn bytes<'a>(&self, messages: impl Iterator<Item = &'a Expected>) -> u64 {
        messages.map(|m| self.frame(m.data.len())).sum()
    }

    fn used(&self) -> u64 {
        self.bytes(self.forgotten.iter().chain(&self.queue))
    }

    fn visible(&self) -> usize {
        self.queue.len() - self.unflushed
    }

    /// What must come of room for `len` bytes.
    fn room(&self, len: usize) -> Result<(), ErrorKind> {
        if len as u64 > self.capacity - 16 {
            Err(ErrorKind::TooLarge)
        } else if self.frame(len) > self.capacity - self.used() {
            Err(ErrorKind::Full)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) {
        self.unflushed = 0;
        self.last_tag = self.queue.back().map(|m| m.tag).or(self.last_tag);
    }

    fn message(&mut self, len: usize, tag: u64) -> Expected {
        self.sent += 1;
        let seed = self.sent.wrapping_mul(0x9E37_79B9);
        let data = (0..len).map(|i| (seed.wrapping_add(i as u32).wrapping_mul(0x85EB_CA6B) >> 24) as u8).collect();
        Expected { type_id: self.sent, tag, data }
    }

    /// Records what a call that sends one message must have done.
    fn sent(&mut self, result: Result<(), ErrorKind>, message: Expected, flush: bool) {
        let expected = self.room(message.data.len());
        assert_eq!(result, expected, "{} bytes in {} used", message.data.len(), self.used());
        match expected {
            Ok(()) => {
                self.queue.push_back(message);
                self.unflushed += 1;
                if flush {
                    self.flush();
                }
            }
            Err(ErrorKind::Full) => self.flush(),
            Err(_) => {}
        }
    }

    /// Everything that was lent out is given back by the next receive, whatever it finds.
    fn next(&mut self) -> Option<Expected> {
        self.forgotten.clear();
        if self.visible() == 0 { None } else { self.queue.pop_front() }
    }
}

fn kind<T>(result: ramway::Result<T>) -> Result<(), ErrorKind> {
    result.map(drop).map_err(|error| error.kind())
}

/// One ring under test. The handles are options only while they are restarted.
struct Subject {
    tx: Option<Sender>,
    rx: Option<Receiver>,
    /// Where it can be opened again; a pair cannot.
    name: Option<String>,
    model: Model,
}

impl Subject {
    fn tx(&mut self) -> &mut Sender {
        self.tx.as_mut().unwrap()
    }

    fn rx(&mut self) -> &mut Receiver {
        self.rx.as_mut().unwrap()
    }

    fn len(&self, thousandths: u32) -> usize {
        (self.model.capacity * u64::from(thousandths) / 1000) as usize
    }

    fn call(&mut self, call: &Call) {
        match call {
            Call::Send { len, tag } => {
                let message = {
                    let len = self.len(*len);
                    self.model.message(len, *tag)
                };
                let result = kind(self.tx().try_send_tagged(message.type_id, *tag, &message.data));
                self.model.sent(result, message, true);
            }
            Call::SendVectored { len, cut } => {
                let len = self.len(*len);
                // It would wait for room.
                if self.model.room(len) == Err(ErrorKind::Full) {
                    return;
                }
                let message = self.model.message(len, 5);
                let (one, other) = message.data.split_at(len * *cut as usize / 1000);
                let pieces = [IoSlice::new(one), IoSlice::new(&[]), IoSlice::new(other)];
                let result = kind(self.tx().send_vectored(message.type_id, 5, &pieces));
                self.model.sent(result, message, true);
            }
            Call::SendBatch { lens } => {
                let lens: Vec<_> = lens.iter().map(|len| self.len(*len)).collect();
                let total: u64 = lens.iter().map(|len| self.model.frame(*len)).sum();
                if total > self.model.capacity - self.model.used() {
                    return;
                }
                let messages: Vec<_> = lens.iter().map(|len| self.model.message(*len, 0)).collect();
                let sent = self.tx().send_batch(77, messages.iter().map(|m| &m.data)).unwrap();
                assert_eq!(sent, messages.len());
                for mut message in messages {
                    message.type_id = 77;
                    self.model.sent(Ok(()), message, false);
                }
                self.model.flush();
            }
            Call::Reserve { len, keep, flush } => {
                let len = self.len(*len);
                let message = self.model.message(len, 9);
                let room = self.model.room(len);
                let align = self.model.align as usize;
                match self.tx.as_mut().unwrap().try_reserve(len) {
                    Ok(mut slot) => {
                        assert_eq!(room, Ok(()));
                        assert_eq!((slot.len(), slot.as_ptr() as usize % align), (len, 0));
                        let keep = len * *keep as usize / 1000;
                        slot.copy_from_slice(&message.data);
                        let slot = slot.with_type_id(message.type_id).with_tag(9);
                        if *flush { slot.commit(keep) } else { slot.commit_unflushed(keep) }.unwrap();
                        let data = message.data[..keep].to_vec();
                        self.model.sent(Ok(()), Expected { data, ..message }, *flush);
                    }
                    Err(error) => self.model.sent(Err(error.kind()), message, *flush),
                }
            }
            Call::Abort { len } => {
                let len = self.len(*len);
                let room = self.model.room(len);
                match self.tx.as_mut().unwrap().try_reserve(len) {
                    Ok(mut slot) => {
                        slot.fill(0xEE);
                        assert_eq!(room, Ok(()));
                    }
                    Err(error) => {
                        assert_eq!(Err(error.kind()), room);
                        if error.kind() == ErrorKind::Full {
                            self.model.flush();
                        }
                    }
                }
            }
            Call::CommitTooMuch { len } => {
                let len = self.len(*len);
                if self.model.room(len).is_ok() {
                    let slot = self.tx().try_reserve(len).unwrap();
                    assert_eq!(kind(slot.commit(len + 1)), Err(ErrorKind::InvalidArgument));
                }
            }
            Call::Flush => {
                self.tx().flush().unwrap();
                self.model.flush();
            }
            Call::Recv | Call::RecvForget => {
                let (align, expected) = (self.model.align as usize, self.model.next());
                match self.rx.as_mut().unwrap().try_recv() {
                    Ok(message) => {
                        let got = Expected { type_id: message.type_id(), tag: message.tag(), data: message.to_vec() };
                        assert_eq!(message.as_ptr() as usize % align, 0);
                        if matches!(call, Call::RecvForget) {
                            std::mem::forget(message);
                            self.model.forgotten.push_back(got.clone());
                        }
                        assert_eq!(Some(got), expected);
                    }
                    Err(error) => assert_eq!((error.kind(), expected), (ErrorKind::Empty, None)),
                }
            }
            Call::RecvInto => {
                let expected = self.model.next();
                let mut data = vec![1, 2, 3];
                match self.rx().try_recv_into(&mut data) {
                    Ok(meta) => {
                        assert_eq!(meta.len, data.len());
                        assert_eq!(Some(Expected { type_id: meta.type_id, tag: meta.tag, data }), expected);
                    }
                    Err(error) => assert_eq!((error.kind(), expected), (ErrorKind::Empty, None)),
                }
            }
            Call::RecvBatch { max, take } => {
                self.model.forgotten.clear();
                // At least the first is taken out of the ring, whether anybody looks at it or not.
                let count = self.model.visible().min(*max);
                match self.rx.as_mut().unwrap().try_recv_batch(*max) {
                    Ok(mut batch) => {
                        let mut taken = 0;
                        for (message, expected) in batch.iter().take(*take).zip(&self.model.queue) {
                            assert_eq!(message.as_ptr() as usize % self.model.align as usize, 0);
                            assert_eq!(
                                (message.type_id(), message.tag(), &*message),
                                (expected.type_id, expected.tag, &expected.data[..])
                            );
                            taken += 1;
                        }
                        assert_eq!(taken, count.min(*take));
                        drop(batch);
                        self.model.queue.drain(..taken.max(1));
                    }
                    Err(error) => assert_eq!((error.kind(), count), (ErrorKind::Empty, 0)),
                }
            }
            Call::RestartSender => {
                let Some(name) = self.name.clone() else { return };
                let epoch = self.tx().epoch();
                drop(self.tx.take());
                self.model.flush();
                let tx = Ring::open(&name).sender().unwrap();
                assert_eq!(tx.epoch(), epoch + 1);
                self.tx = Some(tx);
            }
            Call::RestartReceiver => {
                let Some(name) = self.name.clone() else { return };
                drop(self.rx.take());
                self.rx = Some(Ring::open(&name).receiver().unwrap());
                // At least once: what was never given back comes again, and first.
                while let Some(again) = self.model.forgotten.pop_back() {
                    self.model.queue.push_front(again);
                }
            }
        }
        self.check();
    }

    fn check(&mut self) {
        let used = self.model.used() as usize;
        let hidden = self.model.bytes(self.model.queue.iter().skip(self.model.visible())) as usize;
        assert_eq!((self.tx().len(), self.tx().is_empty()), (used, used == 0));
        assert_eq!(self.rx().len(), used - hidden);
        if self.model.sent > 0 {
            assert_eq!(self.tx().last_tag(), self.model.last_tag);
        }
    }

    /// Whatever is still in there comes out, then the end.
    fn finish(mut self) {
        drop(self.tx.take());
        self.model.flush();
        while let Some(expected) = self.model.next() {
            let message = self.rx().try_recv().unwrap();
            assert_eq!((message.type_id(), &*message), (expected.type_id, &expected.data[..]));
        }
        assert_eq!(kind(self.rx().try_recv()), Err(ErrorKind::Closed));
    }
}

fn run(tx: Sender, rx: Receiver, name: Option<String>, calls: &[Call]) {
    let (capacity, align) = (tx.capacity() as u64, tx.align() as u32);
    let model = Model {
        capacity,
        align,
        queue: VecDeque::new(),
        unflushed: 0,
        forgotten: VecDeque::new(),
        last_tag: None,
        sent: 0,
    };
    let mut subject = Subject { tx: Some(tx), rx: Some(rx), name, model };
    for call in calls {
        subject.call(call);
    }
    subject.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pair_is_a_queue(calls in calls()) {
        let (tx, rx) = Ring::pair(4096).unwrap();
        run(tx, rx, None, &calls);
    }

    #[test]
    fn a_named_ring_of_any_alignment_is_a_queue(calls in calls(), align in 4u32..=12, double in any::<bool>()) {
        let dir = Dir::new();
        let name = dir.at("ring");
        let capacity = if double { 8192 } else { 4096 };
        let tx = Ring::create(&name).capacity(capacity).align(1 << align).sender().unwrap();
        let rx = Ring::open(&name).receiver().unwrap();
        run(tx, rx, Some(name), &calls);
    }
}
