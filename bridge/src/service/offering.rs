//! The exporting side: says that a listener is here, and connects to it for others.
//!
//! How the listener speaks is learnt by the first connection to it, which is made when somebody imports it and is then the first one
//! that is asked for: a listener that takes a single connection is not spoilt.

use super::connection::Connection;
use super::exchange::Asked;
use super::{Common, Crowd};
use crate::config::{Direction, Kind};
use crate::counters;
use crate::log;
use crate::place;
use crate::wire::{self, About, Head, Offer, Terms};
use ramway::layout;
use ramway::{Bus, Connector, ErrorKind, WaitPolicy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often it is looked whether the listener is there.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often it is said that it is, while somebody imports it, and while nobody does.
const SAY_EVERY: Duration = Duration::from_secs(1);
const SAY_UNHEARD_EVERY: Duration = Duration::from_millis(250);
/// After how long without a word nobody imports it any more.
const UNHEARD_AFTER: Duration = Duration::from_secs(4);
/// How long a listener may take to accept.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A listener that is offered to others.
pub struct Offering {
    common: Common,
    ask: mpsc::Sender<Asked>,
    asked: mpsc::Receiver<Asked>,
    /// The listener; 0: it is gone.
    listener: u64,
    terms: Option<Terms>,
    /// The first connection, which nobody has asked for yet.
    spare: Option<Bus>,
    /// It does not speak what the rule is for.
    is_other: bool,
    heard: Option<Instant>,
    said: Option<(Offer, Instant)>,
    failed: Option<Instant>,
    /// At most one: the thread that makes the first connection.
    probe: Crowd,
    connections: Crowd,
    /// Connections that found no place, and since when.
    full: Vec<(u64, Instant)>,
    complaint: log::Once,
    is_connected: bool,
}

impl Offering {
    /// What is asked of it is heard from here on.
    #[must_use]
    pub fn new(common: Common) -> Self {
        let (ask, asked) = mpsc::channel();
        common.exchange.offer(&common.base, common.kind, &common.name, ask.clone());
        Self {
            common,
            ask,
            asked,
            listener: 0,
            terms: None,
            spare: None,
            is_other: false,
            heard: None,
            said: None,
            failed: None,
            probe: Crowd::default(),
            connections: Crowd::default(),
            full: Vec::new(),
            complaint: log::Once::default(),
            is_connected: false,
        }
    }

    /// Offers it until it is gone, with all connections to it, or the bridge ends.
    pub fn run(mut self) {
        let counters = self.common.counters.clone();
        counters::add(&counters.streams, 1);
        while !self.common.is_to_end() {
            self.look();
            self.announce();
            if self.listener == 0 && self.connections.len() == 0 {
                break;
            }
            match self.asked.recv_timeout(LOOK_EVERY) {
                Ok(asked) => self.on_asked(asked),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.listener = 0;
        self.announce();
        self.set_connected(false);
        if let Some(spare) = self.spare.take() {
            // Nobody has used it.
            drop(spare);
        }
        counters::sub(&counters.streams, 1);
    }

    /// Whether the listener is there, and which one it is.
    fn look(&mut self) {
        if self.spare.as_ref().is_some_and(|spare| !spare.is_peer_alive()) {
            self.spare = None;
        }
        let found = ramway::survey::inspect(&self.common.name).ok();
        let listens = found.filter(|found| found.kind == layout::Kind::Listener && found.producer_held);
        let now = listens.map_or(0, |found| place::identity(&found));
        // A listener that takes a single connection is gone after the first one, which the bridge holds in `spare`.
        if now == self.listener || (now == 0 && self.spare.is_some()) {
            return;
        }
        (self.listener, self.terms, self.spare) = (now, None, None);
        (self.is_other, self.failed) = (false, None);
        self.complaint.forget();
    }

    fn announce(&mut self) {
        let is_heard = self.heard.is_some_and(|heard| heard.elapsed() < UNHEARD_AFTER);
        self.set_connected(is_heard && self.listener != 0);
        let listener = if self.is_other { 0 } else { self.listener };
        let offer = Offer { near: self.common.machine, listener, terms: self.terms };
        let every = if is_heard { SAY_EVERY } else { SAY_UNHEARD_EVERY };
        if self.said.is_some_and(|(said, at)| said == offer && at.elapsed() < every) {
            return;
        }
        self.said = Some((offer, Instant::now()));
        let Common { link, base, kind, name, .. } = &self.common;
        if let Err(e) = link.put(&wire::key(base, kind, name, "offer"), wire::encode_offer(&offer)) {
            self.complaint.say(&format!("export of the {kind} '{name}': {e}"));
        }
    }

    fn set_connected(&mut self, connected: bool) {
        if connected != self.is_connected {
            self.is_connected = connected;
            let counter = &self.common.counters.connected;
            if connected { counters::add(counter, 1) } else { counters::sub(counter, 1) }
        }
    }

    fn on_asked(&mut self, asked: Asked) {
        match asked {
            Asked::Want => {
                self.heard = Some(Instant::now());
                self.learn();
            }
            Asked::Open { from, connection } => self.open(from, connection),
            Asked::Probed(listener, found) => self.learnt(listener, found),
        }
    }

    /// Begins to learn how it speaks, unless that is known or being learnt.
    fn learn(&mut self) {
        let failed = self.failed.is_some_and(|failed| failed.elapsed() < SAY_EVERY);
        if self.terms.is_some() || self.is_other || self.listener == 0 || failed || self.probe.len() > 0 {
            return;
        }
        let (to, listener, connector) = (self.ask.clone(), self.listener, connector(&self.common));
        let stop = Arc::new(AtomicBool::new(false));
        let probe = move |stop: &AtomicBool| {
            let found = connector.connect_while(|| !stop.load(Ordering::Relaxed));
            // It fails where the bridge ends.
            let _ = to.send(Asked::Probed(listener, found));
        };
        if let Err(e) = self.probe.run(stop, probe) {
            self.complain(&format!("no thread for it: {e}"));
        }
    }

    fn learnt(&mut self, listener: u64, found: ramway::Result<Bus>) {
        match found {
            // Of a listener that is gone already.
            Ok(_) | Err(_) if listener != self.listener => {}
            Ok(mut bus) => {
                let (mut align, mut to_client, mut from_client) = (0, 0, 0);
                if let Ok(sender) = bus.sender() {
                    (align, from_client) = (sender.align() as u32, sender.capacity() as u64);
                }
                if let Ok(receiver) = bus.receiver() {
                    (align, to_client) = (receiver.align() as u32, receiver.capacity() as u64);
                }
                self.terms = Some(Terms { max_in_flight: bus.max_in_flight(), align, to_client, from_client });
                self.spare = Some(bus);
                self.complaint.forget();
            }
            Err(e) if e.kind() == ErrorKind::AbiMismatch => {
                self.is_other = true;
                let Common { kind, rule, is_of_either, .. } = &self.common;
                if *is_of_either {
                    return;
                }
                let Kind::Bus { rpc, .. } = rule.kind else { return };
                let other = if rpc { "bus" } else { "rpc" };
                let text = format!("{e}; if it is a {other}, it needs a rule of kind \"{other}\", not \"{kind}\"");
                self.complain(&text);
            }
            Err(e) => {
                self.failed = Some(Instant::now());
                self.complain(&e.to_string());
            }
        }
    }

    fn complain(&mut self, text: &str) {
        let Common { kind, name, .. } = &self.common;
        self.complaint.say(&format!("{} of the {kind} '{name}': {text}", Direction::Export.word()));
    }

    /// Answers a machine that has asked for a connection that is not made.
    fn refuse(&self, other: u64, connection: u64, why: ErrorKind) {
        counters::add(&self.common.counters.refused_connections, 1);
        let Common { link, base, kind, name, machine, .. } = &self.common;
        let head = Head { about: About::Opened, from: *machine, connection };
        let key = wire::key(base, kind, name, &format!("to/{other:016x}"));
        // What is lost is asked for again.
        let _ = link.put(&key, wire::encode_note(&head, why.code() as u32));
    }

    /// Whether there was no place for this connection a while ago either.
    fn is_still_full(&mut self, number: u64) -> bool {
        self.full.retain(|(_, since)| since.elapsed() < CONNECT_TIMEOUT);
        match self.full.iter().position(|(asked, _)| *asked == number) {
            Some(at) if self.full[at].1.elapsed() > LOOK_EVERY => {
                self.full.swap_remove(at);
                true
            }
            Some(_) => false,
            None => {
                self.full.push((number, Instant::now()));
                false
            }
        }
    }

    /// Connects to it for a program on another machine.
    fn open(&mut self, other: u64, number: u64) {
        self.heard = Some(Instant::now());
        if self.listener == 0 && self.spare.is_none() {
            return self.refuse(other, number, ErrorKind::NotFound);
        }
        let most = self.common.max_connections();
        if self.connections.len() >= most {
            if !self.is_still_full(number) {
                // Asked again, it has found a place that became free meanwhile: the other bridge knows sooner of an end.
                return;
            }
            self.refuse(other, number, ErrorKind::Busy);
            return self.complain(&format!(
                "there are {most} connections, as many as the rule's max_connections; one more was refused"
            ));
        }
        let stop = Arc::new(AtomicBool::new(false));
        // One that is there already was asked for twice.
        let Some((post, mail)) = self.common.exchange.register(number, other, None, &stop) else { return };
        let spare = self.spare.take().filter(Bus::is_peer_alive);
        let common = self.common.clone();
        let begun = self.connections.run(stop.clone(), move |_| {
            let found = match spare {
                Some(bus) => Ok(bus),
                None => connector(&common).connect_while(|| !stop.load(Ordering::Relaxed)),
            };
            let connection = Connection { common: &common, other, stop, post };
            match found {
                Ok(bus) => {
                    connection.post.is_open();
                    connection.say(About::Opened, 0);
                    let (sender, receiver) = bus.split();
                    connection.carry(mail, sender, receiver);
                }
                Err(e) => {
                    counters::add(&common.counters.refused_connections, 1);
                    connection.say(About::Opened, e.kind().code() as u32);
                    log::say(&format!("a connection of the {} '{}' is refused: {e}", common.kind, common.name));
                }
            }
        });
        if let Err(e) = begun {
            self.refuse(other, number, ErrorKind::NoSpace);
            self.complain(&format!("no thread for a connection: {e}"));
        }
    }
}

/// How the bridge connects to the local listener.
fn connector(common: &Common) -> Connector {
    let connector = Bus::connector(&common.name).timeout(CONNECT_TIMEOUT).wait_policy(WaitPolicy::Block);
    if common.is_rpc() { connector.rpc() } else { connector }
}
