//! One connection at work: a bus of this machine, and a stream each way to the bridge that has the other bus.

use super::Common;
use super::bus::BusSource;
use super::exchange::{Mail, Post};
use crate::config::Direction;
use crate::counters;
use crate::far_end::{Finish, Import, OpenSink};
use crate::local::Sink;
use crate::lock::locked;
use crate::log;
use crate::near_end::{Export, Over};
use crate::ring::RingSink;
use crate::stream::Ending;
use crate::wire::{self, About, Head};
use ramway::{ErrorKind, Receiver, Sender};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Which connection, and of which listener.
pub(super) struct Connection<'a> {
    pub(super) common: &'a Common,
    pub(super) other: u64,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) post: Post,
}

impl Connection<'_> {
    /// Says something about it to the other bridge. What is lost is asked for again.
    pub(super) fn say(&self, about: About, number: u32) {
        let Common { link, base, kind, name, machine, .. } = self.common;
        let head = Head { about, from: *machine, connection: self.post.connection };
        let key = wire::key(base, kind, name, &format!("to/{:016x}", self.other));
        if let Err(e) = link.put(&key, wire::encode_note(&head, number)) {
            log::say(&format!("a connection of the {kind} '{name}': {e}"));
        }
    }

    /// Carries it until it is over in both directions.
    pub(super) fn carry(self, mail: Mail, sender: Option<Sender>, receiver: Option<Receiver>) {
        let counters = &self.common.counters;
        counters::add(&counters.connections, 1);
        counters::add(&counters.connected_ever, 1);
        let Mail { hearing, came } = mail;
        let this = &self;
        thread::scope(|scope| {
            if let Some(receiver) = receiver {
                let reads = move || {
                    let over = this.export().run_hearing(BusSource::of(receiver, this.common.is_rpc()), hearing);
                    this.post.near_is_over();
                    if let Over::Failed(text) = &over {
                        this.failed(text);
                    }
                    if over != Over::Finished {
                        this.say(About::Over, wire::OVER_FROM);
                    }
                };
                if let Err(e) = thread::Builder::new().name("connection".into()).spawn_scoped(scope, reads) {
                    this.failed(&format!("no thread for it: {e}"));
                    // The receiver went with what was to run.
                    this.end();
                }
            } else {
                this.post.near_is_over();
            }
            if let Some(sender) = sender {
                let sink = Arc::new(Mutex::new(Some(RingSink::of_bus(sender, this.common.is_rpc()))));
                let finish = this.import(&sink).run(came);
                this.post.far_is_over();
                if let Some(unused) = locked(&sink).take() {
                    unused.leave(Ending::Dead);
                }
                match finish {
                    Finish::Ended(Ending::Closed) | Finish::Left => {}
                    // The program there is gone, so nobody receives either.
                    Finish::Ended(Ending::Dead) => this.end(),
                    Finish::Stopped | Finish::Lost => {
                        this.say(About::Over, wire::OVER_TO);
                        this.end();
                    }
                }
            } else {
                this.post.far_is_over();
            }
        });
        counters::sub(&self.common.counters.connections, 1);
    }

    /// Both directions are to end as if this process had been killed.
    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn failed(&self, text: &str) {
        let Common { kind, name, .. } = self.common;
        log::say(&format!("a connection of the {kind} '{name}': {text}"));
    }

    fn export(&self) -> Export {
        let Common { link, base, kind, name, machine, rule, counters, .. } = self.common;
        Export {
            link: link.clone(),
            base: base.clone(),
            kind,
            name: name.clone(),
            other: Some(self.other),
            machine: *machine,
            stream: self.post.connection,
            told: None,
            window: rule.window,
            chunk: rule.chunk,
            on_disconnect: self.common.on_disconnect(),
            counters: counters.clone(),
            stop: self.stop.clone(),
        }
    }

    fn import(&self, sink: &Arc<Mutex<Option<Box<dyn Sink>>>>) -> Import {
        let Common { link, base, kind, name, machine, run, rule, counters, .. } = self.common;
        let sink = Arc::clone(sink);
        let open: OpenSink = Box::new(move |_, _| locked(&sink).take().ok_or_else(|| ErrorKind::Closed.into()));
        Import {
            link: link.clone(),
            base: base.clone(),
            kind,
            name: name.clone(),
            of: Some((self.other, self.post.connection)),
            leaves_quietly: self.common.is_rpc() && rule.direction == Direction::Export,
            machine: *machine,
            run: *run,
            window: rule.window,
            on_disconnect: self.common.on_disconnect(),
            open,
            counters: counters.clone(),
            stop: self.stop.clone(),
        }
    }
}
