//! The topic against a model: random sequences of every call of one publisher and up to four subscribers of all policies.
//!
//! One thread makes all calls, so what must happen is exact: when a message fits, which ones a reliable and a latest
//! subscriber are given, and how many a lossy one has lost. Only when a lossy one loses some is left open within the bounds
//! that the format gives (a message that is at most fifteen sixteenths of the capacity behind, less the one that is written,
//! is intact).

mod support;

use proptest::prelude::*;
use ramway::layout::topic_frame_size;
use ramway::{ErrorKind, Lag, Policy, Publisher, Subscriber, Topic};
use support::Dir;
use support::topic::{is_whole, message};

const SUBSCRIBERS: usize = 4;

/// Where a subscriber begins. Numbers are in thousandths of the newest message's.
#[derive(Clone, Copy, Debug)]
enum Start {
    Oldest,
    Now,
    History(u64),
    AfterSeq(u64),
}

/// One call. Lengths are in thousandths of the longest message's.
#[derive(Clone, Debug)]
enum Call {
    Send { len: u64 },
    SendBatch { lens: Vec<u64> },
    Reserve { len: u64, keep: u64, flush: bool },
    Abort { len: u64 },
    Flush,
    SkipSeq { lost: u64 },
    Restart { abandon: bool },
    Join { who: usize, policy: Policy, start: Start, durable: bool },
    Leave { who: usize },
    Recv { who: usize, forget: bool },
    RecvInto { who: usize, room: u64 },
    RecvBatch { who: usize, max: usize, take: usize },
    Latest { who: usize },
    SkipToNewest { who: usize },
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let len =
        prop_oneof![6 => 0u64..80, 2 => 0u64..400, 1 => 900u64..1001, 1 => Just(0), 1 => Just(1000), 1 => Just(1001)];
    let who = 0..SUBSCRIBERS;
    let policy = prop_oneof![2 => Just(Policy::Reliable), 1 => Just(Policy::Lossy), 1 => Just(Policy::Latest)];
    let start = prop_oneof![
        Just(Start::Oldest),
        Just(Start::Now),
        (0u64..1100).prop_map(Start::History),
        (0u64..1100).prop_map(Start::AfterSeq),
    ];
    let call = prop_oneof![
        8 => len.clone().prop_map(|len| Call::Send { len }),
        3 => prop::collection::vec(0u64..120, 0..12).prop_map(|lens| Call::SendBatch { lens }),
        3 => (len.clone(), 0u64..=1000, any::<bool>()).prop_map(|(len, keep, flush)| Call::Reserve { len, keep, flush }),
        1 => len.prop_map(|len| Call::Abort { len }),
        1 => Just(Call::Flush),
        1 => (0u64..5).prop_map(|lost| Call::SkipSeq { lost }),
        1 => any::<bool>().prop_map(|abandon| Call::Restart { abandon }),
        3 => (who.clone(), policy, start, any::<bool>())
            .prop_map(|(who, policy, start, durable)| Call::Join { who, policy, start, durable }),
        1 => who.clone().prop_map(|who| Call::Leave { who }),
        8 => (who.clone(), any::<bool>()).prop_map(|(who, forget)| Call::Recv { who, forget }),
        2 => (who.clone(), 0u64..=1000).prop_map(|(who, room)| Call::RecvInto { who, room }),
        3 => (who.clone(), 1usize..30, 0usize..30).prop_map(|(who, max, take)| Call::RecvBatch { who, max, take }),
        1 => who.clone().prop_map(|who| Call::Latest { who }),
        1 => who.prop_map(|who| Call::SkipToNewest { who }),
    ];
    prop::collection::vec(call, 1..160)
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    position: u64,
    end: u64,
    seq: u64,
    len: usize,
}

/// What the model knows of a subscriber.
#[derive(Debug)]
struct Reader {
    handle: Subscriber,
    policy: Policy,
    durable: bool,
    /// The next frame to read, by its place in `frames`; of a lossy one the next that it expects.
    next: usize,
    /// What its gap is counted from.
    expected: u64,
    lost: u64,
    /// Received and not released, because the message was forgotten.
    held: bool,
}

struct Subject {
    name: String,
    capacity: u64,
    align: u32,
    publisher: Option<Publisher>,
    /// All that was ever committed.
    frames: Vec<Frame>,
    /// How many of them are published.
    published: usize,
    tail: u64,
    seq: u64,
    readers: [Option<Reader>; SUBSCRIBERS],
    /// A durable one that has left: where it goes on.
    away: [Option<usize>; SUBSCRIBERS],
}

fn kind<T>(result: ramway::Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

impl Subject {
    fn publisher(&mut self) -> &mut Publisher {
        self.publisher.as_mut().unwrap()
    }

    fn newest(&self) -> Option<&Frame> {
        self.frames[..self.published].last()
    }

    /// Where the next frame to read of a reliable subscriber begins.
    fn position(&self, next: usize) -> u64 {
        self.frames.get(next).map_or(self.tail, |frame| frame.position)
    }

    /// Where reliable subscribers keep the publisher from writing on.
    fn cursors(&self) -> impl Iterator<Item = u64> {
        let here = self.readers.iter().flatten().filter(|reader| reader.policy == Policy::Reliable);
        // A forgotten message is released by the next call.
        let here = here.map(|reader| reader.next - usize::from(reader.held));
        here.chain(self.away.iter().flatten().copied()).map(|next| self.position(next))
    }

    /// Whether a frame of this size fits; what is committed is flushed if not.
    fn fits(&mut self, size: u64) -> bool {
        let fits = |subject: &Self| {
            let last = subject.newest().map_or(0, |frame| frame.position);
            let least = subject.cursors().chain([if subject.newest().is_some() {
                last
            } else {
                u64::from(subject.align) - 32
            }]);
            subject.tail + size <= least.min().unwrap() + subject.capacity
        };
        if fits(self) {
            return true;
        }
        self.published = self.frames.len();
        fits(self)
    }

    fn len(&self, thousandths: u64) -> usize {
        ((self.capacity / 2 - 32) * thousandths).div_ceil(1000) as usize
    }

    fn commit(&mut self, len: usize) {
        let end = self.tail + topic_frame_size(len as u64, self.align);
        self.frames.push(Frame { position: self.tail, end, seq: self.seq, len });
        self.tail = end;
        self.seq += 1;
    }

    fn call(&mut self, call: &Call) {
        match *call {
            Call::Send { len } => {
                let (len, seq) = (self.len(len), self.seq);
                let outcome = self.publisher().try_send_tagged(3, seq, &message(seq, len));
                if self.reserved(len, outcome) {
                    self.commit(len);
                    self.published = self.frames.len();
                }
            }
            Call::SendBatch { ref lens } => {
                let lens: Vec<_> = lens.iter().map(|len| self.len(*len)).collect();
                let seq = self.seq;
                let messages = lens.iter().enumerate().map(|(i, len)| message(seq + i as u64, *len));
                let sent = self.publisher().send_batch_timeout(3, 7, messages, std::time::Duration::ZERO);
                let mut count = 0;
                for len in &lens {
                    if !self.fits(topic_frame_size(*len as u64, self.align)) {
                        break;
                    }
                    self.commit(*len);
                    count += 1;
                }
                self.published = self.frames.len();
                match sent {
                    Ok(sent) => assert_eq!(sent, count),
                    Err(e) => assert!(e.kind() == ErrorKind::TimedOut && count == 0 && !lens.is_empty(), "{e}"),
                }
            }
            Call::Reserve { len, keep, flush } => {
                let (len, seq) = (self.len(len), self.seq);
                let keep = (len as u64 * keep / 1000) as usize;
                let outcome = self.publisher().try_reserve(len).map(|slot| {
                    let mut slot = slot.with_tag(seq);
                    slot[..keep].copy_from_slice(&message(seq, keep));
                    if flush { slot.commit(keep) } else { slot.commit_unflushed(keep) }.unwrap();
                });
                if self.reserved(len, outcome) {
                    self.commit(keep);
                    if flush {
                        self.published = self.frames.len();
                    }
                }
            }
            Call::Abort { len } => {
                let len = self.len(len);
                let outcome = self.publisher().try_reserve(len).map(|mut slot| slot.fill(0xEE));
                self.reserved(len, outcome);
            }
            Call::Flush => {
                self.publisher().flush().unwrap();
                self.published = self.frames.len();
            }
            Call::SkipSeq { lost } => {
                self.publisher().skip_seq(lost).unwrap();
                self.seq += lost;
            }
            Call::Restart { abandon } => {
                let publisher = self.publisher.take().unwrap();
                if abandon {
                    publisher.abandon()
                } else {
                    publisher.close().unwrap()
                }
                self.published = self.frames.len();
                self.publisher = Some(Topic::open(&self.name).publisher().unwrap());
                // A gap that no message has told is forgotten.
                self.seq = self.newest().map_or(0, |frame| frame.seq) + 1;
            }
            Call::Join { who, policy, start, durable } => self.join(who, policy, start, durable),
            Call::Leave { who } => self.leave(who),
            Call::Recv { who, forget } => self.recv(who, forget),
            Call::RecvInto { who, room } => self.recv_into(who, room),
            Call::RecvBatch { who, max, take } => self.recv_batch(who, max, take),
            Call::Latest { who } => self.latest(who),
            Call::SkipToNewest { who } => self.skip_to_newest(who),
        }
        self.check();
    }

    /// Whether room for so many bytes was there, which the model must say too.
    fn reserved(&mut self, len: usize, outcome: ramway::Result<()>) -> bool {
        if len as u64 > self.capacity / 2 - 32 {
            assert_eq!(kind(outcome), ErrorKind::TooLarge);
            return false;
        }
        let fits = self.fits(topic_frame_size(len as u64, self.align));
        match outcome {
            Ok(()) => assert!(fits, "{len} bytes fit"),
            Err(e) => assert!(e.kind() == ErrorKind::Full && !fits, "{len} bytes: {e}"),
        }
        fits
    }

    fn join(&mut self, who: usize, policy: Policy, start: Start, durable: bool) {
        self.leave(who);
        let durable = durable && policy == Policy::Reliable;
        let newest = self.newest().map_or(0, |frame| frame.seq);
        let mut builder = Topic::open(&self.name).policy(policy);
        // A number that is `thousandths` of the newest one.
        let number = |thousandths: u64| newest * thousandths / 1000;
        if policy != Policy::Latest {
            builder = match start {
                Start::Oldest => builder.from_oldest(),
                Start::Now => builder.from_now(),
                Start::History(n) => builder.history(number(n)),
                Start::AfterSeq(n) => builder.after_seq(number(n)),
            };
        }
        if policy == Policy::Reliable {
            builder = builder.label(who.to_string()).durable(durable);
        }
        let handle = builder.subscriber().unwrap();
        if policy == Policy::Reliable
            && let Some(next) = self.away[who].take()
        {
            let expected = self.expected_after(next);
            self.readers[who] = Some(Reader { handle, policy, durable, next, expected, lost: 0, held: false });
            return;
        }
        // Where it begins is its own to say, within what the start says.
        let published = &self.frames[..self.published];
        let next = match policy {
            Policy::Latest => 0,
            _ => {
                let end = published.last().map_or(self.tail, |frame| frame.end);
                let at = end - handle.len() as u64;
                if at == end { published.len() } else { published.partition_point(|frame| frame.position < at) }
            }
        };
        let begins = published.get(next).map(|frame| frame.seq);
        let mut expected = begins.unwrap_or(newest + 1);
        if policy != Policy::Latest {
            match start {
                // The newest one is always there.
                Start::Oldest => assert_eq!(begins.is_some(), newest > 0),
                Start::Now => assert_eq!(begins, None),
                Start::History(n) => {
                    let first = newest.saturating_sub(number(n)) + 1;
                    assert!(begins.is_none_or(|seq| seq >= first), "{begins:?} with a history from {first}");
                    assert_eq!(begins.is_some(), number(n) > 0, "{begins:?} with a history from {first}");
                }
                Start::AfterSeq(n) if number(n) < newest => {
                    assert!(begins.is_some_and(|seq| seq > number(n)));
                    expected = number(n) + 1;
                }
                Start::AfterSeq(_) => assert_eq!(begins, None),
            }
        } else {
            expected = newest.max(1);
        }
        self.readers[who] = Some(Reader { handle, policy, durable, next, expected, lost: 0, held: false });
    }

    /// The number after the frame before this one.
    fn expected_after(&self, next: usize) -> u64 {
        match self.frames[..self.published].get(next) {
            Some(frame) => frame.seq,
            None => self.newest().map_or(0, |frame| frame.seq) + 1,
        }
    }

    fn leave(&mut self, who: usize) {
        if let Some(reader) = self.readers[who].take() {
            if reader.durable {
                self.away[who] = Some(reader.next - usize::from(reader.held));
            }
            reader.handle.close().unwrap();
        }
    }

    /// Checks a message that a subscriber was given, and moves its model on.
    fn given(&mut self, who: usize, seq: u64, lost: u64, bytes: &[u8]) {
        let published = &self.frames[..self.published];
        let written = self.tail;
        let reader = self.readers[who].as_mut().unwrap();
        let at = published.partition_point(|frame| frame.seq < seq);
        let frame = published[at];
        assert_eq!((frame.seq, frame.len), (seq, bytes.len()));
        assert!(is_whole(bytes, seq), "message {seq} is torn");
        match reader.policy {
            Policy::Reliable => assert_eq!(at, reader.next),
            Policy::Latest => assert_eq!(at, published.len() - 1),
            Policy::Lossy if at == reader.next => {}
            Policy::Lossy => {
                assert!(at > reader.next);
                let behind = written - published[reader.next].position;
                // The publisher may have claimed for a message that it then did not send.
                assert!(behind + self.capacity / 2 + self.capacity / 16 > self.capacity, "{behind} bytes behind");
            }
        }
        assert_eq!(lost, seq - reader.expected);
        reader.lost += lost;
        reader.expected = seq + 1;
        reader.next = at + 1;
    }

    /// Whether a subscriber has something to be given.
    fn has_next(&self, who: usize) -> bool {
        let reader = self.readers[who].as_ref().unwrap();
        match reader.policy {
            Policy::Latest => self.published != 0 && reader.next < self.published,
            _ => reader.next < self.published,
        }
    }

    fn recv(&mut self, who: usize, forget: bool) {
        let Some(reader) = &mut self.readers[who] else { return };
        reader.held = false;
        let received = match reader.handle.try_recv() {
            Ok(received) => {
                let copy = (received.seq(), received.lost(), received.to_vec());
                if forget {
                    std::mem::forget(received);
                }
                Some(copy)
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Empty);
                None
            }
        };
        assert_eq!(received.is_some(), self.has_next(who));
        if let Some((seq, lost, bytes)) = received {
            self.given(who, seq, lost, &bytes);
            let reader = self.readers[who].as_mut().unwrap();
            reader.held = forget && reader.policy == Policy::Reliable;
        }
    }

    fn recv_into(&mut self, who: usize, room: u64) {
        let room = self.len(room);
        let Some(reader) = &mut self.readers[who] else { return };
        reader.held = false;
        let mut buffer = vec![0xEE; room];
        match reader.handle.try_recv_into_slice(&mut buffer) {
            Ok(meta) => self.given(who, meta.seq, meta.lost, &buffer[..meta.len]),
            Err(e) if e.kind() == ErrorKind::TooLarge => assert!(self.has_next(who)),
            Err(e) => assert!(e.kind() == ErrorKind::Empty && !self.has_next(who), "{e}"),
        }
    }

    fn recv_batch(&mut self, who: usize, max: usize, take: usize) {
        let Some(reader) = &mut self.readers[who] else { return };
        reader.held = false;
        let mut copies = Vec::new();
        match reader.handle.try_recv_batch(max) {
            Ok(mut batch) => {
                // All views live at once.
                let views: Vec<_> = batch.iter().take(take.max(1)).collect();
                copies.extend(views.iter().map(|view| (view.seq(), view.lost(), view.to_vec())));
            }
            Err(e) => assert_eq!(e.kind(), ErrorKind::Empty),
        }
        assert_eq!(!copies.is_empty(), self.has_next(who));
        for (seq, lost, bytes) in copies {
            self.given(who, seq, lost, &bytes);
        }
    }

    fn latest(&mut self, who: usize) {
        let newest = self.newest().copied();
        let published = self.published;
        let Some(reader) = &mut self.readers[who] else { return };
        match (reader.handle.latest(), newest) {
            (Ok(received), Some(frame)) => {
                assert_eq!((received.seq(), received.lost(), received.len()), (frame.seq, 0, frame.len));
                assert!(is_whole(&received, frame.seq));
            }
            (Err(e), None) => assert_eq!(e.kind(), ErrorKind::Empty),
            (outcome, newest) => panic!("{outcome:?} with {newest:?}"),
        }
        // The message was dropped, and with it a forgotten one is released.
        if let Some(frame) = newest {
            reader.held = false;
            if reader.policy == Policy::Latest {
                (reader.next, reader.expected) = (published, reader.expected.max(frame.seq + 1));
            }
        }
    }

    fn skip_to_newest(&mut self, who: usize) {
        let newest = self.newest().copied();
        let published = self.published;
        let Some(reader) = &mut self.readers[who] else { return };
        let skipped = reader.handle.skip_to_newest();
        if reader.policy == Policy::Latest {
            assert_eq!(kind(skipped), ErrorKind::Unsupported);
            return;
        }
        reader.held = false;
        let skipped = skipped.unwrap();
        match newest {
            Some(frame) if frame.seq >= reader.expected => {
                assert_eq!(skipped, frame.seq - reader.expected);
                (reader.next, reader.expected) = (published - 1, frame.seq);
            }
            _ => assert_eq!(skipped, 0),
        }
    }

    /// What can be asked at any time.
    fn check(&mut self) {
        let newest = self.newest().copied();
        let published_tail = newest.map_or(self.tail, |frame| frame.end);
        let published_tail = if self.published == 0 { u64::from(self.align) - 32 } else { published_tail };
        let seq = newest.map_or(0, |frame| frame.seq);
        let held = self.cursors().min().map_or(0, |least| self.tail - least);
        let publisher = self.publisher.as_ref().unwrap();
        assert_eq!(publisher.seq(), seq);
        assert_eq!(publisher.len() as u64, held);
        for reader in self.readers.iter().flatten() {
            let handle = &reader.handle;
            assert_eq!(handle.lost(), reader.lost);
            if reader.policy == Policy::Reliable {
                let from = self.position(reader.next - usize::from(reader.held)).min(published_tail);
                let bytes = published_tail - from;
                assert_eq!(handle.lag(), Lag { bytes, messages: (seq + 1).saturating_sub(reader.expected) });
            }
        }
    }
}

fn run(capacity: u64, align: u32, calls: &[Call]) {
    let dir = Dir::new();
    let name = dir.at("topic");
    let publisher =
        Topic::create(&name).capacity(capacity).align(align).slots(16).persistent(true).publisher().unwrap();
    let capacity = publisher.capacity() as u64;
    let mut subject = Subject {
        name,
        capacity,
        align,
        publisher: Some(publisher),
        frames: Vec::new(),
        published: 0,
        tail: u64::from(align) - 32,
        seq: 1,
        readers: std::array::from_fn(|_| None),
        away: [None; SUBSCRIBERS],
    };
    for call in calls {
        subject.call(call);
    }
    // Whatever is still there comes out.
    subject.call(&Call::Flush);
    for who in 0..SUBSCRIBERS {
        while subject.readers[who].is_some() && subject.has_next(who) {
            subject.recv(who, false);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_topic_is_its_model(calls in calls(), align in 5u32..=10, double in any::<bool>()) {
        run(if double { 8192 } else { 4096 }, 1 << align, &calls);
    }
}
