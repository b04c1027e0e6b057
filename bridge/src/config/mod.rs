//! What a bridge is asked to do: `bridge.toml`, or the flags of `ramway-bridge export` and `ramway-bridge import`.
//!
//! [`raw`] is the text as it stands, with the place of each value; [`check`] makes a [`Config`] of it, or says everything that is
//! wrong with it at once. [`names`] decides which rule a name falls under, and why it falls under none.

mod check;
mod glob;
pub mod names;
mod problem;
pub mod raw;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use glob::Glob;
pub use problem::{Place, Problem, Problems};

/// The whole of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How the other bridges are reached.
    pub link: Link,
    /// Where the metrics are served, if anywhere.
    pub metrics: Option<std::net::SocketAddr>,
    /// In the order of the file.
    pub rules: Vec<Rule>,
}

/// How the other bridges are reached. A change of it needs a new start.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What every key begins with.
    pub prefix: String,
    /// Where the session's settings come from.
    pub session: Session,
}

/// The settings of the Zenoh session.
#[derive(Clone, Debug, PartialEq)]
pub enum Session {
    /// A file in Zenoh's own format has all of them.
    File(PathBuf),
    /// The few that most links need.
    Here {
        /// A peer links with every other one; a client has one link, to a router or a peer.
        mode: Mode,
        /// Endpoints as Zenoh writes them: `tls/[::]:7447`.
        listen: Vec<String>,
        /// Endpoints as Zenoh writes them: `tls/far:7447`.
        connect: Vec<String>,
        /// Look for other peers by multicast.
        discovery: bool,
        /// Certificates.
        tls: Option<Tls>,
    },
}

/// What a bridge is among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Links with every other peer.
    Peer,
    /// Has one link at a time, to a router or to a peer.
    Client,
}

/// Certificates, as files of PEM.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// Who signed the certificates of the other side.
    pub ca: PathBuf,
    /// Of this side.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The other side must show a certificate too.
    pub mutual: bool,
}

/// What is bridged, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The line of the file where it begins; `None` of a rule from the command line. Two rules that differ in nothing else are equal.
    pub line: Line,
    /// Which names.
    pub names: Vec<Glob>,
    /// Which of these not.
    pub except: Vec<Glob>,
    /// Out of this machine, or into it.
    pub direction: Direction,
    /// What is bridged.
    pub kind: Kind,
    /// Between the link's prefix and the name; may be empty.
    pub prefix: String,
    /// Bytes that may be under way.
    pub window: u64,
    /// Bytes of the longest piece.
    pub chunk: u64,
}

/// The line where something begins, which is no part of what it is.
#[derive(Clone, Copy, Debug)]
pub struct Line(pub Option<usize>);

impl PartialEq for Line {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Out of this machine, or into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// The segment is here; it appears on the other machines.
    Export,
    /// The segment is elsewhere; it appears here.
    Import,
}

/// What is bridged, with what only this kind needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A ring, always reliable.
    Ring {
        /// What a broken link does.
        on_disconnect: OnDisconnect,
        /// Of the ring that an import makes; `None`: as the far one.
        capacity: Option<u64>,
    },
    /// Every message of a topic.
    Topic {
        /// Whether the publisher waits for the far side.
        delivery: Delivery,
        /// Of the topic that an import makes; `None`: as the far one.
        capacity: Option<u64>,
    },
    /// The newest message of a topic.
    Newest {
        /// At most one message in this time.
        every: Duration,
        /// Of the topic that an import makes; `None`: as the far one.
        capacity: Option<u64>,
    },
    /// A listener, each of whose connections is bridged as a bus of its own: also RPC.
    Bus {
        /// What a broken link does.
        on_disconnect: OnDisconnect,
        /// Of each direction of the buses that an import makes; `None`: as the far ones.
        capacity: Option<u64>,
        /// Its buses are for RPC.
        rpc: bool,
        /// How many connections there may be at a time, of each name.
        max_connections: usize,
    },
}

/// Whether a publisher waits for the far side.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery {
    /// It does; nothing is lost.
    Reliable {
        /// What a broken link does.
        on_disconnect: OnDisconnect,
        /// Of the durable subscriber with which an export reads.
        label: String,
    },
    /// It does not; what is lost is counted.
    Lossy {
        /// At most one message in this time; the others count as left out.
        every: Option<Duration>,
    },
}

/// What a broken link does to who sends on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDisconnect {
    /// It waits until the link is back.
    Block,
    /// After this time it is let go: a publisher goes on without the bridge, the sender of a ring is told that its receiver died.
    EjectAfter(Duration),
}

impl OnDisconnect {
    /// Whether a link from which nothing was heard for so long counts as the death of the other side.
    #[must_use]
    pub fn gives_up_after(self, silent: Duration) -> bool {
        matches!(self, Self::EjectAfter(after) if silent > after)
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(path: &Path) -> Result<Self, Problems> {
        let text = std::fs::read_to_string(path).map_err(|error| Problems::unreadable(path, &error))?;
        Self::parse(&text, path)
    }

    /// Reads the text of a file; relative paths in it are relative to the file's directory.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Problems> {
        let raw = raw::File::parse(text).map_err(|problem| Problems::of(path, vec![problem]))?;
        let base = path.parent().unwrap_or(Path::new("")).to_owned();
        check::config(raw, &check::Source::file(text, base)).map_err(|problems| Problems::of(path, problems))
    }

    /// From flags.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn flags(raw: raw::File) -> Result<Self, Problems> {
        check::config(raw, &check::Source::flags()).map_err(Problems::of_flags)
    }
}

impl Kind {
    /// As it stands in a rule.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ring { .. } => "ring",
            Self::Topic { .. } => "topic",
            Self::Newest { .. } => "newest",
            Self::Bus { rpc: false, .. } => "bus",
            Self::Bus { rpc: true, .. } => "rpc",
        }
    }

    /// What a segment must be.
    #[must_use]
    pub fn segment(&self) -> ramway::layout::Kind {
        match self {
            Self::Ring { .. } => ramway::layout::Kind::Ring,
            Self::Topic { .. } | Self::Newest { .. } => ramway::layout::Kind::Topic,
            Self::Bus { .. } => ramway::layout::Kind::Listener,
        }
    }

    /// What a broken link does, where somebody waits for it.
    #[must_use]
    pub fn on_disconnect(&self) -> Option<OnDisconnect> {
        match self {
            Self::Ring { on_disconnect, .. } | Self::Bus { on_disconnect, .. } => Some(*on_disconnect),
            Self::Topic { delivery: Delivery::Reliable { on_disconnect, .. }, .. } => Some(*on_disconnect),
            Self::Topic { delivery: Delivery::Lossy { .. }, .. } | Self::Newest { .. } => None,
        }
    }

    /// Of what an import makes; `None`: as the far one.
    #[must_use]
    pub fn capacity(&self) -> Option<u64> {
        let (Self::Ring { capacity, .. }
        | Self::Topic { capacity, .. }
        | Self::Newest { capacity, .. }
        | Self::Bus { capacity, .. }) = self;
        *capacity
    }
}

impl Direction {
    /// As it stands in a rule.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Export => "export",
            Self::Import => "import",
        }
    }
}

impl Rule {
    /// Whether the rule is about this name.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        self.names.iter().any(|glob| glob.matches(name)) && !self.except.iter().any(|glob| glob.matches(name))
    }

    /// How the rule is named to people.
    #[must_use]
    pub fn shown(&self) -> String {
        match self.line.0 {
            Some(line) => format!("the rule of line {line}"),
            None => "the rule of the command line".to_owned(),
        }
    }
}
