//! `produce` and `consume`.

use std::time::{Duration, Instant};

use ramway::ring::log::Log;
use ramway::{ErrorKind, Receiver, Result, Sender};

use crate::line::{Limits, Line};
use crate::message::{Made, Messages, Sizes};
use crate::topic::{Came, Kind};
use crate::{Stop, named};

/// The keys that both have.
struct Plan {
    sizes: Sizes,
    count: Option<u64>,
    start: Option<u64>,
    how: String,
    batch: u64,
    limits: Limits,
    endings: u64,
    progress: bool,
}

impl Plan {
    fn new(mut line: Line, batch: u64) -> std::result::Result<Self, Stop> {
        let plan = Self {
            sizes: line.get("sizes", Sizes::Mixed)?,
            count: line.maybe("count")?,
            start: line.maybe("start")?,
            how: line.text("how").unwrap_or_default(),
            batch: line.get("batch", batch)?,
            limits: line.limits()?,
            endings: line.get("endings", 1)?,
            progress: line.yes("progress"),
        };
        line.end()?;
        Ok(plan)
    }

    /// Whether the stream goes on after this error, with a successor of the other side: it is one that ends the stream,
    /// and one more of them was asked for. `TimedOut` if none comes.
    fn goes_on(&self, kind: ErrorKind, seen: &mut u64) -> bool {
        *seen += u64::from(matches!(kind, ErrorKind::Closed | ErrorKind::PeerDead));
        matches!(kind, ErrorKind::Closed | ErrorKind::PeerDead) && *seen < self.endings
    }

    fn successor(&self, noted: u32, mut epoch: impl FnMut() -> u32) -> bool {
        let began = Instant::now();
        while epoch() == noted {
            if self.limits.whole.is_some_and(|limit| began.elapsed() >= limit) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

/// Sends one message as `how` says, waiting for room for as long as a wait may last.
fn put<L: Log>(tx: &mut Sender<L>, plan: &Plan, message: &Made<'_>, flush: bool) -> Result<()> {
    let Made { type_id, tag, payload } = *message;
    let (how, limit) = (plan.how.as_str(), plan.limits.call());
    // With `poll`, the room is waited for by no other call than the one with that time-out.
    if how != "reserve" && flush && plan.limits.poll.is_none() {
        match (tx.try_send_tagged(type_id, tag, payload), limit) {
            (Err(full), None) if full.kind() == ErrorKind::Full && how != "try" => {
                return tx.send_tagged(type_id, tag, payload);
            }
            // There is no call that sends with a tag and a limit: below, the room is waited for.
            (Err(full), Some(_)) if full.kind() == ErrorKind::Full && how != "try" => {}
            (outcome, _) => return outcome,
        }
    }
    let slot = match limit {
        _ if how == "try" => tx.try_reserve(payload.len()),
        Some(limit) => tx.reserve_timeout(payload.len(), limit),
        None => tx.reserve(payload.len()),
    };
    let mut slot = slot?.with_type_id(type_id).with_tag(tag);
    slot.copy_from_slice(payload);
    if flush { slot.commit(payload.len()) } else { slot.commit_unflushed(payload.len()) }
}

pub(crate) fn produce<L: Log>(tx: &mut Sender<L>, line: Line) -> std::result::Result<(), Stop> {
    let plan = Plan::new(line, 1)?;
    let messages = Messages::new(plan.sizes, tx.max_message_len() as u64);
    let mut next = plan.start.unwrap_or(0);
    let end = next + plan.count.ok_or(Stop::Refused("count is missing".to_owned()))?;
    let (mut sent, mut endings) = (0, 0);
    while next < end {
        let flush = (sent + 1) % plan.batch == 0 || next + 1 == end;
        let (noted, began) = (tx.peer_epoch(), Instant::now());
        let message = messages.make(next);
        if let Err(cause) = plan.limits.wait(|| put(tx, &plan, &message, flush)) {
            let report = |kind| {
                let elapsed_ms = began.elapsed().as_millis();
                println!("end {} sent={sent} next={next} elapsed_ms={elapsed_ms}", named(kind));
            };
            report(cause.kind());
            if !plan.goes_on(cause.kind(), &mut endings) {
                return Ok(());
            }
            if !plan.successor(noted, || tx.peer_epoch()) {
                report(ErrorKind::TimedOut);
                return Ok(());
            }
            continue;
        }
        if plan.progress {
            println!("at seq={next}");
        }
        (sent, next) = (sent + 1, next + 1);
    }
    println!("sent count={sent} next={next}");
    Ok(())
}

/// What a consumer has seen so far.
struct Seen<'a> {
    plan: &'a Plan,
    messages: Messages,
    next: Option<u64>,
    first: Option<u64>,
    received: u64,
    bytes: u64,
    /// Of a topic: how many messages it was told that it lost.
    lost: Option<u64>,
}

impl Seen<'_> {
    fn take(&mut self, came: Came, payload: &[u8]) -> std::result::Result<(), Stop> {
        let Came { type_id, tag, stamp } = came;
        let seq = match stamp {
            None => self.next.unwrap_or(tag & 0xFFFF_FFFF),
            // A topic's first message has 1.
            Some((number, lost)) => {
                let seq = number.wrapping_sub(1);
                if let Some(next) = self.next.filter(|next| next + lost != seq) {
                    return Err(Stop::Bad(seq, format!("it comes after {lost} lost ones, and {next} was expected")));
                }
                self.lose(lost);
                seq
            }
        };
        self.messages.check(seq, type_id, tag, payload).map_err(|what| Stop::Bad(seq, what))?;
        self.first.get_or_insert(seq);
        self.next = Some(seq + 1);
        self.received += 1;
        self.bytes += payload.len() as u64;
        if self.plan.progress {
            println!("at seq={seq}");
        }
        Ok(())
    }

    /// It was told that so many were lost.
    fn lose(&mut self, lost: u64) {
        self.lost = Some(self.lost.unwrap_or(0) + lost);
    }

    /// How many messages there are left to receive.
    fn left(&self) -> u64 {
        self.plan.count.map_or(u64::MAX, |count| count - self.received)
    }

    fn report(&self, named: &str, elapsed_ms: u128) {
        let Self { received, bytes, .. } = self;
        let first = self.first.map_or(-1, |seq| seq as i64);
        let last = self.first.and(self.next).map_or(-1, |next| next as i64 - 1);
        let lost = self.lost.map_or(String::new(), |lost| format!(" lost={lost}"));
        println!(
            "end {named} received={received} first={first} last={last} bytes={bytes} elapsed_ms={elapsed_ms}{lost}"
        );
    }
}

/// Receives one message, or a batch of them, as `how` says.
fn get<L: Kind>(
    rx: &mut Receiver<L>,
    seen: &mut Seen<'_>,
    buffer: &mut Vec<u8>,
) -> Result<std::result::Result<(), Stop>> {
    let plan = seen.plan;
    let limit = plan.limits.call();
    match plan.how.as_str() {
        "batch" => {
            let max = plan.batch.min(seen.left()) as usize;
            let mut batch = match limit {
                Some(limit) => rx.recv_batch_timeout(max, limit)?,
                None => rx.recv_batch(max)?,
            };
            Ok(batch.iter().try_for_each(|message| seen.take(L::view(&message), &message)))
        }
        "into" => {
            let meta = match limit {
                Some(limit) => rx.recv_into_timeout(buffer, limit)?,
                None => rx.recv_into(buffer)?,
            };
            Ok(seen.take(L::copy(&meta), buffer))
        }
        how => {
            let message = match limit {
                _ if how == "try" => rx.try_recv()?,
                Some(limit) => rx.recv_timeout(limit)?,
                None => rx.recv()?,
            };
            Ok(seen.take(L::message(&message), &message))
        }
    }
}

pub(crate) fn consume<L: Kind>(rx: &mut Receiver<L>, line: Line) -> std::result::Result<(), Stop> {
    let plan = &Plan::new(line, 32)?;
    let messages = Messages::new(plan.sizes, L::longest(rx.capacity()));
    let mut seen =
        Seen { plan, messages, next: plan.start, first: None, received: 0, bytes: 0, lost: L::NUMBERED.then_some(0) };
    let mut buffer = Vec::new();
    let (mut endings, mut last_ms) = (0, 0);
    while seen.left() > 0 {
        let (noted, began) = (rx.peer_epoch(), Instant::now());
        let outcome = plan.limits.wait(|| get(rx, &mut seen, &mut buffer));
        if seen.left() == 0 || outcome.is_err() {
            last_ms = began.elapsed().as_millis();
        }
        match outcome {
            Ok(checked) => checked?,
            Err(cause) if cause.kind() == ErrorKind::Lagged => {
                let lost = cause.lost().unwrap_or(0);
                println!("lagged lost={lost}");
                seen.lose(lost);
                seen.next = seen.next.map(|next| next + lost);
            }
            Err(cause) => {
                seen.report(&named(cause.kind()), last_ms);
                if !plan.goes_on(cause.kind(), &mut endings) {
                    return Ok(());
                }
                if !plan.successor(noted, || rx.peer_epoch()) {
                    seen.report(&named(ErrorKind::TimedOut), last_ms);
                    return Ok(());
                }
            }
        }
    }
    seen.report("name=Count number=0", last_ms);
    Ok(())
}
