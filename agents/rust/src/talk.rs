//! `last`, `take`, `echo` and `ping`.

use std::time::{Duration, Instant};

use ramway::ring::log::Log;
use ramway::{ErrorKind, Message, Receiver, Result, Sender, Slot};

use crate::ends::Ends;
use crate::line::Line;
use crate::message::{Messages, Sizes};
use crate::topic::{Came, Kind};
use crate::{Stop, named, tensor};

pub(crate) fn receive<L: Log>(rx: &mut Receiver<L>, limit: Option<Duration>) -> Result<Message<'_, L>> {
    match limit {
        Some(limit) => rx.recv_timeout(limit),
        None => rx.recv(),
    }
}

fn reserve(tx: &mut Sender, limit: Option<Duration>, len: usize) -> Result<Slot<'_>> {
    match limit {
        Some(limit) => tx.reserve_timeout(len, limit),
        None => tx.reserve(len),
    }
}

pub(crate) fn last<L: Log>(tx: &mut Sender<L>, line: Line) -> std::result::Result<(), Stop> {
    line.end()?;
    match tx.last_tag() {
        Some(tag) => println!("last tag={tag}"),
        None => println!("last none"),
    }
    Ok(())
}

pub(crate) fn take<L: Kind>(rx: &mut Receiver<L>, mut line: Line) -> std::result::Result<(), Stop> {
    let (limits, as_tensor) = (line.limits()?, line.yes("tensor"));
    let never_waits = match line.text("how").as_deref() {
        None => false,
        Some("try") => true,
        Some(other) => return Err(Stop::Refused(format!("how={other}"))),
    };
    line.end()?;
    match if never_waits { rx.try_recv() } else { receive(rx, limits.whole) } {
        Err(cause) => {
            let lost = cause.lost().map_or(String::new(), |lost| format!(" lost={lost}"));
            println!("end {}{lost}", named(cause.kind()));
        }
        Ok(message) => match as_tensor.then(|| message.tensor()) {
            Some(Ok(tensor)) => tensor::say(&message, &tensor),
            Some(Err(cause)) if cause.kind() != ErrorKind::InvalidArgument => println!("end {}", named(cause.kind())),
            _ => {
                let Came { type_id, tag, stamp } = L::message(&message);
                let stamp = stamp.map_or(String::new(), |(seq, lost)| format!(" seq={seq} lost={lost}"));
                let (len, crc32) = (message.len(), crc32fast::hash(&message));
                println!("message type_id={type_id} tag={tag} len={len} crc32={crc32}{stamp}");
            }
        },
    }
    Ok(())
}

pub(crate) fn echo(ends: &mut Ends, mut line: Line) -> std::result::Result<(), Stop> {
    let limit = line.limits()?.whole;
    line.end()?;
    let (Some(tx), Some(rx)) = (&mut ends.sender, &mut ends.receiver) else {
        return Err(Stop::Refused("there is one direction only".to_owned()));
    };
    let (mut received, mut bytes, mut first, mut last) = (0u64, 0u64, -1, -1);
    let (kind, elapsed_ms) = loop {
        let began = Instant::now();
        let message = match receive(rx, limit) {
            Ok(message) => message,
            Err(cause) => break (cause.kind(), began.elapsed().as_millis()),
        };
        (received, bytes) = (received + 1, bytes + message.len() as u64);
        last = (message.tag() & 0xFFFF_FFFF) as i64;
        first = if received == 1 { last } else { first };
        let mut slot = reserve(tx, limit, message.len())?.with_type_id(message.type_id()).with_tag(message.tag());
        slot.copy_from_slice(&message);
        slot.commit(message.len())?;
    };
    let end = named(kind);
    println!("end {end} received={received} first={first} last={last} bytes={bytes} elapsed_ms={elapsed_ms}");
    Ok(())
}

pub(crate) fn ping(ends: &mut Ends, mut line: Line) -> std::result::Result<(), Stop> {
    let (count, sizes, limit) = (line.need("count")?, line.get("sizes", Sizes::Mixed)?, line.limits()?.whole);
    line.end()?;
    let (Some(tx), Some(rx)) = (&mut ends.sender, &mut ends.receiver) else {
        return Err(Stop::Refused("there is one direction only".to_owned()));
    };
    let messages = Messages::new(sizes, tx.max_message_len() as u64);
    for seq in 0..count {
        let made = messages.make(seq);
        let mut slot = reserve(tx, limit, made.payload.len())?.with_type_id(made.type_id).with_tag(made.tag);
        slot.copy_from_slice(made.payload);
        slot.commit(made.payload.len())?;
        let answer = receive(rx, limit)?;
        messages.check(seq, answer.type_id(), answer.tag(), &answer).map_err(|what| Stop::Bad(seq, what))?;
    }
    println!("answered count={count}");
    Ok(())
}
