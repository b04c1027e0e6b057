//! What is sent with a call, and what comes back.

use std::fmt;
use std::time::Duration;

use crate::facts::RPC_WINDOW_DEFAULT;
use crate::rpc::{CallError, CallResult};
use crate::{Error, ErrorKind};

/// What is sent with a call besides its method and its body.
///
/// ```
/// use ramway::rpc::CallOptions;
/// use std::time::Duration;
/// let options = CallOptions::new().timeout(Duration::from_millis(50)).meta(b"trace 17");
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CallOptions<'a> {
    pub(crate) timeout: Option<Duration>,
    pub(crate) meta: &'a [u8],
    pub(crate) window: u32,
}

impl Default for CallOptions<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> CallOptions<'a> {
    /// No time limit, no metadata, a window of 16 elements.
    pub const fn new() -> Self {
        Self { timeout: None, meta: &[], window: RPC_WINDOW_DEFAULT }
    }

    /// The call's time limit, from the moment of the call: on this side and, as far as it is left when the call is sent, on the
    /// server's. Default none. With 0 the call is not sent.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Metadata of the request: bytes that the application defines (a trace, a token). Default none.
    #[must_use]
    pub const fn meta(mut self, meta: &'a [u8]) -> Self {
        self.meta = meta;
        self
    }

    /// Of a stream: how many elements may be under way, at least 1. Default 16. A call with one reply does not look at it.
    #[must_use]
    pub const fn window(mut self, elements: u32) -> Self {
        self.window = elements;
        self
    }
}

/// What a server replied: a copy, which belongs to the caller.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// Metadata, then the body.
    data: Vec<u8>,
    meta_len: usize,
}

impl Reply {
    /// `data` begins with `meta_len` bytes of metadata.
    pub(crate) fn new(data: Vec<u8>, meta_len: usize) -> Self {
        debug_assert!(meta_len <= data.len());
        Self { data, meta_len }
    }

    /// The reply's bytes.
    pub fn body(&self) -> &[u8] {
        &self.data[self.meta_len..]
    }

    /// The reply's metadata; empty if the server gave none.
    pub fn meta(&self) -> &[u8] {
        &self.data[..self.meta_len]
    }

    /// The reply's bytes, without a copy where there is no metadata.
    pub fn into_body(mut self) -> Vec<u8> {
        self.data.drain(..self.meta_len);
        self.data
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("body", &self.body().len()).field("meta", &self.meta().len()).finish()
    }
}

/// A method of a server, as [`Client::describe`](super::Client::describe) gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodInfo {
    /// The number that calls name it by.
    pub number: u32,
    /// The name that its number was made from, if it has one.
    pub name: Option<String>,
}

impl MethodInfo {
    /// What the method *describe* replied.
    ///
    /// # Errors
    /// `Corrupt` if it is not that.
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn parse(body: &[u8]) -> CallResult<Vec<Self>> {
        let wrong = || {
            let error = Error::new(
                ErrorKind::Corrupt,
                "the server's description of its methods is not lines of a number and a name",
            );
            CallError::of_error(error, true)
        };
        let text = std::str::from_utf8(body).map_err(|_| wrong())?;
        let line = |line: &str| {
            let (number, name) = line.split_once(' ').map_or((line, None), |(number, name)| (number, Some(name)));
            Some(Self { number: number.parse().ok()?, name: name.map(String::from) })
        };
        text.lines().map(|text| line(text).ok_or_else(wrong)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_line_by_line() {
        let methods = MethodInfo::parse(b"7\n3131817948 Store.Get\n").unwrap();
        assert_eq!(methods[0], MethodInfo { number: 7, name: None });
        assert_eq!(methods[1], MethodInfo { number: 3_131_817_948, name: Some("Store.Get".into()) });
        assert!(MethodInfo::parse(b"").unwrap().is_empty());
        for wrong in [&b"x 7\n"[..], b"4294967296\n", b"\n", b"7 \xff\n"] {
            assert_eq!(MethodInfo::parse(wrong).unwrap_err().kind(), Some(ErrorKind::Corrupt));
        }
    }

    #[test]
    fn metadata_go_before_the_body() {
        let reply = Reply::new(b"metabody".to_vec(), 4);
        assert_eq!((reply.meta(), reply.body()), (&b"meta"[..], &b"body"[..]));
        assert_eq!(reply.into_body(), b"body");
    }
}
