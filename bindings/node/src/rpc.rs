//! What the native halves of RPC share: memory that both halves read and write, so that a call into native code passes few
//! values and brings back many.

use crate::buffer::{Buffer, over};
use napi::bindgen_prelude::*;
use std::cell::UnsafeCell;
use std::sync::Arc;

/// Memory that a native half and its JavaScript half share. Only the JavaScript thread touches it, one half at a time: native
/// code while it is called.
pub(crate) struct Board {
    memory: Box<[UnsafeCell<u64>]>,
}

// SAFETY: whoever touches the memory is on the JavaScript thread; another one only ever drops it.
unsafe impl Send for Board {}
// SAFETY: as above.
unsafe impl Sync for Board {}

impl Board {
    /// `len` bytes, all 0; a multiple of 8.
    pub(crate) fn new(len: usize) -> Arc<Self> {
        debug_assert_eq!(len % 8, 0);
        Arc::new(Self { memory: (0..len / 8).map(|_| UnsafeCell::new(0)).collect() })
    }

    /// The memory for JavaScript, where it lives as long as this buffer.
    pub(crate) fn buffer(self: &Arc<Self>, env: &Env) -> Result<Buffer> {
        // SAFETY: the board keeps its memory, for as long as the buffer holds the board.
        unsafe { over(env, self.start(), 8 * self.memory.len(), Arc::clone(self)) }
    }

    fn start(&self) -> *mut u8 {
        self.memory.as_ptr().cast::<u8>().cast_mut()
    }

    /// Where `len` bytes from `at` on lie.
    fn place(&self, at: usize, len: usize) -> *mut u8 {
        assert!(at.checked_add(len).is_some_and(|end| end <= 8 * self.memory.len()), "beyond the board");
        self.start().wrapping_add(at)
    }

    /// Stores a number of 32 bits at word `index`.
    pub(crate) fn set(&self, index: usize, value: u32) {
        // SAFETY: within the memory, at a multiple of 4; nothing else is in it while this runs.
        unsafe { self.place(4 * index, 4).cast::<u32>().write(value) };
    }

    /// Stores a floating-point number at double word `index`.
    pub(crate) fn set_number(&self, index: usize, value: f64) {
        // SAFETY: as above, at a multiple of 8.
        unsafe { self.place(8 * index, 8).cast::<f64>().write(value) };
    }

    /// Copies bytes to `at`.
    pub(crate) fn put(&self, at: usize, bytes: &[u8]) {
        // SAFETY: as above; no bytes of a board are ever borrowed while it is written.
        unsafe { self.place(at, bytes.len()).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// The bytes from `at` on, for as long as native code runs and writes nothing there.
    ///
    /// # Safety
    /// Nothing is written to these bytes while the slice lives.
    pub(crate) unsafe fn bytes(&self, at: usize, len: usize) -> &[u8] {
        // SAFETY: within the memory, which lives as long as `self`; the caller's promise.
        unsafe { std::slice::from_raw_parts(self.place(at, len), len) }
    }
}

/// Bytes that JavaScript gets as they are, without a copy.
pub(crate) fn given(env: &Env, mut bytes: Vec<u8>) -> Result<Buffer> {
    let (start, len) = (bytes.as_mut_ptr(), bytes.len());
    // SAFETY: the buffer's owner keeps the bytes where they are, and nothing else uses them.
    unsafe { over(env, start, len, bytes) }
}

/// The names of the kinds of errors, by their numbers; '' where there is none.
#[napi_derive::napi]
pub fn error_kinds() -> Vec<&'static str> {
    let mut names = vec![""];
    while let Some(kind) = ramway::ErrorKind::from_code(names.len() as i32) {
        names.push(kind.name());
    }
    names
}
