//! An RPC client by hand, over a plain bus: it says what it is told to, right or wrong.

use super::LONG;
use super::rpc::Frame;
use ramway::facts::{TYPE_ID_CALL, TYPE_ID_CANCEL, TYPE_ID_CREDIT, TYPE_ID_REPLY};
use ramway::ring::raw::WaitLimit;
use ramway::{Bus, Result};
use std::path::Path;
use std::time::Duration;

pub struct Caller {
    pub bus: Bus,
    /// The id of the last CALL.
    pub last: u64,
}

/// A CALL's payload.
pub fn call(method: u32, timeout_us: u32, window: u32, meta: &[u8], body: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    for word in [timeout_us, meta.len() as u32, method, window] {
        payload.extend(word.to_le_bytes());
    }
    payload.extend(meta);
    payload.resize(payload.len().next_multiple_of(16), 0);
    payload.extend(body);
    payload
}

impl Caller {
    pub fn connect(path: impl AsRef<Path>) -> Self {
        Self { bus: Bus::connector(path.as_ref()).timeout(LONG).rpc().connect().unwrap(), last: 0 }
    }

    pub fn send(&mut self, type_id: u32, id: u64, payload: &[u8], limit: WaitLimit) -> Result<()> {
        let mut raw = self.bus.sender()?.raw();
        let to = raw.reserve(payload.len(), limit)?;
        // SAFETY: the slot has room for the payload.
        unsafe { to.copy_from_nonoverlapping(payload.as_ptr(), payload.len()) };
        raw.commit(payload.len(), type_id, id, true)
    }

    /// A right CALL; gives its id.
    pub fn call(&mut self, method: u32, body: &[u8]) -> u64 {
        self.call_with(method, 0, 0, body)
    }

    pub fn call_with(&mut self, method: u32, timeout_us: u32, window: u32, body: &[u8]) -> u64 {
        self.last += 1;
        let payload = call(method, timeout_us, window, b"", body);
        self.send(TYPE_ID_CALL, self.last, &payload, WaitLimit::For(LONG)).unwrap();
        self.last
    }

    /// A right CALL if there is room.
    pub fn try_call(&mut self, method: u32, window: u32, body: &[u8]) -> bool {
        let payload = call(method, 0, window, b"", body);
        let sent = self.send(TYPE_ID_CALL, self.last + 1, &payload, WaitLimit::None).is_ok();
        self.last += u64::from(sent);
        sent
    }

    pub fn cancel(&mut self, id: u64) {
        self.send(TYPE_ID_CANCEL, id, b"", WaitLimit::For(LONG)).unwrap();
    }

    pub fn credit(&mut self, id: u64, n: u32) {
        self.send(TYPE_ID_CREDIT, id, &n.to_le_bytes(), WaitLimit::For(LONG)).unwrap();
    }

    /// The next REPLY.
    pub fn reply(&mut self) -> Answer {
        self.try_reply(LONG).unwrap()
    }

    pub fn try_reply(&mut self, timeout: Duration) -> Result<Answer> {
        let message = self.bus.recv_timeout(timeout)?;
        assert_eq!(message.type_id(), TYPE_ID_REPLY);
        Ok(Answer(Frame { type_id: message.type_id(), id: message.tag(), payload: message.to_vec() }))
    }

    /// How the server ended the connection: what comes after its last REPLY.
    pub fn end(&mut self) -> ramway::ErrorKind {
        loop {
            match self.bus.recv_timeout(LONG) {
                Ok(_) => {}
                Err(e) => return e.kind(),
            }
        }
    }

    /// How many CALLs fit before the ring is full: the server reads none of them for now.
    pub fn fill(&mut self, method: u32, body: &[u8]) -> u64 {
        let before = self.last;
        while self.try_call(method, 0, body) {}
        self.last - before
    }
}

/// A REPLY as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer(pub Frame);

impl Answer {
    pub fn id(&self) -> u64 {
        self.0.id
    }

    pub fn status(&self) -> u32 {
        self.0.word(0)
    }

    pub fn is_element(&self) -> bool {
        self.0.word(1) == 1
    }

    pub fn code(&self) -> u32 {
        self.0.word(2)
    }

    pub fn meta(&self) -> &[u8] {
        &self.0.payload[16..16 + self.0.word(3) as usize]
    }

    pub fn body(&self) -> &[u8] {
        &self.0.payload[16 + (self.0.word(3) as usize).next_multiple_of(16)..]
    }

    /// The id, whether it is an element, and the status.
    pub fn head(&self) -> (u64, bool, u32) {
        (self.id(), self.is_element(), self.status())
    }
}
