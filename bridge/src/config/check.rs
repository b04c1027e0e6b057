//! From the raw text to a [`Config`]: every rule of what may be said together has its home here.

use std::path::PathBuf;
use std::time::Duration;

use ramway_cli::units::{parse_duration, parse_size};

use super::glob::Glob;
use super::problem::{Place, Problem};
use super::raw::{self, Maybe, Quantity, Spanned};
use crate::stream::SILENCE;

use super::{Config, Delivery, Direction, Kind, Line, Link, Mode, OnDisconnect, Rule, Session, Tls};

/// What every key begins with, unless the file says otherwise.
const PREFIX: &str = "ramway";
/// Bytes of one stream that may be under way, unless the rule says otherwise.
pub const WINDOW: u64 = 8 << 20;
/// Bytes of a piece, unless the rule says otherwise: with all headers it is one batch of the link (65,535 bytes), which a longer one
/// would be cut into and put together from again, with a copy at either end.
pub const CHUNK: u64 = 63 << 10;
/// The shortest piece: below it the header of each is a good part of it.
const LEAST_CHUNK: u64 = 1 << 10;
/// The longest piece. Zenoh sends a piece as one message, and other streams wait behind it.
const MOST_CHUNK: u64 = 16 << 20;
/// The largest window: both bridges may have to hold as much for each stream.
const MOST_WINDOW: u64 = 1 << 30;
/// Connections of one name at a time, unless the rule says otherwise.
pub const CONNECTIONS: usize = 64;
/// The most connections: each has two threads in either bridge.
const MOST_CONNECTIONS: usize = 4096;
/// A label's bytes, as in the format.
const LABEL: usize = 64;

/// Where the text comes from, for the places of problems and for what options are called.
pub(super) struct Source<'a> {
    text: Option<&'a str>,
    /// What relative paths are relative to.
    base: PathBuf,
}

impl<'a> Source<'a> {
    pub(super) fn file(text: &'a str, base: PathBuf) -> Self {
        Self { text: Some(text), base }
    }

    pub(super) fn flags() -> Self {
        Self { text: None, base: PathBuf::new() }
    }

    fn place<T>(&self, value: &Spanned<T>) -> Place {
        self.text.map_or(Place::Flags, |text| Place::Line(raw::line(text, &value.span())))
    }

    /// What an option is called: `on_disconnect` in a file, `--on-disconnect` on the command line.
    fn option(&self, name: &str) -> String {
        if self.text.is_some() { format!("`{name}`") } else { format!("--{}", name.replace('_', "-")) }
    }

    /// How an option and its value are written.
    fn written(&self, name: &str, value: &str) -> String {
        if self.text.is_some() {
            format!("`{name} = \"{value}\"`")
        } else {
            format!("--{} {value}", name.replace('_', "-"))
        }
    }
}

/// Reads one configuration, collecting what is wrong with it.
struct Reader<'a> {
    source: &'a Source<'a>,
    problems: Vec<Problem>,
}

/// All of it, or everything that is wrong.
pub(super) fn config(file: raw::File, source: &Source<'_>) -> Result<Config, Vec<Problem>> {
    let mut reader = Reader { source, problems: Vec::new() };
    let link = reader.link(file.link);
    let metrics = file.metrics.and_then(|metrics| reader.metrics(metrics));
    let given = file.rule.len();
    let rules: Vec<Rule> = file.rule.into_iter().filter_map(|rule| reader.rule(rule)).collect();
    if given == 0 {
        let text = "there is no [[rule]], so nothing would be bridged: what no rule names stays on this machine";
        reader.problems.push(Problem { place: Place::Whole, text: text.into() });
    }
    reader.together(&rules);
    match link {
        Some(link) if reader.problems.is_empty() => Ok(Config { link, metrics, rules }),
        _ => Err(reader.problems),
    }
}

impl Reader<'_> {
    fn wrong<T>(&mut self, at: &Spanned<T>, text: impl Into<String>) {
        self.problems.push(Problem { place: self.source.place(at), text: text.into() });
    }

    fn metrics(&mut self, metrics: Spanned<raw::Metrics>) -> Option<std::net::SocketAddr> {
        let Some(listen) = &metrics.get_ref().listen else {
            self.wrong(
                &metrics,
                "[metrics] has no `listen`; expected an address and a port, such as \"127.0.0.1:9464\"",
            );
            return None;
        };
        let parsed = listen.get_ref().parse();
        if parsed.is_err() {
            let text = format!(
                "{} is \"{}\", which is not an address and a port; expected one such as \"127.0.0.1:9464\"",
                self.source.option("listen"),
                listen.get_ref()
            );
            self.wrong(listen, text);
        }
        parsed.ok()
    }

    fn link(&mut self, link: Maybe<raw::Link>) -> Option<Link> {
        let Some(link) = link else {
            let text =
                "there is no [link]: it says how the other bridge is reached, such as connect = [\"tls/far:7447\"]";
            self.problems.push(Problem { place: Place::Whole, text: text.into() });
            return None;
        };
        let whole = bare_at(&link);
        let link = link.into_inner();
        let prefix = match &link.prefix {
            Some(prefix) if self.key("prefix", prefix, false) => prefix.get_ref().clone(),
            Some(_) => return None,
            None => PREFIX.to_owned(),
        };
        if let Some(zenoh) = &link.zenoh {
            let others = [
                ("mode", link.mode.as_ref().map(bare_at)),
                ("listen", link.listen.as_ref().map(bare_at)),
                ("connect", link.connect.as_ref().map(bare_at)),
                ("discovery", link.discovery.as_ref().map(bare_at)),
                ("tls", link.tls.as_ref().map(bare_at)),
            ];
            for (name, other) in others {
                if let Some(other) = other {
                    let text = format!(
                        "{} is given beside {}, whose file has all of the session's settings; remove one of the two",
                        self.source.option(name),
                        self.source.option("zenoh")
                    );
                    self.wrong(&other, text);
                }
            }
            let path = self.file("zenoh", zenoh);
            return path.map(|path| Link { prefix, session: Session::File(path) });
        }
        let mode = match &link.mode {
            None => Some(Mode::Peer),
            Some(mode) => match mode.get_ref().as_str() {
                "peer" => Some(Mode::Peer),
                "client" => Some(Mode::Client),
                other => {
                    let text = format!(
                        "the mode \"{other}\" is unknown; expected \"peer\" or \"client\" (a router is Zenoh's own program zenohd)"
                    );
                    self.wrong(mode, text);
                    None
                }
            },
        };
        let (listen, connect) = (self.endpoints("listen", link.listen), self.endpoints("connect", link.connect));
        let (listen, connect) = (listen?, connect?);
        let discovery = link.discovery.is_some_and(Spanned::into_inner);
        if mode == Some(Mode::Client) && connect.is_empty() {
            let text = format!("a client needs an endpoint to go to; add {}", self.source.option("connect"));
            self.wrong(&whole, text);
        }
        if mode == Some(Mode::Client) && !listen.is_empty() {
            let text = format!(
                "a client does not listen; remove {}, or use {}",
                self.source.option("listen"),
                self.source.written("mode", "peer")
            );
            self.wrong(&whole, text);
        }
        if mode == Some(Mode::Peer) && listen.is_empty() && connect.is_empty() && !discovery {
            let text = format!(
                "no other bridge can be reached; add {} or {}, or {} to look for peers by multicast",
                self.source.option("listen"),
                self.source.option("connect"),
                self.source.option("discovery")
            );
            self.wrong(&whole, text);
        }
        let secure = listen.iter().chain(&connect).any(|end| {
            // What `[link.tls]` is for.
            end.starts_with("tls/") || end.starts_with("quic/")
        });
        let tls = match link.tls {
            Some(tls) => Some(self.tls(tls)?),
            None => None,
        };
        if secure && tls.is_none() {
            let text = format!(
                "an endpoint is tls or quic, and there are no certificates; add {}",
                if self.source.text.is_some() {
                    "[link.tls] with ca, certificate and key"
                } else {
                    "--ca, --certificate and --key"
                }
            );
            self.wrong(&whole, text);
        }
        if !secure && tls.is_some() {
            let text = "certificates are given, and no endpoint is tls or quic, so that nothing would be encrypted; write \
                        the endpoints as tls/HOST:PORT or quic/HOST:PORT, or remove the certificates";
            self.wrong(&whole, text);
        }
        Some(Link { prefix, session: Session::Here { mode: mode?, listen, connect, discovery, tls } })
    }

    fn tls(&mut self, tls: Spanned<raw::Tls>) -> Option<Tls> {
        let whole = bare_at(&tls);
        let tls = tls.into_inner();
        let mut file = |name, value: &Maybe<String>| match value {
            Some(value) => self.file(name, value),
            None => {
                let text = format!("the certificates lack {}, a file of PEM", self.source.option(name));
                self.wrong(&whole, text);
                None
            }
        };
        let (ca, certificate, key) =
            (file("ca", &tls.ca), file("certificate", &tls.certificate), file("key", &tls.key));
        let mutual = tls.mutual.is_none_or(Spanned::into_inner);
        Some(Tls { ca: ca?, certificate: certificate?, key: key?, mutual })
    }

    /// A file that is there.
    fn file(&mut self, name: &str, value: &Spanned<String>) -> Option<PathBuf> {
        let path = self.source.base.join(value.get_ref());
        // Opened, because a key that this user may not read is found at the first connection otherwise.
        match std::fs::File::open(&path).and_then(|file| file.metadata()) {
            Ok(found) if found.is_file() => Some(path),
            Ok(_) => {
                self.wrong(value, format!("{} is {}, which is not a file", self.source.option(name), path.display()));
                None
            }
            Err(error) => {
                let text = format!("{}: {} cannot be read: {error}", self.source.option(name), path.display());
                self.wrong(value, text);
                None
            }
        }
    }

    /// `None` if one of them is wrong, so that nothing is said of what is missing.
    fn endpoints(&mut self, name: &str, list: Maybe<Vec<Spanned<String>>>) -> Option<Vec<String>> {
        const PROTOCOLS: [&str; 4] = ["tcp", "tls", "quic", "unixsock-stream"];
        let (mut endpoints, before) = (Vec::new(), self.problems.len());
        for end in list.map(Spanned::into_inner).unwrap_or_default() {
            let text = end.get_ref();
            let (protocol, address) = text.split_once('/').unwrap_or((text, ""));
            if PROTOCOLS.contains(&protocol) && !address.is_empty() {
                endpoints.push(end.into_inner());
                continue;
            }
            let said = format!(
                "{}: \"{text}\" is not an endpoint; expected one of {}, then / and an address, such as tls/192.168.1.7:7447",
                self.source.option(name),
                PROTOCOLS.join(", ")
            );
            self.wrong(&end, said);
        }
        (self.problems.len() == before).then_some(endpoints)
    }

    /// A part of a key: words with `/` between them, without what Zenoh gives a meaning.
    fn key(&mut self, name: &str, key: &Spanned<String>, may_be_empty: bool) -> bool {
        let text = key.get_ref();
        let well = (may_be_empty && text.is_empty())
            || text.split('/').all(|word| {
                !word.is_empty()
                    && !word.starts_with('@')
                    && !word.contains(['*', '$', '?', '#'])
                    && !word.contains(char::is_control)
            });
        if !well {
            let said = format!(
                "{} is \"{text}\"; expected words with / between them, without *, $, ?, # and without @ at the beginning of one, \
                 such as \"ramway/hall-2\"",
                self.source.option(name)
            );
            self.wrong(key, said);
        }
        well
    }

    fn rule(&mut self, rule: Spanned<raw::Rule>) -> Option<Rule> {
        let before = self.problems.len();
        let whole = bare_at(&rule);
        let line = Line(self.source.text.map(|text| raw::line(text, &whole.span())));
        let mut rule = rule.into_inner();
        let names = match rule.names.take() {
            Some(names) if !names.get_ref().is_empty() => self.globs("names", names.into_inner()),
            _ => {
                self.wrong(&whole, "the rule has no `names`; expected patterns such as [\"camera\", \"lidar.*\"]");
                Vec::new()
            }
        };
        let except = rule.except.take().map_or(Vec::new(), |except| self.globs("except", except.into_inner()));
        let direction = self.direction(&rule, &whole);
        let kind = direction.and_then(|direction| self.kind(&mut rule, direction, &whole));
        let prefix = match &rule.prefix {
            Some(prefix) => {
                self.key("prefix", prefix, true);
                prefix.get_ref().clone()
            }
            None => String::new(),
        };
        let (window, chunk) = self.sizes(&rule);
        (self.problems.len() == before).then_some(())?;
        Some(Rule { line, names, except, direction: direction?, kind: kind?, prefix, window, chunk })
    }

    fn globs(&mut self, option: &str, list: Vec<Spanned<String>>) -> Vec<Glob> {
        let mut globs = Vec::new();
        for glob in list {
            let text = glob.get_ref();
            // What a name may be made of, and the two wildcards.
            let may = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '*' | '?');
            if text.is_empty() || text.starts_with('.') || !text.chars().all(may) {
                let said = format!(
                    "{}: \"{text}\" is not a pattern of names; expected letters, digits, `.`, `_`, `-` and the wildcards * (any run \
                     of characters) and ? (one), not beginning with a dot",
                    self.source.option(option)
                );
                self.wrong(&glob, said);
            } else {
                globs.push(Glob::new(glob.into_inner()));
            }
        }
        globs
    }

    fn direction(&mut self, rule: &raw::Rule, whole: &Spanned<()>) -> Option<Direction> {
        match rule.direction.as_ref().map(|direction| (direction, direction.get_ref().as_str())) {
            Some((_, "export")) => Some(Direction::Export),
            Some((_, "import")) => Some(Direction::Import),
            Some((at, other)) => {
                let text = format!(
                    "the direction \"{other}\" is unknown; expected \"export\" (from this machine) or \"import\" (to this machine)"
                );
                self.wrong(at, text);
                None
            }
            None => {
                let text = "the rule has no `direction`; expected \"export\" (from this machine) or \"import\" (to this machine)";
                self.wrong(whole, text);
                None
            }
        }
    }

    fn kind(&mut self, rule: &mut raw::Rule, direction: Direction, whole: &Spanned<()>) -> Option<Kind> {
        let Some(kind) = rule.kind.take() else {
            let text = format!(
                "the rule has no kind; add {} (also topic, newest, bus or rpc): what a name is decides how it crosses",
                self.source.written("kind", "ring")
            );
            self.wrong(whole, text);
            return None;
        };
        let word = kind.get_ref().as_str();
        let capacity = self.capacity(rule, direction);
        let kind = match word {
            "ring" | "bus" | "rpc" => {
                if let Some(delivery) = rule.delivery.take().filter(|delivery| delivery.get_ref() != "reliable") {
                    let text = format!("a {word} is always reliable; remove {}", self.source.option("delivery"));
                    self.wrong(&delivery, text);
                }
                let on_disconnect = self.on_disconnect(rule, word, direction, whole)?;
                if word == "ring" {
                    Kind::Ring { on_disconnect, capacity }
                } else {
                    let max_connections =
                        rule.max_connections.take().map_or(CONNECTIONS, |most| self.max_connections(&most));
                    Kind::Bus { on_disconnect, capacity, rpc: word == "rpc", max_connections }
                }
            }
            "topic" => Kind::Topic { delivery: self.delivery(rule, direction, whole)?, capacity },
            "newest" => {
                let every = rule.every.take().map_or(Some(Duration::ZERO), |every| self.duration("every", &every))?;
                Kind::Newest { every, capacity }
            }
            other => {
                let text = format!("the kind \"{other}\" is unknown; expected ring, topic, newest, bus or rpc");
                self.wrong(&kind, text);
                return None;
            }
        };
        // What is left has no meaning here.
        let left = [
            ("delivery", rule.delivery.take().map(|at| bare_at(&at)), "topics"),
            ("on_disconnect", rule.on_disconnect.take().map(|at| bare_at(&at)), "reliable rules"),
            ("eject_after", rule.eject_after.take().map(|at| bare_at(&at)), "reliable rules"),
            ("rate", rule.rate.take().map(|at| bare_at(&at)), "lossy topics that are exported"),
            ("every", rule.every.take().map(|at| bare_at(&at)), "kind \"newest\""),
            ("label", rule.label.take().map(|at| bare_at(&at)), "reliable topics that are exported"),
            ("max_connections", rule.max_connections.take().map(|at| bare_at(&at)), "kinds \"bus\" and \"rpc\""),
        ];
        for (name, at, of) in left {
            if let Some(at) = at {
                let text = format!("{} is only for {of}; remove it, or change the rule", self.source.option(name));
                self.wrong(&at, text);
            }
        }
        Some(kind)
    }

    fn delivery(&mut self, rule: &mut raw::Rule, direction: Direction, whole: &Spanned<()>) -> Option<Delivery> {
        let Some(delivery) = rule.delivery.take() else {
            let text = format!(
                "a topic's rule says how it crosses: {} (the publisher waits for the far side, nothing is lost) or {} (it never waits, \
                 losses are counted)",
                self.source.written("delivery", "reliable"),
                self.source.written("delivery", "lossy")
            );
            self.wrong(whole, text);
            return None;
        };
        match delivery.get_ref().as_str() {
            "reliable" => {
                let on_disconnect = self.on_disconnect(rule, "reliable topic", direction, whole)?;
                let label = match rule.label.take_if(|_| direction == Direction::Export) {
                    None => "ramway-bridge".to_owned(),
                    Some(label) if (1..=LABEL).contains(&label.get_ref().len()) && !label.get_ref().contains('\0') => {
                        label.into_inner()
                    }
                    Some(label) => {
                        let text = format!(
                            "{} has {} bytes; expected 1 to {LABEL}",
                            self.source.option("label"),
                            label.get_ref().len()
                        );
                        self.wrong(&label, text);
                        return None;
                    }
                };
                Some(Delivery::Reliable { on_disconnect, label })
            }
            "lossy" => {
                let every = match rule.rate.take_if(|_| direction == Direction::Export) {
                    None => None,
                    Some(rate) => Some(self.rate(&rate)?),
                };
                Some(Delivery::Lossy { every })
            }
            other => {
                self.wrong(
                    &delivery,
                    format!("the delivery \"{other}\" is unknown; expected \"reliable\" or \"lossy\""),
                );
                None
            }
        }
    }

    fn on_disconnect(
        &mut self,
        rule: &mut raw::Rule,
        what: &str,
        direction: Direction,
        whole: &Spanned<()>,
    ) -> Option<OnDisconnect> {
        let (block, eject) = (self.source.written("on_disconnect", "block"), self.source.written("eject_after", "5s"));
        match (rule.on_disconnect.take(), rule.eject_after.take()) {
            (None, None) => {
                let text = match direction {
                    _ if matches!(what, "bus" | "rpc") => format!(
                        "the rule of kind \"{what}\" does not say what a broken link does to its connections, and there is no default, because \
                         it can stop programs: {block} (they wait until the link is back) or {eject} (after that time each side is told \
                         that the other one died)"
                    ),
                    Direction::Export => format!(
                        "the rule of a {what} does not say what a broken link does to the sender on this machine, and there is no \
                         default, because it can stop the machine: {block} (it waits until the link is back) or {eject} (after that \
                         time it is let go)"
                    ),
                    Direction::Import => format!(
                        "the rule of a {what} does not say what a broken link does to the receiver on this machine, and there is no \
                         default: {block} (it waits until the link is back) or {eject} (after that time it is told that the sender died)"
                    ),
                };
                self.wrong(whole, text);
                None
            }
            (Some(_), Some(both)) => {
                self.wrong(
                    &both,
                    format!("the rule says both what {block} and what {eject} say; remove one of the two"),
                );
                None
            }
            (Some(block), None) if block.get_ref() == "block" => Some(OnDisconnect::Block),
            (Some(other), None) => {
                let text = format!(
                    "{} is \"{}\"; expected \"block\", or {eject} in its place",
                    self.source.option("on_disconnect"),
                    other.get_ref()
                );
                self.wrong(&other, text);
                None
            }
            (None, Some(after)) => {
                let time = self.duration("eject_after", &after)?;
                if time < SILENCE {
                    let text = format!(
                        "{} is {}; expected {}s at least: where nothing is sent the other side is heard once a second, so that a shorter \
                         silence does not say that the link is down",
                        self.source.option("eject_after"),
                        after.get_ref().0,
                        SILENCE.as_secs()
                    );
                    self.wrong(&after, text);
                    return None;
                }
                Some(OnDisconnect::EjectAfter(time))
            }
        }
    }

    fn duration(&mut self, name: &str, value: &Spanned<Quantity>) -> Option<Duration> {
        match parse_duration(&value.get_ref().0) {
            Ok(time) => Some(time),
            Err(error) => {
                self.wrong(value, format!("{}: {error}", self.source.option(name)));
                None
            }
        }
    }

    fn max_connections(&mut self, value: &Spanned<Quantity>) -> usize {
        let most = value.get_ref().0.parse().ok().filter(|most| (1..=MOST_CONNECTIONS).contains(most));
        if most.is_none() {
            let text = format!(
                "{} is {}; expected how many connections there may be at a time, 1 to {MOST_CONNECTIONS}",
                self.source.option("max_connections"),
                value.get_ref().0
            );
            self.wrong(value, text);
        }
        most.unwrap_or(CONNECTIONS)
    }

    /// Messages a second, as the time between two.
    fn rate(&mut self, value: &Spanned<Quantity>) -> Option<Duration> {
        let rate = value.get_ref().0.parse::<f64>().ok().filter(|rate| (0.001..=1e6).contains(rate));
        if rate.is_none() {
            let text = format!(
                "{} is {}; expected messages per second, a number from 0.001 to 1000000",
                self.source.option("rate"),
                value.get_ref().0
            );
            self.wrong(value, text);
        }
        rate.map(|rate| Duration::from_secs_f64(1.0 / rate))
    }

    fn size(&mut self, name: &str, value: &Spanned<Quantity>, range: std::ops::RangeInclusive<u64>) -> u64 {
        let said = match parse_size(&value.get_ref().0) {
            Ok(size) if range.contains(&size) => return size,
            Ok(size) => format!("is {size} bytes; expected {} to {}", range.start(), range.end()),
            Err(error) => error,
        };
        self.wrong(value, format!("{} {said}", self.source.option(name)));
        *range.start()
    }

    fn sizes(&mut self, rule: &raw::Rule) -> (u64, u64) {
        let chunk = rule.chunk.as_ref().map_or(CHUNK, |chunk| self.size("chunk", chunk, LEAST_CHUNK..=MOST_CHUNK));
        let window = rule.window.as_ref().map_or(WINDOW.max(2 * chunk), |window| {
            // Two pieces: one that is being taken while the next one is on its way.
            self.size("window", window, 2 * chunk..=MOST_WINDOW)
        });
        (window, chunk)
    }

    fn capacity(&mut self, rule: &raw::Rule, direction: Direction) -> Option<u64> {
        let capacity = rule.capacity.as_ref()?;
        if direction == Direction::Export {
            let option = self.source.option("capacity");
            self.wrong(
                capacity,
                format!("{option} is of what an import makes; an export takes what is there. Remove it"),
            );
            return None;
        }
        Some(self.size("capacity", capacity, 4096..=1 << 40))
    }

    /// What only two rules together do wrong, as far as the rules alone show it: names that `except` may keep apart are looked at when
    /// they are there.
    fn together(&mut self, rules: &[Rule]) {
        for (number, second) in rules.iter().enumerate() {
            for first in &rules[..number] {
                let exact = first.except.is_empty() && second.except.is_empty();
                let meet = first.names.iter().find_map(|a| second.names.iter().find(|b| a.overlaps(b)).map(|b| (a, b)));
                let (Some((a, b)), true) = (meet, exact) else { continue };
                let Some(why) = super::names::conflict(first, second) else { continue };
                let text = format!("\"{}\" is also named by {} (\"{}\"): {why}", b.as_str(), first.shown(), a.as_str());
                let place = second.line.0.map_or(Place::Flags, Place::Line);
                self.problems.push(Problem { place, text });
            }
        }
    }
}

/// Where a value stands, without the value.
fn bare_at<T>(value: &Spanned<T>) -> Spanned<()> {
    Spanned::new(value.span(), ())
}
