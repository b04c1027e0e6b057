//! What comes over the link for connections, and who gets it. What nobody is there for is answered: so the other bridge learns of a
//! connection, or of one of its streams, that there is nothing of it here.

use crate::far_end::Came;
use crate::link::{Arrived, Link};
use crate::lock::locked;
use crate::near_end::{Ear, Heard, Hearing, ear};
use crate::wire::{self, About, Head};
use ramway::{Bus, ErrorKind};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Instant;

/// Answers that may wait to be put on the link. One that is dropped is asked for again.
const ANSWERS: usize = 1024;

/// What somebody would have of a listener that is offered.
pub enum Asked {
    /// A machine imports it.
    Want,
    /// A program there has connected.
    Open {
        /// There.
        from: u64,
        /// The number that it has given the connection.
        connection: u64,
    },
    /// The first connection, by which it is known how the listener speaks, and which listener was meant.
    Probed(u64, ramway::Result<Bus>),
}

/// Which listener: base and kind of its keys, and its name.
type Offered = (String, &'static str, String);

/// See [this file](self).
pub struct Exchange {
    machine: u64,
    boxes: Mutex<HashMap<u64, Mailbox>>,
    offered: Mutex<HashMap<Offered, mpsc::Sender<Asked>>>,
    answers: mpsc::SyncSender<(String, Vec<u8>)>,
}

/// Of one connection.
struct Mailbox {
    other: u64,
    /// The local program, or listener, is connected.
    is_open: bool,
    /// Of the side that opens it: what the other one has answered.
    answer: Option<mpsc::Sender<u32>>,
    stop: Arc<AtomicBool>,
    /// Of the stream from here.
    near: Option<Ear>,
    /// Of the stream to here.
    far: Option<mpsc::Sender<Came>>,
}

/// A connection's place: nothing comes for it any more when this is dropped.
pub(super) struct Post {
    exchange: Arc<Exchange>,
    pub(super) connection: u64,
}

/// What comes for a connection's streams.
pub(super) struct Mail {
    pub(super) hearing: Hearing,
    pub(super) came: mpsc::Receiver<Came>,
}

impl Exchange {
    /// Nobody is there yet.
    #[must_use]
    pub fn new(link: Link, machine: u64) -> Arc<Self> {
        let (answers, to_answer) = mpsc::sync_channel::<(String, Vec<u8>)>(ANSWERS);
        // What calls for an answer is heard on a thread of the link, which must not wait for room on it. Ends with the exchange.
        thread::spawn(move || {
            while let Ok((key, bytes)) = to_answer.recv() {
                // It fails where the bridge ends, or is asked for again.
                let _ = link.put(&key, bytes);
            }
        });
        Arc::new(Self { machine, boxes: Mutex::default(), offered: Mutex::default(), answers })
    }

    /// What is asked of a listener goes to `to` from here on.
    pub(super) fn offer(&self, base: &str, kind: &'static str, name: &str, to: mpsc::Sender<Asked>) {
        locked(&self.offered).insert((base.to_owned(), kind, name.to_owned()), to);
    }

    /// Takes what comes for a connection with `other`. `None`: there is one of this number already.
    pub(super) fn register(
        self: &Arc<Self>,
        connection: u64,
        other: u64,
        answer: Option<mpsc::Sender<u32>>,
        stop: &Arc<AtomicBool>,
    ) -> Option<(Post, Mail)> {
        let mut boxes = locked(&self.boxes);
        if boxes.contains_key(&connection) {
            return None;
        }
        let (near, hearing) = ear();
        let (far, came) = mpsc::channel();
        let is_open = answer.is_some();
        let stop = stop.clone();
        boxes.insert(connection, Mailbox { other, is_open, answer, stop, near: Some(near), far: Some(far) });
        Some((Post { exchange: Arc::clone(self), connection }, Mail { hearing, came }))
    }

    /// What has arrived under the key of a listener and this machine. Must not block.
    pub fn on_message(&self, base: &str, kind: &'static str, arrived: &Arrived<'_>) {
        let Some(name) = wire::name_in(arrived.key, base, kind) else { return };
        let payload = arrived.payload();
        let Some(head) = payload.first::<{ wire::HEAD_LEN }>().and_then(|bytes| wire::decode_head(&bytes)) else {
            return;
        };
        // Of another process on this machine.
        if head.from == self.machine {
            return;
        }
        let answer = |about, number| {
            let key = wire::key(base, kind, name, &format!("to/{:016x}", head.from));
            let note = wire::encode_note(&Head { about, from: self.machine, connection: head.connection }, number);
            // What finds no room is asked for again.
            let _ = self.answers.try_send((key, note));
        };
        let ask = |asked| {
            let offered = locked(&self.offered);
            offered.get(&(base.to_owned(), kind, name.to_owned())).is_some_and(|to| to.send(asked).is_ok())
        };
        if head.about == About::Want {
            ask(Asked::Want);
            return;
        }
        let mut boxes = locked(&self.boxes);
        let mailbox = boxes.get_mut(&head.connection).filter(|mailbox| mailbox.other == head.from);
        let Some(mailbox) = mailbox else {
            match head.about {
                About::Open => {
                    if !ask(Asked::Open { from: head.from, connection: head.connection }) {
                        answer(About::Opened, ErrorKind::NotFound.code() as u32);
                    }
                }
                About::Hello | About::Data | About::Ack => answer(About::Over, wire::OVER_FROM | wire::OVER_TO),
                About::Want | About::Opened | About::Over => {}
            }
            return;
        };
        let number = || payload.first::<{ wire::NOTE_LEN }>().and_then(|bytes| wire::decode_note(&bytes));
        match head.about {
            About::Want => {}
            // The answer was lost.
            About::Open if mailbox.is_open => answer(About::Opened, 0),
            About::Open => {}
            About::Opened => {
                if let (Some(to), Some(number)) = (&mailbox.answer, number()) {
                    // It fails where the program has gone meanwhile, and then that is told.
                    let _ = to.send(number);
                }
            }
            About::Hello => {
                let hello = wire::decode_hello(&payload.bytes());
                match (hello, &mailbox.far) {
                    (Some(hello), Some(far)) if far.send(Came::Hello(hello)).is_ok() => {}
                    _ => answer(About::Over, wire::OVER_TO),
                }
            }
            About::Data => match &mailbox.far {
                Some(far) if far.send(Came::Data(payload, Instant::now())).is_ok() => {}
                _ => answer(About::Over, wire::OVER_TO),
            },
            About::Ack => match (wire::decode_ack(&payload.bytes()), &mailbox.near) {
                (Some(ack), Some(near)) => near.tell(Heard::Ack(ack)),
                _ => answer(About::Over, wire::OVER_FROM),
            },
            About::Over => {
                let streams = number().unwrap_or(0);
                if !mailbox.is_open {
                    // Relaxed: nothing is read by it but that it is time to end.
                    mailbox.stop.store(true, Ordering::Relaxed);
                }
                if let Some(far) = mailbox.far.as_ref().filter(|_| streams & wire::OVER_FROM != 0) {
                    // It fails where it is over here too.
                    let _ = far.send(Came::Over);
                }
                if let Some(near) = mailbox.near.as_ref().filter(|_| streams & wire::OVER_TO != 0) {
                    near.tell(Heard::Over);
                }
            }
        }
    }
}

impl Post {
    fn change(&self, change: impl FnOnce(&mut Mailbox)) {
        if let Some(mailbox) = locked(&self.exchange.boxes).get_mut(&self.connection) {
            change(mailbox);
        }
    }

    /// The local side is connected.
    pub(super) fn is_open(&self) {
        self.change(|mailbox| mailbox.is_open = true);
    }

    /// The stream from here is over.
    pub(super) fn near_is_over(&self) {
        self.change(|mailbox| mailbox.near = None);
    }

    /// The stream to here is over.
    pub(super) fn far_is_over(&self) {
        self.change(|mailbox| mailbox.far = None);
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        locked(&self.exchange.boxes).remove(&self.connection);
    }
}
