//! The bridge at work: what is exported is found in the Ramway directory, what is imported comes from the link.

use crate::config::{Config, Delivery, Direction, Kind, OnDisconnect, Rule, names};
use crate::counters::Counters;
use crate::far_end::{Came, Import, OpenSink};
use crate::link::{Arrived, Inlet, Link, LinkError};
use crate::local::Source;
use crate::lock::locked;
use crate::log;
use crate::lossy::{self, LossyExport, LossyImport};
use crate::near_end::{Export, Over};
use crate::place;
use crate::registry::{Label, Registry};
use crate::ring::{RingSink, RingSource};
use crate::service::{Common, Exchange, Mirror, Offering};
use crate::topic::{TopicSink, TopicSource};
use crate::wire::{self, Offer};
use ramway::ErrorKind;
use ramway::survey::Segment;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the Ramway directory is looked through for segments that are new.
const DISCOVERY_INTERVAL: Duration = Duration::from_millis(200);

/// A bridge that runs.
pub struct Bridge {
    shared: Arc<Shared>,
    looker: Option<JoinHandle<()>>,
    inlets: Vec<(Feed, Vec<Inlet>)>,
}

/// What all threads of a bridge share.
struct Shared {
    rules: Mutex<Arc<Vec<Rule>>>,
    /// What every key begins with.
    prefix: String,
    registry: Arc<Registry>,
    link: Link,
    exchange: Arc<Exchange>,
    machine: u64,
    run: u64,
    directory: PathBuf,
    /// No new streams.
    stop: AtomicBool,
    streams: Mutex<Vec<Stream>>,
}

/// A stream that runs.
struct Stream {
    label: Label,
    rule: Rule,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// What imports of one kind and prefix hear.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Feed {
    kind: &'static str,
    prefix: String,
    lossy: bool,
}

impl Bridge {
    /// Begins to carry what the rules say. `registry` gets the counts of each stream.
    ///
    /// # Errors
    /// If the link cannot be opened or the Ramway directory cannot be used.
    pub fn start(config: &Config, registry: Arc<Registry>) -> Result<Self, String> {
        let directory = ramway::survey::directory();
        std::fs::create_dir_all(&directory)
            .map_err(|e| format!("making the Ramway directory {}: {e}", directory.display()))?;
        let machine = place::machine()
            .map_err(|e| format!("writing the number of this machine into {}: {e}", directory.display()))?;
        let link = Link::open(&config.link).map_err(|e| e.to_string())?;
        let shared = Arc::new(Shared {
            rules: Mutex::default(),
            prefix: config.link.prefix.clone(),
            registry,
            exchange: Exchange::new(link.clone(), machine),
            link,
            machine,
            run: place::random(),
            directory,
            stop: AtomicBool::new(false),
            streams: Mutex::default(),
        });
        let mut bridge = Self { shared, looker: None, inlets: Vec::new() };
        bridge.apply(config.rules.clone())?;
        let shared = bridge.shared.clone();
        bridge.looker = Some(thread::spawn(move || {
            // Relaxed here and everywhere: nothing is read by it but that it is time to end.
            while !shared.stop.load(Ordering::Relaxed) {
                shared.look();
                thread::sleep(DISCOVERY_INTERVAL);
            }
        }));
        log::say(&format!("machine {machine:016x} is up"));
        Ok(bridge)
    }

    /// Other rules from here on. Streams whose rule is still there go on undisturbed.
    ///
    /// # Errors
    /// If the link is closed.
    pub fn apply(&mut self, rules: Vec<Rule>) -> Result<(), String> {
        *locked(&self.shared.rules) = Arc::new(rules.clone());
        let gone = |stream: &Stream| !rules.contains(&stream.rule);
        self.shared.end(gone);
        let mut feeds: Vec<Feed> = Vec::new();
        // Of connections either side hears the other.
        let hears = |rule: &&Rule| rule.direction == Direction::Import || is_listener(rule);
        for rule in rules.iter().filter(hears) {
            let feed = Feed { kind: rule.kind.word(), prefix: rule.prefix.clone(), lossy: is_lossy(rule) };
            if !feeds.contains(&feed) {
                feeds.push(feed);
            }
        }
        self.inlets.retain(|(feed, _)| feeds.contains(feed));
        for feed in feeds {
            if self.inlets.iter().all(|(known, _)| *known != feed) {
                let inlets = self.shared.hear(&feed).map_err(|e| e.to_string())?;
                self.inlets.push((feed, inlets));
            }
        }
        Ok(())
    }

    /// Ends once what is under way has arrived, or `limit` has passed. What has not arrived stays where it is, for the next bridge.
    pub fn drain(mut self, limit: Duration) {
        let end = Instant::now() + limit;
        let under_way = |(_, counters): &(Label, Arc<Counters>)| counters.in_flight.load(Ordering::Relaxed) > 0;
        while Instant::now() < end && self.shared.registry.all().iter().any(under_way) {
            thread::sleep(Duration::from_millis(10));
        }
        self.end();
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(looker) = self.looker.take() {
            // A thread that panicked has said so.
            let _ = looker.join();
            self.inlets.clear();
            self.shared.end(|_| true);
            self.shared.link.close();
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_listener(rule: &Rule) -> bool {
    matches!(rule.kind, Kind::Bus { .. })
}

fn is_lossy(rule: &Rule) -> bool {
    matches!(rule.kind, Kind::Newest { .. } | Kind::Topic { delivery: Delivery::Lossy { .. }, .. })
}

impl Shared {
    fn rules(&self) -> Arc<Vec<Rule>> {
        locked(&self.rules).clone()
    }

    /// Ends streams, and waits for their ends.
    fn end(&self, which: impl Fn(&Stream) -> bool) {
        let ending: Vec<Stream> = locked(&self.streams).extract_if(.., |stream| which(stream)).collect();
        for stream in &ending {
            stream.stop.store(true, Ordering::Relaxed);
        }
        for stream in ending {
            // A thread that panicked has said so.
            let _ = stream.thread.join();
        }
    }

    /// Runs a stream in a thread of its own, unless it runs already or the bridge ends. `made` is asked under the lock.
    fn begin<T>(
        &self,
        rule: &Rule,
        name: &str,
        made: impl FnOnce(Arc<Counters>, Arc<AtomicBool>) -> Option<(T, Box<dyn FnOnce() + Send>)>,
    ) -> Option<T> {
        let label = Label::new(name, rule);
        let mut streams = locked(&self.streams);
        streams.retain(|stream| !stream.thread.is_finished());
        if self.stop.load(Ordering::Relaxed) || streams.iter().any(|stream| stream.label == label) {
            return None;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (to, run) = made(self.registry.stream(label.clone()), stop.clone())?;
        let builder = thread::Builder::new().name(name.chars().take(15).collect());
        match builder.spawn(run) {
            Ok(thread) => {
                streams.push(Stream { label, rule: rule.clone(), stop, thread });
                Some(to)
            }
            Err(e) => {
                log::say(&format!("'{name}': no thread for it: {e}"));
                None
            }
        }
    }

    fn is_running(&self, rule: &Rule, name: &str) -> bool {
        let label = Label::new(name, rule);
        locked(&self.streams).iter().any(|stream| stream.label == label && !stream.thread.is_finished())
    }

    /// Begins with what is exported and not carried yet.
    fn look(&self) {
        let rules = self.rules();
        if rules.iter().all(|rule| rule.direction != Direction::Export) {
            return;
        }
        let found = match ramway::survey::ls(&self.directory) {
            Ok(found) => found,
            Err(e) => return log::say(&e.to_string()),
        };
        for listed in found {
            let (Ok(name), Ok(segment)) = (listed.name.into_string(), listed.segment) else { continue };
            let Ok(exports) = names::exports(&rules, &name, segment.kind) else { continue };
            // Of a listener nothing is left that anybody waits for.
            if segment.kind == ramway::layout::Kind::Listener && !segment.producer_held {
                continue;
            }
            for rule in exports {
                let imported = place::is_imported(rule.kind.word(), &name, &segment);
                if !imported && !self.is_running(rule, &name) {
                    self.export(rule, &name);
                }
            }
        }
    }

    fn export(&self, rule: &Rule, name: &str) {
        let kind = rule.kind.word();
        let say = |e: &dyn std::fmt::Display| log::say(&format!("export of the {kind} '{name}': {e}"));
        let usual = |e: &ramway::Error| matches!(e.kind(), ErrorKind::Busy | ErrorKind::NotFound);
        let base = wire::base(&self.prefix, &rule.prefix);
        if is_listener(rule) {
            self.begin(rule, name, |counters, stop| {
                let offering = Offering::new(self.common(rule, &base, name, counters, stop));
                Some(((), Box::new(move || offering.run())))
            });
            return;
        }
        if is_lossy(rule) {
            let newest = matches!(rule.kind, Kind::Newest { .. });
            let every = match &rule.kind {
                Kind::Newest { every, .. } => Some(*every),
                Kind::Topic { delivery: Delivery::Lossy { every }, .. } => *every,
                _ => None,
            };
            let subscriber = match LossyExport::open(name, newest) {
                Ok(subscriber) => subscriber,
                // Its places are taken, or it is gone again.
                Err(e) if usual(&e) => return,
                Err(e) => return say(&e),
            };
            // Now that it is held, it is surely this one.
            let Ok(segment) = ramway::survey::inspect(name) else { return };
            // A publisher that has closed, and nothing that was not read: it is begun again when there is one.
            if !segment.producer_held {
                return;
            }
            self.begin(rule, name, |counters, stop| {
                let export = LossyExport {
                    link: self.link.clone(),
                    key: wire::key(&base, kind, name, "live"),
                    name: name.to_owned(),
                    machine: self.machine,
                    stream: place::identity(&segment),
                    newest,
                    every: every.filter(|every| !every.is_zero()),
                    counters,
                    stop,
                };
                let run = move || {
                    if let Err(text) = export.run(subscriber) {
                        log::say(&format!("export of the {kind} '{}': {text}", export.name));
                    }
                };
                Some(((), Box::new(run)))
            });
            return;
        }
        let open = opener(rule, name);
        let source = match open() {
            Ok(source) => source,
            // Somebody here receives, or it is gone again.
            Err(e) if usual(&e) => return,
            Err(e) => return say(&e),
        };
        let Ok(segment) = ramway::survey::inspect(name) else { return };
        let stream = place::identity(&segment);
        let told = closed(&segment, rule);
        if told.is_some_and(|epoch| place::is_finished(kind, name, stream, epoch)) {
            return source.leave(crate::stream::Ending::Closed, false);
        }
        self.begin(rule, name, |counters, stop| {
            let export = Export {
                link: self.link.clone(),
                base,
                kind,
                name: name.to_owned(),
                other: None,
                machine: self.machine,
                stream,
                told,
                window: rule.window,
                chunk: rule.chunk,
                on_disconnect: rule.kind.on_disconnect().unwrap_or(OnDisconnect::Block),
                counters,
                stop,
            };
            Some(((), Box::new(move || carry(&export, source, &open))))
        });
    }

    /// Begins to hear what imports are about.
    fn hear(self: &Arc<Self>, feed: &Feed) -> Result<Vec<Inlet>, LinkError> {
        let base = wire::base(&self.prefix, &feed.prefix);
        let kind = feed.kind;
        if matches!(kind, "bus" | "rpc") {
            return self.hear_of_listeners(feed, base);
        }
        if feed.lossy {
            let queues: Mutex<HashMap<String, mpsc::SyncSender<lossy::Message>>> = Mutex::default();
            let (shared, feed, of_key) = (self.clone(), feed.clone(), base.clone());
            let live = move |arrived: Arrived<'_>| {
                let Some(name) = wire::name_in(arrived.key, &of_key, kind) else { return };
                let attachment = arrived.attachment();
                let near = attachment.as_deref().and_then(wire::decode_stamp).map_or(0, |stamp| stamp.near);
                if near == shared.machine {
                    return;
                }
                let rules = shared.rules();
                let Ok(rule) = names::import(&rules, name, kind, &feed.prefix) else { return };
                if !is_lossy(rule) {
                    return;
                }
                let mut queues = locked(&queues);
                let message = (arrived.payload(), attachment);
                let message = match queues.get(name) {
                    None => message,
                    Some(queue) => match queue.try_send(message) {
                        Err(mpsc::TrySendError::Disconnected(message)) => message,
                        // What the thread cannot keep up with is lost: it sees so by the numbers.
                        _ => return,
                    },
                };
                if let Some(queue) = shared.import_lossy(rule, name) {
                    // It was made just now, and is empty.
                    let _ = queue.try_send(message);
                    queues.insert(name.to_owned(), queue);
                }
            };
            return Ok(vec![self.link.inlet(wire::key(&base, kind, "*", "live"), live)?]);
        }
        let queues: Arc<Mutex<HashMap<String, mpsc::Sender<Came>>>> = Arc::default();
        let hellos = {
            let (shared, feed, base, queues) = (self.clone(), feed.clone(), base.clone(), queues.clone());
            move |arrived: Arrived<'_>| {
                let Some(name) = wire::name_in(arrived.key, &base, kind) else { return };
                let Some(hello) = wire::decode_hello(&arrived.payload().bytes()) else { return };
                // Of another process on this machine.
                if hello.near == shared.machine {
                    return;
                }
                let rules = shared.rules();
                let Ok(rule) = names::import(&rules, name, kind, &feed.prefix) else { return };
                if is_lossy(rule) {
                    return;
                }
                let mut queues = locked(&queues);
                if queues.get(name).is_some_and(|queue| queue.send(Came::Hello(hello)).is_ok()) {
                    return;
                }
                if let Some(queue) = shared.import(rule, &base, name) {
                    // It was made just now.
                    let _ = queue.send(Came::Hello(hello));
                    queues.insert(name.to_owned(), queue);
                }
            }
        };
        let data = {
            let base = base.clone();
            move |arrived: Arrived<'_>| {
                let Some(name) = wire::name_in(arrived.key, &base, kind) else { return };
                if let Some(queue) = locked(&queues).get(name) {
                    // It fails only where the thread is over; the near end asks again.
                    let _ = queue.send(Came::Data(arrived.payload(), Instant::now()));
                }
            }
        };
        Ok(vec![
            self.link.inlet(wire::key(&base, kind, "*", "hello"), hellos)?,
            self.link.inlet(wire::key(&base, kind, "*", &format!("to/{:016x}", self.machine)), data)?,
        ])
    }

    /// Begins to hear what is offered of listeners, and what comes for connections to either side's.
    fn hear_of_listeners(self: &Arc<Self>, feed: &Feed, base: String) -> Result<Vec<Inlet>, LinkError> {
        let kind = feed.kind;
        let queues: Mutex<HashMap<String, mpsc::Sender<Offer>>> = Mutex::default();
        let (shared, of_feed, of_key) = (self.clone(), feed.clone(), base.clone());
        let offers = move |arrived: Arrived<'_>| {
            let Some(name) = wire::name_in(arrived.key, &of_key, kind) else { return };
            let Some(offer) = wire::decode_offer(&arrived.payload().bytes()) else { return };
            // Of another process on this machine.
            if offer.near == shared.machine {
                return;
            }
            let rules = shared.rules();
            let Ok(rule) = names::import(&rules, name, kind, &of_feed.prefix) else { return };
            let mut queues = locked(&queues);
            if queues.get(name).is_some_and(|queue| queue.send(offer).is_ok()) {
                return;
            }
            let made = shared.begin(rule, name, |counters, stop| {
                let (to, came) = mpsc::channel();
                let mirror = Mirror::new(shared.common(rule, &of_key, name, counters, stop), came);
                Some((to, Box::new(move || mirror.run()) as Box<dyn FnOnce() + Send>))
            });
            if let Some(queue) = made {
                // It was made just now.
                let _ = queue.send(offer);
                queues.insert(name.to_owned(), queue);
            }
        };
        let (exchange, of_key) = (self.exchange.clone(), base.clone());
        let messages = move |arrived: Arrived<'_>| exchange.on_message(&of_key, kind, &arrived);
        Ok(vec![
            self.link.inlet(wire::key(&base, kind, "*", "offer"), offers)?,
            self.link.inlet(wire::key(&base, kind, "*", &format!("to/{:016x}", self.machine)), messages)?,
        ])
    }

    fn common(&self, rule: &Rule, base: &str, name: &str, counters: Arc<Counters>, stop: Arc<AtomicBool>) -> Common {
        let is_other = |other: &Rule| {
            is_listener(other) && other.direction == rule.direction && other.kind.word() != rule.kind.word()
        };
        Common {
            is_of_either: self.rules().iter().any(|other| is_other(other) && other.covers(name)),
            link: self.link.clone(),
            exchange: self.exchange.clone(),
            base: base.to_owned(),
            kind: rule.kind.word(),
            name: name.to_owned(),
            machine: self.machine,
            run: self.run,
            rule: rule.clone(),
            counters,
            stop,
        }
    }

    /// Begins with one name that is imported.
    fn import(&self, rule: &Rule, base: &str, name: &str) -> Option<mpsc::Sender<Came>> {
        self.begin(rule, name, |counters, stop| {
            let (to, came) = mpsc::channel();
            let capacity = rule.kind.capacity();
            let of_thread = name.to_owned();
            let open: OpenSink = match rule.kind {
                Kind::Topic { .. } => {
                    Box::new(move |_, there| TopicSink::open(&of_thread, Some(capacity.unwrap_or(there))))
                }
                _ => Box::new(move |align, there| RingSink::open(&of_thread, capacity.unwrap_or(there), align)),
            };
            let import = Import {
                link: self.link.clone(),
                base: base.to_owned(),
                kind: rule.kind.word(),
                name: name.to_owned(),
                of: None,
                leaves_quietly: false,
                machine: self.machine,
                run: self.run,
                window: rule.window,
                on_disconnect: rule.kind.on_disconnect().unwrap_or(OnDisconnect::Block),
                open,
                counters,
                stop,
            };
            let run = move || {
                // Of a segment it ends with the bridge only.
                import.run(came);
            };
            Some((to, Box::new(run)))
        })
    }

    fn import_lossy(&self, rule: &Rule, name: &str) -> Option<mpsc::SyncSender<lossy::Message>> {
        self.begin(rule, name, |counters, stop| {
            let (to, came) = mpsc::sync_channel(lossy::QUEUE);
            let import = LossyImport {
                name: name.to_owned(),
                capacity: rule.kind.capacity(),
                newest: matches!(rule.kind, Kind::Newest { .. }),
                counters,
                stop,
            };
            Some((to, Box::new(move || import.run(&came))))
        })
    }
}

/// What takes the local role of a reliable export.
fn opener(rule: &Rule, name: &str) -> Box<dyn Fn() -> ramway::Result<Box<dyn Source>> + Send> {
    let name = name.to_owned();
    match &rule.kind {
        Kind::Topic { delivery: Delivery::Reliable { label, .. }, .. } => {
            let label = label.clone();
            Box::new(move || TopicSource::open(&name, &label))
        }
        _ => Box::new(move || RingSource::open(&name)),
    }
}

/// The sender's epoch, if it has closed and an earlier bridge was told so: it may have been killed before it passed that on.
fn closed(segment: &Segment, rule: &Rule) -> Option<u32> {
    let (sender, close_seen, all_read) = match (&segment.rings[0], &segment.topic) {
        (Some(ring), _) => (ring.producer, ring.consumer.close_seen, ring.head == ring.tail),
        (_, Some(topic)) => {
            let Kind::Topic { delivery: Delivery::Reliable { label, .. }, .. } = &rule.kind else { return None };
            let own = topic.subscribers.iter().find(|slot| slot.label.as_ref() == Some(label))?;
            (topic.publisher, own.close_seen, own.cursor == topic.tail)
        }
        _ => return None,
    };
    let has_closed = sender.epoch != 0 && sender.flags & ramway::layout::ROLE_CLOSED != 0 && close_seen == sender.epoch;
    (has_closed && all_read && !segment.producer_held).then_some(sender.epoch)
}

/// Carries one segment until it is gone or the bridge ends.
fn carry(export: &Export, mut source: Box<dyn Source>, open: &dyn Fn() -> ramway::Result<Box<dyn Source>>) {
    let say = |text: &str| log::say(&format!("export of the {} '{}': {text}", export.kind, export.name));
    loop {
        match export.run(source) {
            Over::Stopped | Over::Finished => return,
            Over::Failed(text) => {
                say(&text);
                // Whatever it was, it is not tried again at once.
                thread::sleep(Duration::from_secs(1));
                return;
            }
            Over::LetGo(_) => match export.wait_for_far() {
                Ok(true) => {}
                Ok(false) => return,
                Err(e) => return say(&e.to_string()),
            },
        }
        source = match open() {
            Ok(source) => source,
            // It is found again when there is something to be found.
            Err(_) => return,
        };
        if ramway::survey::inspect(&export.name).map_or(0, |segment| place::identity(&segment)) != export.stream {
            return;
        }
    }
}
