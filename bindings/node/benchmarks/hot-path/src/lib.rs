//! A ring with the frames of Ramway's format, in this process's memory, for one question: what does a message cost that is
//! sent or received by a call into native code, and what one that JavaScript sends or receives by itself, on typed arrays
//! over the same memory? No waiting, no peer, no check of what a peer wrote: only what the two ways differ in.

use napi::bindgen_prelude::*;
use napi::{check_status, sys};
use napi_derive::napi;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of data.
const CAPACITY: usize = 1 << 20;
const HEADER: usize = 4096;
const TAIL: usize = 0x80;
const HEAD: usize = 0x100;

/// The memory: a page for the positions, then the data twice back to back. Mapped as long as the process lives.
#[derive(Clone, Copy)]
struct Memory(*mut u8);

impl Memory {
    fn map() -> Result<Self> {
        // SAFETY: maps fresh address space, and the file over parts of it; every result is checked.
        unsafe {
            let file = libc::memfd_create(c"hot-path".as_ptr(), libc::MFD_CLOEXEC);
            let size = HEADER + CAPACITY;
            if file < 0 || libc::ftruncate(file, size as libc::off_t) != 0 {
                return Err(Error::from_reason(std::io::Error::last_os_error().to_string()));
            }
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let base = libc::mmap(ptr::null_mut(), size + CAPACITY, libc::PROT_NONE, private, -1, 0).cast::<u8>();
            let shared = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE;
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let all = base.cast::<c_void>() != libc::MAP_FAILED
                && libc::mmap(base.cast(), size, rights, shared, file, 0) != libc::MAP_FAILED
                && libc::mmap(base.add(size).cast(), CAPACITY, rights, shared, file, HEADER as libc::off_t)
                    != libc::MAP_FAILED;
            libc::close(file);
            if all { Ok(Self(base)) } else { Err(Error::from_reason("mmap")) }
        }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: mapped forever, aligned, and JavaScript writes it as one word too.
        unsafe { &*self.0.add(offset).cast::<AtomicU64>() }
    }

    fn frame(self, position: u64) -> *mut u8 {
        self.0.wrapping_add(HEADER + (position as usize & (CAPACITY - 1)))
    }
}

fn step(len: usize) -> u64 {
    (len as u64 + 31) & !15
}

/// A class with a call for each message, as a binding by napi-rs has it without further thought.
#[napi]
pub struct NativeRing {
    memory: Memory,
    head: u64,
}

#[napi]
impl NativeRing {
    #[napi(constructor)]
    pub fn new() -> Result<Self> {
        Ok(Self { memory: Memory::map()?, head: 0 })
    }

    /// The positions, for typed arrays.
    #[napi(ts_return_type = "ArrayBuffer")]
    pub fn header(&self, env: Env) -> Result<Unknown<'static>> {
        // SAFETY: mapped forever.
        unsafe { buffer(env.raw(), self.memory.0, HEADER) }
    }

    /// The data, twice.
    #[napi(ts_return_type = "ArrayBuffer")]
    pub fn data(&self, env: Env) -> Result<Unknown<'static>> {
        // SAFETY: mapped forever.
        unsafe { buffer(env.raw(), self.memory.frame(0), 2 * CAPACITY) }
    }

    /// Publishes messages of `size` bytes, all with different bytes; there has to be room.
    #[napi]
    pub fn fill(&mut self, count: u32, size: u32) {
        let message: Vec<u8> = (0..size as usize).map(|at| at as u8).collect();
        for _ in 0..count {
            self.put(&message);
        }
    }

    /// Releases everything.
    #[napi]
    pub fn clear(&mut self) {
        self.head = self.memory.word(TAIL).load(Ordering::Acquire);
        self.release();
    }

    #[napi]
    pub fn nothing(&self) {}

    /// False: there is no room.
    #[napi]
    pub fn send(&mut self, message: Uint8ArraySlice<'_>) -> bool {
        self.put(&message)
    }

    /// Copies the next message; its length, or -1.
    #[napi]
    pub fn recv_into(&mut self, mut target: Uint8ArraySlice<'_>) -> i32 {
        let Some((start, len)) = self.take() else { return -1 };
        // SAFETY: the frame lies in the ring until it is released below, and nobody else uses the target now.
        unsafe { target.as_mut()[..len].copy_from_slice(std::slice::from_raw_parts(start, len)) };
        self.release();
        len as i32
    }

    /// A copy of the next message in a Buffer of its own, or null.
    #[napi]
    pub fn recv_copy<'env>(&mut self, env: &'env Env) -> Result<Option<BufferSlice<'env>>> {
        let Some((start, len)) = self.take() else { return Ok(None) };
        // SAFETY: as above.
        let copy = BufferSlice::copy_from(env, unsafe { std::slice::from_raw_parts(start, len) })?;
        self.release();
        Ok(Some(copy))
    }

    /// The next message in place, or null. Detach its buffer, then `release`.
    #[napi(ts_return_type = "Uint8Array | null")]
    pub fn recv_view(&mut self, env: Env) -> Result<Option<Unknown<'static>>> {
        let Some((start, len)) = self.take() else { return Ok(None) };
        let mut view = ptr::null_mut();
        // SAFETY: mapped forever; the buffer was made for this array.
        unsafe {
            let buffer = buffer(env.raw(), start, len)?;
            let kind = sys::TypedarrayType::uint8_array;
            check_status!(sys::napi_create_typedarray(env.raw(), kind, len, buffer.raw(), 0, &mut view))?;
            Ok(Some(Unknown::from_napi_value(env.raw(), view)?))
        }
    }

    #[napi]
    pub fn release(&self) {
        self.memory.word(HEAD).store(self.head, Ordering::Release);
    }

    fn put(&self, message: &[u8]) -> bool {
        // Relaxed: only this side writes it.
        let tail = self.memory.word(TAIL).load(Ordering::Relaxed);
        let step = step(message.len());
        if tail + step - self.memory.word(HEAD).load(Ordering::Acquire) > CAPACITY as u64 {
            return false;
        }
        let frame = self.memory.frame(tail);
        // SAFETY: there is room, and the data is mapped twice.
        unsafe {
            frame.cast::<[u32; 4]>().write([message.len() as u32, 0, 0, 0]);
            ptr::copy_nonoverlapping(message.as_ptr(), frame.add(16), message.len());
        }
        self.memory.word(TAIL).store(tail + step, Ordering::Release);
        true
    }

    fn take(&mut self) -> Option<(*mut u8, usize)> {
        if self.head == self.memory.word(TAIL).load(Ordering::Acquire) {
            return None;
        }
        let frame = self.memory.frame(self.head);
        // SAFETY: a whole frame lies there.
        let len = unsafe { frame.cast::<u32>().read() } as usize;
        self.head += step(len);
        Some((frame.wrapping_add(16), len))
    }
}

/// A function of napi-rs without arguments.
#[napi]
pub fn nothing() {}

/// One with two numbers.
#[napi]
pub fn add(a: i32, b: i32) -> i32 {
    a.wrapping_add(b)
}

/// `nothing`, `lend(offset, length)` of memory of their own and `detach(buffer)`, without napi-rs: what the interface itself
/// costs.
#[napi(
    ts_return_type = "{ nothing(): void; lend(offset: number, length: number): ArrayBuffer; detach(buffer: ArrayBuffer): void }"
)]
pub fn by_hand(env: Env) -> Result<Object<'static>> {
    let memory = Memory::map()?;
    let functions: [(&str, sys::napi_callback); 3] =
        [("nothing", Some(raw_nothing)), ("lend", Some(raw_lend)), ("detach", Some(raw_detach))];
    let mut object = ptr::null_mut();
    // SAFETY: the environment is the one that called us; names end with their length; the memory is mapped forever.
    unsafe {
        check_status!(sys::napi_create_object(env.raw(), &mut object))?;
        for (name, function) in functions {
            let (mut value, data) = (ptr::null_mut(), memory.0.cast());
            let length = name.len() as isize;
            check_status!(sys::napi_create_function(
                env.raw(),
                name.as_ptr().cast(),
                length,
                function,
                data,
                &mut value
            ))?;
            let mut key = ptr::null_mut();
            check_status!(sys::napi_create_string_utf8(env.raw(), name.as_ptr().cast(), length, &mut key))?;
            check_status!(sys::napi_set_property(env.raw(), object, key, value))?;
        }
        Object::from_napi_value(env.raw(), object)
    }
}

unsafe extern "C" fn raw_nothing(_: sys::napi_env, _: sys::napi_callback_info) -> sys::napi_value {
    ptr::null_mut()
}

unsafe extern "C" fn raw_lend(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let (mut count, mut arguments, mut data) = (2, [ptr::null_mut(); 2], ptr::null_mut());
    let (mut offset, mut len) = (0, 0);
    // SAFETY: called by the runtime, which fills all of it in; `data` is the memory that `by_hand` gave.
    unsafe {
        sys::napi_get_cb_info(env, info, &mut count, arguments.as_mut_ptr(), ptr::null_mut(), &mut data);
        sys::napi_get_value_uint32(env, arguments[0], &mut offset);
        sys::napi_get_value_uint32(env, arguments[1], &mut len);
        assert!(offset as usize + len as usize <= 2 * CAPACITY);
        let start = Memory(data.cast()).frame(0).wrapping_add(offset as usize);
        buffer(env, start, len as usize).map_or(ptr::null_mut(), |buffer| buffer.raw())
    }
}

unsafe extern "C" fn raw_detach(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let (mut count, mut buffer) = (1, ptr::null_mut());
    // SAFETY: called by the runtime; what is no buffer is refused by the call.
    unsafe {
        sys::napi_get_cb_info(env, info, &mut count, &mut buffer, ptr::null_mut(), ptr::null_mut());
        sys::napi_detach_arraybuffer(env, buffer);
    }
    ptr::null_mut()
}

/// # Safety
/// The bytes are mapped forever.
unsafe fn buffer(env: sys::napi_env, start: *mut u8, len: usize) -> Result<Unknown<'static>> {
    unsafe extern "C" fn nothing(_: sys::napi_env, _: *mut c_void, _: *mut c_void) {}
    let mut value = ptr::null_mut();
    // SAFETY: the caller's promise; the finalizer has nothing to free.
    unsafe {
        let made =
            sys::napi_create_external_arraybuffer(env, start.cast(), len, Some(nothing), ptr::null_mut(), &mut value);
        check_status!(made)?;
        Unknown::from_napi_value(env, value)
    }
}
