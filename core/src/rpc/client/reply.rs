//! What is sent with a call, and what comes back.

use std::fmt;
use std::time::Duration;

use crate::facts::{RPC_HEADER, RPC_WINDOW_DEFAULT};
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

/// What a server replied: a copy, which belongs to the caller. A short one (up to 48 bytes) allocates nothing.
#[derive(Clone)]
pub struct Reply(Data);

/// Bytes of a short reply: so many that a reply takes 64 bytes.
pub(super) const SHORT: usize = 48;

/// What the processor moves at once. A load of bytes that several stores have just written waits until all earlier stores have left
/// the processor; one that lies within one store does not (docs/adr/0033).
#[cfg(target_arch = "x86_64")]
type Chunk = std::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Chunk = u128;

const CHUNK: usize = size_of::<Chunk>();

/// Metadata, then the body. Lengths are below 2^31, as every payload's is.
#[derive(Clone)]
enum Data {
    Short { len: u32, meta_len: u32, bytes: ShortBytes },
    Long { data: Vec<u8>, meta_len: usize },
}

const _: () = assert!(size_of::<Reply>() == 64 && CHUNK == RPC_HEADER);

/// Bytes of a short reply.
#[derive(Clone, Copy)]
pub(super) struct ShortBytes([Chunk; SHORT / CHUNK]);

impl ShortBytes {
    /// The `len` bytes of a body in a frame, each read once.
    ///
    /// # Safety
    /// `body` is a multiple of 16, and readable up to the next multiple of 16 after its end, as a frame's payload is; another process
    /// may write there meanwhile.
    #[inline(always)]
    pub(super) unsafe fn in_frame(body: *const u8, len: usize) -> Self {
        debug_assert!(len <= SHORT && body.addr().is_multiple_of(CHUNK));
        let body = body.cast::<Chunk>();
        let chunk = |at: usize| {
            if at * CHUNK < len {
                // SAFETY: it begins before the end, so the caller vouches for all of it; any bytes are a `Chunk`.
                unsafe { body.add(at).read() }
            } else {
                ZERO.0[0]
            }
        };
        Self([chunk(0), chunk(1), chunk(2)])
    }

    #[inline]
    fn as_bytes(&self) -> &[u8; SHORT] {
        // SAFETY: the same memory; every byte of it is initialised.
        unsafe { &*self.0.as_ptr().cast() }
    }

    #[inline]
    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

// SAFETY: any bytes are a `Chunk`, and zeros too.
const ZERO: ShortBytes = ShortBytes(unsafe { std::mem::zeroed() });

/// What a server replied, where it wrote it: in the ring, or where a reply that came early is kept. For
/// [`Client::call_in_place`](super::Client::call_in_place).
///
/// The server can write there as long as this lives: of a server that is not trusted, copy what is decided on before it is checked.
#[derive(Clone, Copy)]
pub struct ReplyView<'a> {
    body: &'a [u8],
    meta: &'a [u8],
}

impl<'a> ReplyView<'a> {
    /// # Safety
    /// So many bytes are readable at both as long as this lives; another process may write them meanwhile.
    #[inline]
    pub(super) unsafe fn at(body: *const u8, len: usize, meta: *const u8, meta_len: usize) -> Self {
        // SAFETY: the caller's.
        unsafe {
            Self { body: std::slice::from_raw_parts(body, len), meta: std::slice::from_raw_parts(meta, meta_len) }
        }
    }

    /// The reply's bytes. They begin at a multiple of 16 in the ring.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The reply's metadata; empty if the server gave none.
    #[inline]
    pub fn meta(&self) -> &'a [u8] {
        self.meta
    }
}

impl fmt::Debug for ReplyView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyView").field("len", &self.body.len()).field("meta_len", &self.meta.len()).finish()
    }
}

impl Reply {
    #[inline]
    pub(super) fn view(&self) -> ReplyView<'_> {
        ReplyView { body: self.body(), meta: self.meta() }
    }

    /// A copy of metadata and of a body, each byte read once.
    ///
    /// # Safety
    /// So many bytes are readable at both; another process may write them meanwhile. Both lengths are below 2^31.
    #[inline]
    pub(crate) unsafe fn copy(meta: *const u8, meta_len: usize, body: *const u8, body_len: usize) -> Self {
        let len = meta_len + body_len;
        if len > SHORT {
            // SAFETY: passed on.
            return unsafe { Self::copy_long(meta, meta_len, body, body_len) };
        }
        let mut bytes = ZERO;
        // SAFETY: there is room for both, and `bytes` is this function's own; the rest is the caller's.
        unsafe {
            if meta_len != 0 {
                bytes.as_mut_ptr().copy_from_nonoverlapping(meta, meta_len);
            }
            bytes.as_mut_ptr().add(meta_len).copy_from_nonoverlapping(body, body_len);
        }
        Self(Data::Short { len: len as u32, meta_len: meta_len as u32, bytes })
    }

    /// A body of `len` bytes without metadata.
    #[inline(always)]
    pub(super) fn short(bytes: ShortBytes, len: usize) -> Self {
        debug_assert!(len <= SHORT);
        Self(Data::Short { len: len as u32, meta_len: 0, bytes })
    }

    /// [`copy`](Self::copy) for the bindings: not part of the stable API.
    ///
    /// # Safety
    /// So many bytes are readable at both; another process may write them meanwhile. Both lengths are below 2^31.
    #[doc(hidden)]
    pub unsafe fn from_parts(meta: *const u8, meta_len: usize, body: *const u8, body_len: usize) -> Self {
        // SAFETY: the caller's.
        unsafe { Self::copy(meta, meta_len, body, body_len) }
    }

    /// # Safety
    /// As for [`copy`](Self::copy).
    #[inline(never)]
    unsafe fn copy_long(meta: *const u8, meta_len: usize, body: *const u8, body_len: usize) -> Self {
        let mut data: Vec<u8> = Vec::with_capacity(meta_len + body_len);
        // SAFETY: there is room for both; the rest is the caller's.
        unsafe {
            data.as_mut_ptr().copy_from_nonoverlapping(meta, meta_len);
            data.as_mut_ptr().add(meta_len).copy_from_nonoverlapping(body, body_len);
            data.set_len(meta_len + body_len);
        }
        Self(Data::Long { data, meta_len })
    }

    /// The reply's bytes.
    #[inline]
    pub fn body(&self) -> &[u8] {
        match &self.0 {
            Data::Short { len, meta_len, bytes } => &bytes.as_bytes()[*meta_len as usize..*len as usize],
            Data::Long { data, meta_len } => &data[*meta_len..],
        }
    }

    /// The reply's metadata; empty if the server gave none.
    #[inline]
    pub fn meta(&self) -> &[u8] {
        match &self.0 {
            Data::Short { meta_len, bytes, .. } => &bytes.as_bytes()[..*meta_len as usize],
            Data::Long { data, meta_len } => &data[..*meta_len],
        }
    }

    /// The reply's bytes, without a copy where there is no metadata and it is not short.
    pub fn into_body(self) -> Vec<u8> {
        match self.0 {
            Data::Short { .. } => self.body().to_vec(),
            Data::Long { mut data, meta_len } => {
                data.drain(..meta_len);
                data
            }
        }
    }
}

impl Default for Reply {
    /// An empty one.
    fn default() -> Self {
        Self::short(ZERO, 0)
    }
}

impl PartialEq for Reply {
    fn eq(&self, other: &Self) -> bool {
        self.meta() == other.meta() && self.body() == other.body()
    }
}

impl Eq for Reply {}

#[cfg(test)]
impl Reply {
    /// `data` begins with `meta_len` bytes of metadata.
    pub(crate) fn new(data: &[u8], meta_len: usize) -> Self {
        let (meta, body) = data.split_at(meta_len);
        // SAFETY: both are slices.
        unsafe { Self::copy(meta.as_ptr(), meta.len(), body.as_ptr(), body.len()) }
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
        for len in [4, SHORT - 4, SHORT - 3, 1000] {
            let data = [b"meta", &vec![b'b'; len][..]].concat();
            let reply = Reply::new(&data, 4);
            assert_eq!((reply.meta(), reply.body()), (&b"meta"[..], &data[4..]));
            assert_eq!(reply.clone(), reply);
            assert_ne!(reply, Reply::new(&data, 5));
            assert_eq!(reply.into_body(), &data[4..]);
        }
        assert_eq!(Reply::default(), Reply::new(b"", 0));
    }
}
