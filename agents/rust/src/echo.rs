//! `echo` and `ping`.

use std::time::Instant;

use ramway::{Message, Receiver, Result, Sender, Slot};

use crate::args::Args;
use crate::message::Messages;
use crate::place::open;
use crate::{Call, Stop};

fn receive<'a>(rx: &'a mut Receiver, args: &Args) -> Result<Message<'a>> {
    match args.limit() {
        Some(limit) => rx.recv_timeout(limit),
        None => rx.recv(),
    }
}

fn reserve<'a>(tx: &'a mut Sender, args: &Args, len: usize) -> Result<Slot<'a>> {
    match args.limit() {
        Some(limit) => tx.reserve_timeout(len, limit),
        None => tx.reserve(len),
    }
}

pub(crate) fn echo(args: &Args) -> Result<(), Stop> {
    let mut ends = open(args, args.back.as_deref(), args.ring.as_deref())?;
    ends.sending()?;
    let (Some(tx), Some(rx)) = (&mut ends.sender, &mut ends.receiver) else {
        return Err(Stop::Usage("--ring with --back, --listen or --connect"));
    };
    let (mut received, mut bytes, mut first, mut last) = (0u64, 0u64, -1, -1);
    let mut call = Call::begin(0);
    let (kind, elapsed_ms) = loop {
        // Without a limit it is being measured, and a look at the clock costs about as much as a message.
        if args.timeout > 0 {
            call = Call::begin(0);
        }
        let message = match receive(rx, args) {
            Ok(message) => message,
            Err(cause) => break (cause.kind(), call.elapsed_ms()),
        };
        (received, bytes) = (received + 1, bytes + message.len() as u64);
        last = (message.tag() & 0xFFFF_FFFF) as i64;
        first = if received == 1 { last } else { first };
        let mut slot = reserve(tx, args, message.len())?.with_type_id(message.type_id()).with_tag(message.tag());
        slot.copy_from_slice(&message);
        slot.commit(message.len())?;
    };
    println!(
        "end name={} number={} received={received} first={first} last={last} bytes={bytes} elapsed_ms={elapsed_ms}",
        kind.name(),
        kind.code()
    );
    ends.close();
    Ok(())
}

pub(crate) fn ping(args: &Args) -> Result<(), Stop> {
    let count = args.count.ok_or(Stop::Usage("--count is missing"))?;
    let mut ends = open(args, args.ring.as_deref(), args.back.as_deref())?;
    let max = ends.sending()?.max_message_len() as u64;
    let (Some(tx), Some(rx)) = (&mut ends.sender, &mut ends.receiver) else {
        return Err(Stop::Usage("--ring with --back, --listen or --connect"));
    };
    let messages = Messages::new(args.sizes, max);
    let mut timer = Timer::new(count, args.group);
    for seq in 0..count {
        let made = messages.make(seq);
        let mut slot = reserve(tx, args, made.payload.len())?.with_type_id(made.type_id).with_tag(made.tag);
        slot.copy_from_slice(made.payload);
        slot.commit(made.payload.len())?;
        let answer = receive(rx, args)?;
        messages.check(seq, answer.type_id(), answer.tag(), &answer).map_err(|what| Stop::Bad(seq, what))?;
        drop(answer);
        timer.trip(seq);
    }
    timer.report();
    ends.close();
    Ok(())
}

/// Times of groups of round trips, all but the first tenth.
pub(crate) struct Timer {
    count: u64,
    group: u64,
    last: Instant,
    /// Nanoseconds of one round trip, an average of each group.
    samples: Vec<f64>,
}

impl Timer {
    pub(crate) fn new(count: u64, group: u64) -> Self {
        let group = group.max(1);
        Self { count, group, last: Instant::now(), samples: Vec::with_capacity((count / group) as usize + 1) }
    }

    /// Round trip number `seq` is over.
    #[inline(always)]
    pub(crate) fn trip(&mut self, seq: u64) {
        if (seq + 1).is_multiple_of(self.group) {
            let now = Instant::now();
            if seq >= self.count / 10 {
                self.samples.push((now - self.last).as_nanos() as f64 / self.group as f64);
            }
            self.last = now;
        }
    }

    pub(crate) fn report(mut self) {
        self.samples.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| {
            let last = self.samples.len().saturating_sub(1);
            self.samples.get((last as f64 * part) as usize).copied().unwrap_or(0.0)
        };
        println!(
            "rtt count={} min_ns={:.1} p50_ns={:.1} p99_ns={:.1} max_ns={:.1}",
            self.count,
            at(0.0),
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
}
