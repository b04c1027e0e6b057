//! The shape of `segments.json` and `handshake.json`; `format/vectors/README.md` says what each field means.

use serde::{Deserialize, Serialize};

/// All of `segments.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segments {
    /// The version of the format that these are written after.
    pub format: String,
    /// Every image.
    pub segments: Vec<Segment>,
}

/// Whether a correct peer could have made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Yes; or at least nothing in it is anybody's business to refuse.
    Good,
    /// No.
    Hostile,
}

/// One image and what each reader must find in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Unique among the images.
    pub name: String,
    /// What is special about it.
    pub about: String,
    /// Good or hostile.
    pub class: Class,
    /// How it reaches its readers: a `bus` is memory that a listener sends, the others are named files.
    pub kind: Kind,
    /// The file's length in bytes.
    pub size: u64,
    /// Everything in the file that is not 0.
    pub bytes: Vec<Run>,
    /// What each reader must find. Each begins with the image as it is here.
    pub readers: Vec<Reader>,
}

/// What an image is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A named ring's file.
    Ring,
    /// A named region's file.
    Region,
    /// The memory of a bus, for the connector.
    Bus,
    /// The segment of a listener, beside its socket.
    Listener,
}

/// Bytes at an offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Offset in the file.
    pub at: u64,
    /// The bytes, two digits each.
    pub hex: String,
    /// Only in `leaves`: which bits count, as many digits as `hex`. Absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
}

/// A role that a reader takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Receives; of a bus the connector's receiving half, over block 0.
    Consumer,
    /// Sends; of a bus the connector's sending half, over block 1.
    Producer,
    /// Opens a region.
    Region,
    /// Listens where the image is the listener's segment.
    Listener,
}

impl Role {
    /// As in the JSON and on the programs' command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Consumer => "consumer",
            Self::Producer => "producer",
            Self::Region => "region",
            Self::Listener => "listener",
        }
    }
}

/// What one reader must find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reader {
    /// The role that it takes.
    #[serde(rename = "as")]
    pub role: Role,
    /// `ok`, or the name of the error that opening gives.
    pub open: String,
    /// A named ring: somebody alive has this role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Role>,
    /// What it sees once attached to a ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Attached>,
    /// What it sees of a region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<RegionBytes>,
    /// What the other side does after the attach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
    /// What a consumer receives, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// A producer: the last message's tag as a decimal number, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// A producer: the length of the one message that it tries to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<u64>,
    /// The error that the receiving ends with; of a producer `sent`, or the error of sending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// What the file holds once the reader has closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<Run>,
    /// Whether the name is still there after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_after: Option<NameAfter>,
}

/// What a handle says right after it has attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The own epoch, this attach included.
    pub epoch: u32,
    /// The other side's.
    pub peer_epoch: u32,
    /// Bytes of data.
    pub capacity: u64,
    /// The longest message.
    pub max: u64,
}

/// A region's length and the checksum of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionBytes {
    /// As its creator asked for it.
    pub len: u64,
    /// Of all its bytes.
    pub crc32: u32,
}

/// A message as it must be received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The frame's.
    pub type_id: u32,
    /// Decimal, because JSON's numbers are not 64 bits wide everywhere.
    pub tag: String,
    /// Bytes of payload.
    pub len: u64,
    /// Of the payload, as zlib and gzip count it.
    pub crc32: u32,
}

/// When the other side acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// After the reader has attached and before it looks at the ring again.
    Paused,
    /// While the reader waits (or is about to).
    Waiting,
}

/// What the other side does once the reader has attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Then {
    /// Before or while the reader receives.
    pub when: When,
    /// Written one after the other; a run of 4 or 8 bytes by one atomic store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bytes: Vec<Run>,
    /// A bus: closes the socket, after the bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hang_up: bool,
}

/// What became of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameAfter {
    /// Still there.
    Stays,
    /// The reader was the last one out and nothing was left to deliver.
    Gone,
}

/// All of `handshake.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshakes {
    /// The version of the format that these are written after.
    pub format: String,
    /// Every exchange.
    pub handshakes: Vec<Handshake>,
}

/// One connection, described from the side that is not under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshake {
    /// Unique among the handshakes.
    pub name: String,
    /// What is special about it.
    pub about: String,
    /// Good or hostile.
    pub class: Class,
    /// The side under test.
    pub reader: Side,
    /// What the other side does, in this order.
    pub steps: Vec<Step>,
    /// What the side under test must come to.
    pub outcome: Outcome,
}

/// A side of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Accepts connections.
    Listener,
    /// Connects.
    Connector,
}

/// One step of the side that is not under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Sends these bytes at once.
    Send(Bytes),
    /// The side under test must send this message.
    Receive(Answer),
    /// The side under test must close the connection; what it sends before that does not matter.
    End,
    /// Closes its side of the connection.
    HangUp,
    /// Waits for so many milliseconds.
    Wait(u64),
    /// Writes into the memory, and then lets a paused reader go on.
    Poke(Vec<Run>),
}

/// Bytes on the socket and the descriptors with their first byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// Two digits a byte.
    pub hex: String,
    /// None by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descriptors: Vec<Descriptor>,
}

/// A descriptor that is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Descriptor {
    /// A memfd.
    Memory(Memory),
    /// Something that is no memfd: `/dev/null`, or a regular file on a tmpfs with the bytes of a good bus.
    Other(Other),
}

/// Memory that is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The name of an image in `segments.json`.
    pub image: String,
    /// The length of the memfd where it differs from the image's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// `shrink`, `grow`, `seal`, `write`, `future_write`.
    pub seals: Vec<String>,
}

/// What is sent instead of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Other {
    /// `/dev/null`, open for reading and writing.
    DevNull,
    /// A regular file on a tmpfs, with the bytes of the image `bus-empty`.
    RegularFile,
}

/// A message that the side under test must send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// 1 HELLO, 2 WELCOME, 3 REFUSE, 4 ACK.
    #[serde(rename = "type")]
    pub kind: u32,
    /// The error number in REFUSE and ACK.
    pub status: u32,
}

/// What the side under test comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// `ok`: it has a bus. `refused`: a listener goes on and serves the next connector. Else the name of the error that
    /// the connector gives.
    pub open: String,
    /// The role of the half that is then used, as consumer if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "as")]
    pub role: Option<Role>,
    /// What a consumer then receives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// What ends it, or of a producer `sent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}
