//! Two ends over a link that loses, doubles and reorders, with both of them restarted: the far segment is the near one.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;

/// A piece of at most this many bytes.
const PIECE: u32 = 4;

#[derive(Clone, Debug)]
enum Event {
    /// The sender publishes a message of so many bytes.
    Publish(u32),
    /// The near end sends what it may.
    Send,
    /// One message of a direction arrives: which one, of those under way, and whether a copy stays.
    ToFar(usize, bool),
    ToNear(usize, bool),
    /// One is lost.
    LoseToFar(usize),
    LoseToNear(usize),
    /// The far receiver reads: there is room for so many frames more.
    Room(u8),
    /// Either bridge is killed.
    KillNear,
    KillFar,
    /// The sender ends, and publishes nothing more.
    End,
    /// Time passes.
    Tick,
}

#[derive(Clone, Debug)]
enum Down {
    Hello(Hello),
    Data(u64, Record, u32),
}

struct World {
    /// Positions of the frames in the near segment, with the bytes of each; the last one is where the next would begin.
    frames: Vec<(u64, u32)>,
    tail: u64,
    /// The sender has ended.
    ended: bool,
    /// The segment's own: it outlives the near end.
    released: u64,
    near: Near,
    attempts: u64,
    to_far: VecDeque<Down>,
    to_near: VecDeque<Ack>,
    far: Option<Far>,
    run: u64,
    /// What the far segment holds: positions of its frames. It outlives the far end.
    log: Vec<u64>,
    committed: u64,
    room: u64,
    now: Duration,
    window: u64,
}

const FIRST: u64 = 160;

impl World {
    fn new(window: u64) -> Self {
        Self {
            frames: Vec::new(),
            tail: FIRST,
            ended: false,
            released: FIRST,
            near: Near::new(1, 9, 100, FIRST, window, (16, 4096)),
            attempts: 100,
            to_far: VecDeque::new(),
            to_near: VecDeque::new(),
            far: None,
            run: 1,
            log: Vec::new(),
            committed: FIRST,
            room: 2,
            now: Duration::ZERO,
            window,
        }
    }

    fn size(len: u32) -> u64 {
        (16 + u64::from(len) + 15) & !15
    }

    fn frame(&self, at: u64) -> Option<(u64, u32)> {
        self.frames.iter().copied().find(|(start, _)| *start == at)
    }

    fn send(&mut self) {
        if self.near.on_time(self.now) {
            self.to_far.push_back(Down::Hello(self.near.hello()));
        }
        while self.near.room() > 0 {
            let at = self.near.cursor();
            let Some((start, len)) = self.frame(at.frame) else {
                if self.ended {
                    self.near.ended(End { how: Ending::Closed, epoch: 5 }, self.now);
                }
                return;
            };
            assert!(at.frame >= self.released, "a released frame cannot be read");
            let piece = PIECE
                .min(len - at.offset)
                .min(u32::try_from(self.near.room()).unwrap_or(PIECE))
                .max(1)
                .min(len - at.offset);
            let record =
                Record { start: at, next: start + Self::size(len), tag: 0, seq: 0, time: 0, total: len, type_id: 0 };
            self.to_far.push_back(Down::Data(self.near.attempt(), record, piece));
            self.near.sent(record.after(piece), u64::from(piece), self.now);
            assert!(self.near.in_flight() <= self.window + u64::from(PIECE));
        }
    }

    fn at_far(&mut self, what: Down) {
        match what {
            Down::Hello(hello) => {
                let far = self.far.get_or_insert_with(|| {
                    Far::new(2, self.run, &hello, self.committed.max(FIRST), self.window as u32)
                });
                if far.on_hello(&hello) {
                    assert_eq!(self.committed, self.tail, "an end is acted upon after all that goes before it");
                    far.end_seen(hello.end.expect("there is one"));
                }
                self.to_near.push_back(far.ack());
            }
            Down::Data(attempt, record, len) => {
                let Some(far) = &mut self.far else {
                    let ack = Ack { unknown: true, ..Far::new(2, self.run, &self.near.hello(), 0, 0).ack() };
                    self.to_near.push_back(ack);
                    return;
                };
                // A segment that is full takes nothing: as if it had been lost.
                if far.judge(attempt, &record) == Judgement::Take {
                    if record.after(len).offset == 0 {
                        if self.room == 0 {
                            far.forget_taken();
                            self.to_near.push_back(far.ack());
                            return;
                        }
                        self.room -= 1;
                        self.log.push(record.start.frame);
                        self.committed = record.next;
                        far.taken(&record, len);
                        far.committed(record.next);
                    } else {
                        far.taken(&record, len);
                    }
                }
                self.to_near.push_back(far.ack());
            }
        }
    }

    fn at_near(&mut self, ack: Ack) {
        let step = self.near.on_ack(&ack, self.now);
        if let Some(release) = step.release {
            assert!(release <= self.committed, "released what is not committed");
            assert!(release >= self.released && release <= self.tail);
            self.released = release;
        }
        if let Some(seek) = step.seek {
            assert!(seek.frame >= self.released && seek.frame <= self.tail);
        }
        if step.hello {
            self.to_far.push_back(Down::Hello(self.near.hello()));
        }
    }

    fn act(&mut self, event: &Event) {
        match *event {
            Event::Publish(_) if self.ended => {}
            Event::End => self.ended = true,
            Event::Publish(len) => {
                self.frames.push((self.tail, len));
                self.tail += Self::size(len);
            }
            Event::Send => self.send(),
            Event::ToFar(i, keep) => {
                if let Some(what) = pick(&mut self.to_far, i, keep) {
                    self.at_far(what);
                }
            }
            Event::ToNear(i, keep) => {
                if let Some(ack) = pick(&mut self.to_near, i, keep) {
                    self.at_near(ack);
                }
            }
            Event::LoseToFar(i) => drop(pick(&mut self.to_far, i, false)),
            Event::LoseToNear(i) => drop(pick(&mut self.to_near, i, false)),
            Event::Room(frames) => self.room += u64::from(frames),
            Event::KillNear => {
                self.attempts += 1000;
                self.near = Near::new(1, 9, self.attempts, self.released, self.window, (16, 4096));
                self.now += Duration::from_millis(1);
            }
            Event::KillFar => {
                self.far = None;
                self.run += 1;
            }
            Event::Tick => self.now += Duration::from_millis(300),
        }
        self.check();
    }

    /// The far segment holds the first frames of the near one, each once, in their order.
    fn check(&self) {
        let all: Vec<u64> = self.frames.iter().map(|(start, _)| *start).collect();
        assert!(self.log.len() <= all.len());
        assert_eq!(self.log, all[..self.log.len()]);
        assert!(self.released <= self.committed);
    }

    /// From here on the link works.
    fn settle(&mut self) {
        self.room = u64::MAX;
        for _ in 0..10_000 {
            self.send();
            while let Some(what) = self.to_far.pop_front() {
                self.at_far(what);
            }
            while let Some(ack) = self.to_near.pop_front() {
                self.at_near(ack);
            }
            self.check();
            if self.released == self.tail && (!self.ended || self.near.end().is_some_and(|(_, seen)| seen)) {
                break;
            }
            self.now += Duration::from_millis(50);
        }
        assert_eq!(self.log.len(), self.frames.len(), "everything arrives");
        assert_eq!(self.released, self.tail, "everything is released");
        assert_eq!(self.near.end().is_some_and(|(_, seen)| seen), self.ended, "and the end is told");
    }
}

fn pick<T: Clone>(from: &mut VecDeque<T>, i: usize, keep: bool) -> Option<T> {
    if from.is_empty() {
        return None;
    }
    let i = i % from.len();
    if keep { from.get(i).cloned() } else { from.remove(i) }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0u32..20).prop_map(Event::Publish),
        6 => Just(Event::Send),
        8 => (0usize..3, prop::bool::weighted(0.1)).prop_map(|(i, keep)| Event::ToFar(i / 2, keep)),
        8 => (0usize..3, prop::bool::weighted(0.1)).prop_map(|(i, keep)| Event::ToNear(i / 2, keep)),
        1 => (0usize..8).prop_map(Event::LoseToFar),
        1 => (0usize..8).prop_map(Event::LoseToNear),
        3 => (0u8..4).prop_map(Event::Room),
        1 => Just(Event::KillNear),
        1 => Just(Event::KillFar),
        1 => prop::bool::weighted(0.3).prop_map(|ends| if ends { Event::End } else { Event::Send }),
        4 => Just(Event::Tick),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_lost_or_doubled(events in prop::collection::vec(event(), 0..250), window in 1u64..64) {
        let mut world = World::new(window);
        for event in &events {
            world.act(event);
        }
        world.settle();
    }
}

#[test]
fn an_end_is_told_after_the_last_message_and_until_it_is_acted_upon() {
    let mut near = Near::new(1, 9, 1, FIRST, 100, (16, 4096));
    let mut far = Far::new(2, 1, &near.hello(), FIRST, 100);
    near.on_ack(&far.ack(), Duration::ZERO);
    let record = Record { start: Pos::at(FIRST), next: FIRST + 32, tag: 0, seq: 0, time: 0, total: 3, type_id: 0 };
    near.sent(record.after(3), 3, Duration::ZERO);
    let end = End { how: Ending::Dead, epoch: 4 };
    near.ended(end, Duration::ZERO);
    assert_eq!(near.room(), 0, "nothing goes after the end before it is acted upon");
    // The message was lost: the end is not acted upon.
    assert!(!far.on_hello(&near.hello()));
    assert!(far.ack().again);
    let step = near.on_ack(&far.ack(), Duration::ZERO);
    assert_eq!(step.seek, Some(Pos::at(FIRST)));
    assert!(!near.end().unwrap().1);
    // What was lost goes first, and only then the end.
    assert_eq!(near.hello().end, None);
    assert!(!far.on_hello(&near.hello()));
    assert!(near.room() > 0);
    near.sent(record.after(3), 3, Duration::ZERO);
    assert_eq!((near.room(), near.hello().end), (0, Some(end)));
    assert_eq!(far.judge(near.attempt(), &record), Judgement::Take);
    far.taken(&record, 3);
    far.committed(record.next);
    assert!(far.on_hello(&near.hello()));
}

#[test]
fn another_far_end_gets_the_stream_only_after_the_first_was_silent() {
    let mut near = Near::new(1, 9, 1, FIRST, 100, (16, 4096));
    let first = Far::new(2, 1, &near.hello(), FIRST, 100);
    let other = Far::new(3, 1, &near.hello(), FIRST, 100);
    assert!(near.on_ack(&first.ack(), Duration::ZERO).seek.is_some());
    assert_eq!(near.on_ack(&other.ack(), Duration::from_secs(1)), Step::default());
    assert_eq!(near.far(), Some(2));
    assert!(near.on_ack(&other.ack(), Duration::from_secs(40)).seek.is_some());
    assert_eq!(near.far(), Some(3));
}
