//! `produce`, `consume` and `die`.

use std::thread;
use std::time::{Duration, Instant};

use ramway::{ErrorKind, Receiver, Result, Sender};

use crate::args::{Args, How, Role};
use crate::message::{Made, Messages};
use crate::place::{longest, open};
use crate::{Call, Stop, die as crash, is_ending, linger, wait_for_successor};

/// Sends one message as `--how` says, waiting for room for as long as a wait may last.
fn put(tx: &mut Sender, args: &Args, message: &Made<'_>, flush: bool) -> Result<()> {
    let Made { type_id, tag, payload } = *message;
    let how = args.how.unwrap_or(How::Send);
    // With `--poll`, the room is waited for by no other call than the one with that time-out.
    if how != How::Reserve && flush && args.poll.is_none() {
        match (tx.try_send_tagged(type_id, tag, payload), args.call_limit()) {
            (Err(full), None) if full.kind() == ErrorKind::Full && how == How::Send => {
                return tx.send_tagged(type_id, tag, payload);
            }
            // There is no call that sends with a tag and a limit: below, the room is waited for.
            (Err(full), Some(_)) if full.kind() == ErrorKind::Full && how == How::Send => {}
            (outcome, _) => return outcome,
        }
    }
    let slot = match (how, args.call_limit()) {
        (How::Try, _) => tx.try_reserve(payload.len()),
        (_, Some(limit)) => tx.reserve_timeout(payload.len(), limit),
        (_, None) => tx.reserve(payload.len()),
    };
    let mut slot = slot?.with_type_id(type_id).with_tag(tag);
    slot.copy_from_slice(payload);
    if flush { slot.commit(payload.len()) } else { slot.commit_unflushed(payload.len()) }
}

/// A call, with `--poll` again and again for as long as a wait may last.
fn polling<T>(args: &Args, mut call: impl FnMut() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    loop {
        let outcome = call();
        let again = matches!(&outcome, Err(cause) if cause.kind() == ErrorKind::TimedOut)
            && args.poll.is_some()
            && args.limit().is_none_or(|limit| began.elapsed() < limit);
        if !again {
            return outcome;
        }
    }
}

/// The number after the ring's last message.
fn after_last(tx: &Sender) -> Option<u64> {
    tx.last_tag().map(|tag| (tag & 0xFFFF_FFFF) + 1)
}

pub(crate) fn produce(args: &Args) -> Result<(), Stop> {
    let mut ends = open(args, args.ring.as_deref(), None)?;
    let tx = ends.sending()?;
    let messages = Messages::new(args.sizes, tx.max_message_len() as u64);
    let start = args.start.unwrap_or(0);
    let end = start + args.count.ok_or(Stop::Usage("--count is missing"))?;
    let mut next = start;
    if args.resume {
        next = after_last(tx).unwrap_or(start);
        println!("resuming next={next}");
    }
    if args.oversize {
        let long = messages.of_length(next, tx.max_message_len() as u64 + 1);
        match put(tx, args, &long, true) {
            Ok(()) => return Err(Stop::Bad(next, "a message longer than the longest was sent".to_owned())),
            Err(cause) => report(cause.kind(), 0, next, 0),
        }
    }
    let batch = args.batch.unwrap_or(1).max(1);
    let (mut sent, mut endings) = (0, 0);
    while next < end {
        let flush = (sent + 1) % batch == 0 || next + 1 == end;
        let call = Call::begin(tx.peer_epoch());
        let message = messages.make(next);
        if let Err(cause) = polling(args, || put(tx, args, &message, flush)) {
            let mut kind = cause.kind();
            endings += u64::from(is_ending(kind));
            if is_ending(kind) && endings < args.endings {
                report(kind, sent, next, call.elapsed_ms());
                match wait_for_successor(args, call.epoch, || tx.peer_epoch()) {
                    Ok(()) => continue,
                    Err(late) => kind = late,
                }
            }
            report(kind, sent, next, call.elapsed_ms());
            break;
        }
        if args.progress {
            println!("at seq={next}");
        }
        (sent, next) = (sent + 1, next + 1);
        if args.pace > 0 {
            thread::sleep(Duration::from_micros(args.pace));
        }
    }
    if next == end || end < next {
        println!("sent count={sent} next={next}");
    }
    linger(args);
    ends.close();
    Ok(())
}

fn report(kind: ErrorKind, sent: u64, next: u64, elapsed_ms: u128) {
    println!("end name={} number={} sent={sent} next={next} elapsed_ms={elapsed_ms}", kind.name(), kind.code());
}

/// What a consumer has seen so far.
struct Seen<'a> {
    args: &'a Args,
    messages: Messages,
    next: Option<u64>,
    first: Option<u64>,
    received: u64,
    bytes: u64,
}

impl Seen<'_> {
    fn take(&mut self, type_id: u32, tag: u64, payload: &[u8]) -> Result<(), Stop> {
        let seq = self.next.unwrap_or(tag & 0xFFFF_FFFF);
        self.messages.check(seq, type_id, tag, payload).map_err(|what| Stop::Bad(seq, what))?;
        self.first.get_or_insert(seq);
        self.next = Some(seq + 1);
        self.received += 1;
        self.bytes += payload.len() as u64;
        if self.args.progress {
            println!("at seq={seq}");
        }
        if self.args.work > 0 {
            thread::sleep(Duration::from_micros(self.args.work));
        }
        Ok(())
    }

    /// How many messages there are left to receive.
    fn left(&self) -> u64 {
        let by_count = self.args.count.map_or(u64::MAX, |count| count - self.received);
        let by_number = self.args.until.map_or(u64::MAX, |until| until.saturating_sub(self.next.unwrap_or(0)));
        by_count.min(by_number)
    }

    fn report(&self, name: &str, number: i32, elapsed_ms: u128) {
        let first = self.first.map_or(-1, |seq| seq as i64);
        let last = self.first.and(self.next).map_or(-1, |next| next as i64 - 1);
        println!(
            "end name={name} number={number} received={} first={first} last={last} bytes={} elapsed_ms={elapsed_ms}",
            self.received, self.bytes
        );
    }
}

/// Receives one message, or a batch of them, as `--how` says.
fn get(rx: &mut Receiver, seen: &mut Seen<'_>, buffer: &mut Vec<u8>) -> Result<Result<(), Stop>> {
    let args = seen.args;
    match args.how.unwrap_or(How::Recv) {
        How::Batch => {
            let max = args.batch.unwrap_or(32).min(seen.left()) as usize;
            let mut batch = match args.call_limit() {
                Some(limit) => rx.recv_batch_timeout(max, limit)?,
                None => rx.recv_batch(max)?,
            };
            Ok(batch.iter().try_for_each(|message| seen.take(message.type_id(), message.tag(), &message)))
        }
        How::Into => {
            let meta = match args.call_limit() {
                Some(limit) => rx.recv_into_timeout(buffer, limit)?,
                None => rx.recv_into(buffer)?,
            };
            Ok(seen.take(meta.type_id, meta.tag, buffer))
        }
        how => {
            let message = match args.call_limit() {
                _ if how == How::Try => rx.try_recv()?,
                Some(limit) => rx.recv_timeout(limit)?,
                None => rx.recv()?,
            };
            Ok(seen.take(message.type_id(), message.tag(), &message))
        }
    }
}

pub(crate) fn consume(args: &Args) -> Result<(), Stop> {
    let mut ends = open(args, None, args.ring.as_deref())?;
    let rx = ends.receiving()?;
    let messages = Messages::new(args.sizes, longest(rx.capacity()) as u64);
    let mut seen = Seen { args, messages, next: args.start, first: None, received: 0, bytes: 0 };
    let mut buffer = Vec::new();
    let (mut endings, mut last_ms) = (0, 0);
    while seen.left() > 0 {
        let call = Call::begin(rx.peer_epoch());
        let outcome = polling(args, || get(rx, &mut seen, &mut buffer));
        if seen.left() == 0 || outcome.is_err() {
            last_ms = call.elapsed_ms();
        }
        let mut kind = match outcome {
            Ok(checked) => {
                checked?;
                continue;
            }
            Err(cause) => cause.kind(),
        };
        endings += u64::from(is_ending(kind));
        if is_ending(kind) && endings < args.endings {
            seen.report(kind.name(), kind.code(), last_ms);
            match wait_for_successor(args, call.epoch, || rx.peer_epoch()) {
                Ok(()) => continue,
                Err(late) => kind = late,
            }
        }
        seen.report(kind.name(), kind.code(), last_ms);
        linger(args);
        ends.close();
        return Ok(());
    }
    seen.report("Count", 0, last_ms);
    linger(args);
    ends.close();
    Ok(())
}

pub(crate) fn die(args: &Args) -> Result<(), Stop> {
    let count = args.count.ok_or(Stop::Usage("--count is missing"))?;
    match args.role.ok_or(Stop::Usage("--role is missing"))? {
        Role::Producer => {
            let mut ends = open(args, args.ring.as_deref(), None)?;
            let tx = ends.sending()?;
            let messages = Messages::new(args.sizes, tx.max_message_len() as u64);
            let start = args.start.unwrap_or(0);
            for seq in start..start + count {
                let message = messages.make(seq);
                polling(args, || put(tx, args, &message, true))?;
            }
            let next = start + count;
            let Made { type_id, tag, payload } = messages.make(next);
            let half = payload.len() / 2;
            let mut slot = tx.reserve(payload.len())?.with_type_id(type_id).with_tag(tag);
            slot[..half].copy_from_slice(&payload[..half]);
            slot.commit_unflushed(half)?;
            println!("dying next={next}");
            // Here, because a sender that is dropped publishes what is committed.
            crash()
        }
        Role::Consumer => {
            let mut ends = open(args, None, args.ring.as_deref())?;
            let rx = ends.receiving()?;
            let messages = Messages::new(args.sizes, longest(rx.capacity()) as u64);
            let mut seen = Seen { args, messages, next: args.start, first: None, received: 0, bytes: 0 };
            for _ in 1..count {
                let message = rx.recv()?;
                seen.take(message.type_id(), message.tag(), &message)?;
            }
            let last = rx.recv()?;
            seen.take(last.type_id(), last.tag(), &last)?;
            println!("dying next={}", last.tag() & 0xFFFF_FFFF);
            crash()
        }
    }
}
