//! The importing side: a listener of the same name here, as long as the other one is there.

use super::connection::Connection;
use super::exchange::Mail;
use super::{Common, Crowd};
use crate::counters;
use crate::log;
use crate::place::{self, Ledger};
use crate::stream::FORGET_AFTER;
use crate::wire::{self, About, Head, Offer, Terms};
use ramway::{Bus, ErrorKind, Listener, Place, Receiver, Sender, WaitPolicy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The longest wait for a connection, or for what is offered, before the other is looked at.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// A listener that could not be made is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How often the other bridge is asked to connect, at first and at last.
const ASK_FIRST: Duration = Duration::from_millis(250);
const ASK_LAST: Duration = Duration::from_secs(2);
/// After how long without a word a listener is not there that this bridge knows of.
const LOST_AFTER: Duration = Duration::from_secs(4);

/// A listener that is imported.
pub struct Mirror {
    common: Common,
    offers: mpsc::Receiver<Offer>,
    /// The last offer of the machine that it comes from, and when it was heard of.
    offer: Option<(Offer, Instant)>,
    listener: Option<(Terms, Listener)>,
    /// Of the listener: how many it has refused so far.
    refused: u64,
    failed: Option<Instant>,
    connections: Crowd,
    complaint: log::Once,
    is_connected: bool,
}

/// Why a connection was not made.
enum Unmade {
    /// The other side has refused it, with the number of an error.
    Refused(u32),
    /// The program here has gone.
    Gone,
    /// The bridge ends.
    Stopped,
    /// The link was down for too long.
    TooLate,
}

impl Mirror {
    /// `offers` has what other machines say of the name.
    #[must_use]
    pub fn new(common: Common, offers: mpsc::Receiver<Offer>) -> Self {
        Self {
            common,
            offers,
            offer: None,
            listener: None,
            refused: 0,
            failed: None,
            connections: Crowd::default(),
            complaint: log::Once::default(),
            is_connected: false,
        }
    }

    /// Listens while the other listener is there, until the bridge ends.
    pub fn run(mut self) {
        let counters = self.common.counters.clone();
        counters::add(&counters.streams, 1);
        while !self.common.is_to_end() {
            while let Ok(offer) = self.offers.try_recv() {
                self.on_offer(offer);
            }
            self.on_silence();
            if self.listener.is_some() {
                self.accept();
                continue;
            }
            match self.offers.recv_timeout(CHECK_INTERVAL) {
                Ok(offer) => self.on_offer(offer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.set_connected(false);
        counters::sub(&counters.streams, 1);
    }

    fn on_offer(&mut self, offer: Offer) {
        let now = Instant::now();
        match self.offer {
            Some((mine, heard)) if mine.near != offer.near && mine.listener != 0 && now - heard < FORGET_AFTER => {
                // Another machine that has none says so too.
                if offer.listener != 0 {
                    let text = format!(
                        "machine {:016x} exports it too, and it comes from {:016x}; give one of them a prefix of its own",
                        offer.near, mine.near
                    );
                    self.complain(&text);
                }
                return;
            }
            _ => self.offer = Some((offer, now)),
        }
        if offer.listener == 0 {
            self.listener = None;
            self.set_connected(false);
            return;
        }
        self.set_connected(true);
        let Common { link, base, kind, name, machine, .. } = &self.common;
        let head = Head { about: About::Want, from: *machine, connection: 0 };
        let key = wire::key(base, kind, name, &format!("to/{:016x}", offer.near));
        if let Err(e) = link.put(&key, wire::encode_note(&head, 0)) {
            return self.complain(&e.to_string());
        }
        let Some(terms) = offer.terms else { return };
        let is_as_offered = self.listener.as_ref().is_some_and(|(known, _)| *known == terms);
        let failed = self.failed.is_some_and(|failed| failed.elapsed() < RETRY_AFTER);
        if !is_as_offered && !failed {
            self.listen(offer.listener, terms);
        }
    }

    fn set_connected(&mut self, connected: bool) {
        if connected != self.is_connected {
            self.is_connected = connected;
            let counter = &self.common.counters.connected;
            if connected { counters::add(counter, 1) } else { counters::sub(counter, 1) }
        }
    }

    fn complain(&mut self, text: &str) {
        let Common { kind, name, .. } = &self.common;
        self.complaint.say(&format!("import of the {kind} '{name}': {text}"));
    }

    /// A link that is broken is not the end of the listener, but where the rule says so.
    fn on_silence(&mut self) {
        let Some((_, heard)) = self.offer else { return };
        if heard.elapsed() > LOST_AFTER {
            self.set_connected(false);
        }
        if self.common.on_disconnect().gives_up_after(heard.elapsed()) && self.listener.take().is_some() {
            counters::add(&self.common.counters.ejected, 1);
        }
    }

    /// A listener as the other one is.
    fn listen(&mut self, there: u64, terms: Terms) {
        // Before the new one is made, which has the same name.
        self.listener = None;
        self.refused = 0;
        match self.bind(there, &terms) {
            Ok(listener) => {
                self.complaint.forget();
                (self.listener, self.failed) = (Some((terms, listener)), None);
            }
            Err(text) => {
                self.failed = Some(Instant::now());
                self.complain(&text);
            }
        }
    }

    fn bind(&self, there: u64, terms: &Terms) -> Result<Listener, String> {
        let Common { kind, name, rule, .. } = &self.common;
        if self.common.is_rpc() != (terms.max_in_flight > 0) {
            return Err(format!("what is offered is not {kind}; nothing is made of it"));
        }
        let here = |there: u64| if there == 0 { 0 } else { rule.kind.capacity().unwrap_or(there) };
        let mut builder = Listener::builder(name)
            .capacities(here(terms.to_client), here(terms.from_client))
            .align(terms.align)
            .wait_policy(WaitPolicy::Block);
        if self.common.is_rpc() {
            builder = builder.rpc(terms.max_in_flight);
        }
        let listener = builder.bind_at_most(self.common.max_connections()).map_err(|e| e.to_string())?;
        // So that no bridge of this machine exports it.
        let noted = ramway::survey::inspect(name).map_err(|e| e.to_string()).and_then(|found| {
            let ledger = Ledger { stream: there, segment: place::identity(&found), delta: 0, epoch: 0 };
            ledger.write(kind, name).map_err(|e| format!("it cannot be noted that it is imported: {e}"))
        });
        noted.map(|()| listener)
    }

    fn accept(&mut self) {
        let Some((_, listener)) = &self.listener else { return };
        let accepted = listener.accept_timeout(CHECK_INTERVAL);
        let refused = listener.refused();
        counters::add(&self.common.counters.refused_connections, refused.saturating_sub(self.refused));
        self.refused = refused;
        match accepted {
            Ok(bus) => self.open(bus),
            Err(e) if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(e) => self.complain(&e.to_string()),
        }
    }

    /// A program of this machine has connected.
    fn open(&mut self, bus: Bus) {
        let Some((offer, _)) = self.offer else { return };
        let stop = Arc::new(AtomicBool::new(false));
        let (to, answers) = mpsc::channel();
        let Some((post, mail)) = self.common.exchange.register(place::random(), offer.near, Some(to), &stop) else {
            // A number that somebody else has, which the next one has not.
            return;
        };
        let common = self.common.clone();
        let (sender, receiver, held) = bus.split_counted();
        let flag = stop.clone();
        let carries = move |_: &AtomicBool| {
            let connection = Connection { common: &common, other: offer.near, stop, post };
            connect(connection, mail, &answers, sender, receiver, held);
        };
        if let Err(e) = self.connections.run(flag, carries) {
            self.complain(&format!("no thread for a connection: {e}"));
        }
    }
}

/// Asks the other bridge for a connection to the listener there, and carries it.
fn connect(
    connection: Connection<'_>,
    mail: Mail,
    answers: &mpsc::Receiver<u32>,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    // Goes when everything is over.
    _held: Place,
) {
    let common = connection.common;
    let why = match ask(&connection, answers, sender.as_ref(), receiver.as_ref()) {
        Ok(()) => return connection.carry(mail, sender, receiver),
        Err(why) => why,
    };
    if !matches!(why, Unmade::Refused(_)) {
        connection.say(About::Over, wire::OVER_FROM | wire::OVER_TO);
    }
    // Nothing of the program was sent to anybody, which a close tells it: of RPC, that no call was run.
    drop((sender, receiver));
    let Common { kind, name, .. } = common;
    let text = match why {
        Unmade::Gone | Unmade::Stopped => return,
        Unmade::TooLate => "the link is down".into(),
        Unmade::Refused(number) => match i32::try_from(number).ok().and_then(ErrorKind::from_code) {
            Some(kind) => format!("the listener there refused it: {kind}"),
            None => format!("the listener there refused it, with the error number {number}"),
        },
    };
    counters::add(&common.counters.refused_connections, 1);
    log::say(&format!("a connection of the {kind} '{name}' is closed: {text}"));
}

fn ask(
    connection: &Connection<'_>,
    answers: &mpsc::Receiver<u32>,
    sender: Option<&Sender>,
    receiver: Option<&Receiver>,
) -> Result<(), Unmade> {
    let begun = Instant::now();
    let (mut due, mut every) = (begun, ASK_FIRST);
    loop {
        // Relaxed: nothing is read by it but that it is time to end.
        if connection.stop.load(Ordering::Relaxed) {
            return Err(Unmade::Stopped);
        }
        if connection.common.on_disconnect().gives_up_after(begun.elapsed()) {
            return Err(Unmade::TooLate);
        }
        if Instant::now() >= due {
            connection.say(About::Open, 0);
            (due, every) = (Instant::now() + every, (every * 2).min(ASK_LAST));
        }
        match answers.recv_timeout(CHECK_INTERVAL) {
            Ok(0) => return Ok(()),
            Ok(number) => return Err(Unmade::Refused(number)),
            Err(_) => {}
        }
        // One that has sent something and gone is still to be heard. In this order: what it sent before it went is seen.
        let is_gone = match (receiver, sender) {
            (Some(receiver), _) => !receiver.is_peer_alive() && receiver.is_empty(),
            (None, Some(sender)) => !sender.is_peer_alive(),
            (None, None) => true,
        };
        if is_gone {
            return Err(Unmade::Gone);
        }
    }
}
