//! An RPC server by hand, over a plain bus: it says what it is told to, right or wrong.

use ramway::facts::{TYPE_ID_CALL, TYPE_ID_REPLY};
use ramway::ring::raw::WaitLimit;
use ramway::{Bus, Listener, Result};

/// A frame as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub type_id: u32,
    pub id: u64,
    pub payload: Vec<u8>,
}

impl Frame {
    /// One of the header's four numbers.
    pub fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.payload[4 * at..4 * at + 4].try_into().unwrap())
    }

    pub fn timeout_us(&self) -> u32 {
        self.word(0)
    }

    pub fn method(&self) -> u32 {
        self.word(2)
    }

    pub fn window(&self) -> u32 {
        self.word(3)
    }

    pub fn body(&self) -> &[u8] {
        &self.payload[16 + (self.word(1) as usize).next_multiple_of(16)..]
    }
}

/// A REPLY's payload.
pub fn reply(status: u32, flags: u32, code: u32, meta: &[u8], body: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    for word in [status, flags, code, meta.len() as u32] {
        payload.extend(word.to_le_bytes());
    }
    payload.extend(meta);
    payload.resize(payload.len().next_multiple_of(16), 0);
    payload.extend(body);
    payload
}

pub struct Server(pub Bus);

impl Server {
    pub fn listener(path: &str, capacity: u64, max_in_flight: u32) -> Listener {
        Listener::builder(path).capacity(capacity).rpc(max_in_flight).bind().unwrap()
    }

    pub fn accept(listener: &Listener) -> Self {
        Self(listener.accept().unwrap())
    }

    /// A server for one client.
    pub fn one(path: &str, capacity: u64, max_in_flight: u32) -> Self {
        Self::accept(&Self::listener(path, capacity, max_in_flight))
    }

    pub fn frame(&mut self) -> Result<Frame> {
        let message = self.0.recv()?;
        Ok(Frame { type_id: message.type_id(), id: message.tag(), payload: message.to_vec() })
    }

    pub fn try_frame(&mut self) -> Option<Frame> {
        let message = self.0.try_recv().ok()?;
        Some(Frame { type_id: message.type_id(), id: message.tag(), payload: message.to_vec() })
    }

    /// The next frame, which is a CALL.
    pub fn call(&mut self) -> Frame {
        let frame = self.frame().unwrap();
        assert_eq!(frame.type_id, TYPE_ID_CALL);
        frame
    }

    pub fn send(&mut self, type_id: u32, id: u64, payload: &[u8]) -> Result<()> {
        let mut raw = self.0.sender()?.raw();
        let to = raw.reserve(payload.len(), WaitLimit::Forever)?;
        // SAFETY: the slot has room for the payload.
        unsafe { to.copy_from_nonoverlapping(payload.as_ptr(), payload.len()) };
        raw.commit(payload.len(), type_id, id, true)
    }

    pub fn try_send(&mut self, type_id: u32, id: u64, payload: &[u8]) -> Result<()> {
        let mut raw = self.0.sender()?.raw();
        let to = raw.reserve(payload.len(), WaitLimit::None)?;
        // SAFETY: as above.
        unsafe { to.copy_from_nonoverlapping(payload.as_ptr(), payload.len()) };
        raw.commit(payload.len(), type_id, id, true)
    }

    /// The final REPLY, with status 0.
    pub fn ok(&mut self, id: u64, body: &[u8]) {
        self.send(TYPE_ID_REPLY, id, &reply(0, 0, 0, b"", body)).unwrap();
    }

    pub fn status(&mut self, id: u64, status: u32) {
        self.send(TYPE_ID_REPLY, id, &reply(status, 0, 0, b"", b"")).unwrap();
    }

    pub fn element(&mut self, id: u64, body: &[u8]) {
        self.send(TYPE_ID_REPLY, id, &reply(0, 1, 0, b"", body)).unwrap();
    }

    /// Answers every call with its body until the client is gone.
    pub fn echo(mut self) {
        while let Ok(frame) = self.frame() {
            if frame.type_id == TYPE_ID_CALL
                && self.send(TYPE_ID_REPLY, frame.id, &reply(0, 0, 0, b"", frame.body())).is_err()
            {
                return;
            }
        }
    }
}
