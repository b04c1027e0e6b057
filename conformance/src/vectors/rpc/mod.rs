//! The exchanges of RPC (ABI section 20): frames that one side of a bus sends, and what the side under test must answer; in a
//! file of their own, because not every language has RPC. `format/vectors/README.md` says what each field means.

mod client;
mod connect;
mod server;

pub use connect::message;
use serde::{Deserialize, Serialize};

use super::image::{hex, payload};
use super::model::{Class, Handshake, Segment};

// Section 20, from the page and not from the facts: a second statement.
/// The type id of a call.
pub const CALL: u32 = 0xFFFF_0010;
/// Of a reply.
pub const REPLY: u32 = 0xFFFF_0011;
/// Of a cancellation.
pub const CANCEL: u32 = 0xFFFF_0012;
/// Of credit.
pub const CREDIT: u32 = 0xFFFF_0013;
/// In a reply's flags.
pub const ELEMENT: u32 = 1;
/// Ramway's own method that says that a server is there.
pub const PING: u32 = 0xFFFF_0000;
/// The status of a call that comes while the server drains.
pub const DRAINING: u32 = 7;
const DESCRIBE: u32 = 0xFFFF_0001;

/// The required feature of HELLO, WELCOME and the segment.
pub const FEATURE: u32 = 1;
/// Of both rings, in all exchanges.
pub const CAPACITY: u64 = 4096;
/// The image of a good bus, which a client is sent.
pub const BUS: &str = "rpc-bus";

/// All of `rpc.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rpc {
    /// The version of the format that these are written after.
    pub format: String,
    /// Names of methods and their numbers.
    pub method_ids: Vec<MethodId>,
    /// What a server must answer to a client.
    pub servers: Vec<Exchange>,
    /// What a client must make of a server's replies.
    pub clients: Vec<Exchange>,
    /// The memory of buses, for the handshakes; nobody's `readers`.
    pub images: Vec<Segment>,
    /// As in `handshake.json`: a `listener` is a server, a `connector` a client.
    pub handshakes: Vec<Handshake>,
}

/// A name of a method and its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodId {
    /// Any text.
    pub name: String,
    /// FNV-1a, below FFFF0000.
    pub number: u32,
}

/// One connection, described from the side that is not under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Unique among the exchanges.
    pub name: String,
    /// What is special about it.
    pub about: String,
    /// Good or hostile.
    pub class: Class,
    /// What WELCOME announces.
    pub max_in_flight: u32,
    /// Of a server, where it is not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Of a client, where it is not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_buffered: Option<u64>,
    /// What happens, in this order.
    pub steps: Vec<Step>,
    /// What has become of the connection.
    pub end: End,
}

/// What has become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It is there and works.
    #[serde(rename = "open")]
    Open,
    /// The side under test has ended it in an orderly way; of a client: learned that the server did.
    Closed,
    /// The other side is gone.
    PeerDead,
    /// The side under test has ended it because the other one broke the rules.
    Corrupt,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// The other side publishes these frames, all at once.
    Send(Vec<Frame>),
    /// The side under test publishes this frame next.
    Receive(Expected),
    /// The side under test publishes these frames next, in any order.
    ReceiveAll(Vec<Expected>),
    /// The side under test publishes nothing for so many milliseconds.
    Quiet(u64),
    /// The other side closes in an orderly way, and hangs up.
    Close,
    /// The other side hangs up without a word.
    HangUp,
    /// A client's program starts a call.
    Call(Call),
    /// A client's program takes elements of a stream.
    Take(Take),
    /// A client's program cancels a call, by its place among the exchange's calls, from 1.
    Cancel(u32),
    /// A client's program waits for a call.
    Outcome(Outcome),
    /// A server's program lets the waiting calls of method 5 go on.
    Gate,
    /// A server's program begins to shut down, with a limit of so many milliseconds.
    Shutdown(u64),
    /// The other side calls method 1 and Ramway's own ping, in ids from this one, until the server drains: it refuses the former then, and
    /// answers the latter all the time. The program says that it shuts down before its server has begun to drain.
    UntilDraining(u64),
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The frame's.
    pub type_id: u32,
    /// The call's id, decimal.
    pub tag: String,
    /// The payload.
    pub hex: String,
}

/// A frame that the side under test must publish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The frame's.
    pub type_id: u32,
    /// The call's id, decimal.
    pub tag: String,
    /// The payload.
    pub hex: String,
    /// Another payload that will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub or: Option<String>,
    /// Any text in UTF-8 may follow `hex`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_text: bool,
    /// A CALL: `timeout_us` is 1 to this much; in `hex` it is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at_most: Option<u32>,
}

/// A call that a program starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// By number.
    pub method: u32,
    /// As in the programs' contract: it determines body and metadata.
    pub seq: u32,
    /// The metadata.
    pub meta: String,
    /// The body.
    pub body: String,
    /// 0: one reply.
    pub window: u32,
    /// 0: without a limit.
    pub timeout_us: u32,
}

/// Elements that a program takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take {
    /// The call's place.
    pub call: u32,
    /// Their bodies.
    pub elements: Vec<String>,
}

/// What comes of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The call's place.
    pub call: u32,
    /// A status, or an error.
    pub name: String,
    /// The application's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u32>,
    /// What went wrong, of `Application` and `HandlerFailed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_have_run: Option<bool>,
    /// The reply's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<String>,
    /// The reply's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Of a stream: the elements that were not taken before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elements: Option<Vec<String>>,
}

/// Everything.
pub fn all() -> Rpc {
    let (servers, clients) = (server::all(), client::all());
    let (images, handshakes) = (connect::images(), connect::all());
    let names = servers.iter().chain(&clients).map(|one| &one.name).chain(handshakes.iter().map(|one| &one.name));
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|two| two[0] != two[1]), "two exchanges have one name: {names:?}");
    let ids = ["", "a", "Store.Get", "Store.Put", SUM, "agent.sum", "grüße.Straße", REDUCED];
    let method_ids = ids.map(|name| MethodId { name: name.into(), number: method_id(name) }).to_vec();
    Rpc { format: "1.0".into(), method_ids, servers, clients, images, handshakes }
}

/// The method that is registered by name.
pub const SUM: &str = "Agent.Sum";
/// A name whose hash is FFFF0000 or more.
const REDUCED: &str = "method 68469";

/// As the page has it.
pub fn method_id(name: &str) -> u32 {
    let hash = fnv(name);
    if hash >= 0xFFFF_0000 { hash - 0xFFFF_0000 } else { hash }
}

fn fnv(name: &str) -> u32 {
    name.bytes().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The payload of a CALL or a REPLY: four words, metadata, and the body from a multiple of 16.
fn framed(words: [u32; 4], meta: &[u8], body: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend_from_slice(meta);
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    bytes.extend_from_slice(body);
    bytes
}

fn call_payload(timeout_us: u32, method: u32, window: u32, meta: &[u8], body: &[u8]) -> Vec<u8> {
    framed([timeout_us, meta.len() as u32, method, window], meta, body)
}

fn reply_payload(status: u32, flags: u32, code: u32, meta: &[u8], body: &[u8]) -> Vec<u8> {
    framed([status, flags, code, meta.len() as u32], meta, body)
}

fn frame(type_id: u32, tag: u64, payload: &[u8]) -> Frame {
    Frame { type_id, tag: tag.to_string(), hex: hex(payload) }
}

fn call(id: u64, method: u32, window: u32, meta: &[u8], body: &[u8]) -> Frame {
    frame(CALL, id, &call_payload(0, method, window, meta, body))
}

/// A CALL of one reply, without metadata.
pub fn plain(id: u64, method: u32, body: &[u8]) -> Frame {
    call(id, method, 0, &[], body)
}

fn cancel(id: u64) -> Frame {
    frame(CANCEL, id, &[])
}

fn credit(id: u64, n: u32) -> Frame {
    frame(CREDIT, id, &n.to_le_bytes())
}

/// A final REPLY without metadata.
pub fn reply(id: u64, status: u32, body: &[u8]) -> Frame {
    frame(REPLY, id, &reply_payload(status, 0, 0, &[], body))
}

fn element(id: u64, body: &[u8]) -> Frame {
    frame(REPLY, id, &reply_payload(0, ELEMENT, 0, &[], body))
}

/// The request of method 4.
fn stream_request(count: u32, size: u32, code: u32, seq: u32) -> Vec<u8> {
    words(&[count, size, code, seq])
}

/// An element of method 4.
fn stream_element(seq: u32, k: u32, size: u32) -> Vec<u8> {
    payload(u64::from(seq) + u64::from(k), u64::from(size))
}

/// The metadata of call number `seq`.
fn metadata(seq: u32, len: u64) -> Vec<u8> {
    payload(u64::from(seq) + 1, len)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn send(frames: &[Frame]) -> Step {
    Step::Send(frames.to_vec())
}

fn expected(Frame { type_id, tag, hex }: Frame) -> Expected {
    Expected { type_id, tag, hex, or: None, any_text: false, timeout_at_most: None }
}

fn receive(frame: Frame) -> Step {
    Step::Receive(expected(frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_names_are_those_of_the_page() {
        assert_eq!(method_id(""), 0x811C_9DC5);
        assert_eq!(method_id("Store.Get"), 0xBADE_BBDC);
        assert!(fnv(REDUCED) >= 0xFFFF_0000, "{:x}", fnv(REDUCED));
    }
}
