//! Ramway's bus through the C ABI: `libramway.so`, loaded when it is needed, every call through a function pointer as from
//! any language that has no more than C's calling convention.

use crate::Result;
use crate::case::{Burst, Mode};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

pub(crate) struct BusC;

const FILE: &str = "libramway.so";
const FOREVER: i64 = -1;
const WAIT_SPIN: u32 = 1;
const WAIT_HYBRID: u32 = 2;
const WAIT_BLOCK: u32 = 3;
/// How long the two sides wait for each other.
const WAIT_MAX_NS: i64 = 20_000_000_000;
/// Messages of one batch.
const BATCH_MAX: usize = 64;

// What capi/include/ramway.h says. Handles are opaque.

type Handle = *mut c_void;

#[repr(C)]
struct Options {
    size: usize,
    capacity: u64,
    capacity_back: u64,
    align: u32,
    flags: u32,
    mode: u32,
    wait_policy: u32,
    uids: *const u32,
    uid_count: u32,
    backlog: u32,
    timeout_ns: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Message {
    data: *const c_void,
    len: usize,
    tag: u64,
    type_id: u32,
}

/// The functions that are used here, in the order in which [`Api::load`] finds them.
struct Api {
    last_error: unsafe extern "C" fn() -> *const c_char,
    bind: unsafe extern "C" fn(*const c_char, *const Options, *mut Handle) -> c_int,
    accept: unsafe extern "C" fn(Handle, i64, *mut Handle) -> c_int,
    listener_close: unsafe extern "C" fn(Handle) -> c_int,
    connect: unsafe extern "C" fn(*const c_char, *const Options, *mut Handle) -> c_int,
    split: unsafe extern "C" fn(Handle, *mut Handle, *mut Handle) -> c_int,
    reserve: unsafe extern "C" fn(Handle, usize, i64, *mut *mut c_void) -> c_int,
    commit: unsafe extern "C" fn(Handle, u32, u64, usize) -> c_int,
    commit_unflushed: unsafe extern "C" fn(Handle, u32, u64, usize) -> c_int,
    recv: unsafe extern "C" fn(Handle, i64, *mut Message) -> c_int,
    recv_batch: unsafe extern "C" fn(Handle, i64, *mut Message, usize, *mut usize) -> c_int,
    release: unsafe extern "C" fn(Handle) -> c_int,
    sender_policy: unsafe extern "C" fn(Handle, u32) -> c_int,
    receiver_policy: unsafe extern "C" fn(Handle, u32) -> c_int,
    sender_close: unsafe extern "C" fn(Handle) -> c_int,
    receiver_close: unsafe extern "C" fn(Handle) -> c_int,
}

impl Api {
    /// The library's functions; it stays loaded.
    fn get() -> Result<&'static Self> {
        static API: OnceLock<std::result::Result<Api, String>> = OnceLock::new();
        Ok(API.get_or_init(|| Self::load().map_err(|error| error.to_string())).as_ref().map_err(Clone::clone)?)
    }

    fn load() -> Result<Self> {
        let path = find()?;
        // SAFETY: Ramway's own library, whose loading runs nothing but the C runtime's start.
        let library = unsafe { Library::new(&path) }.map_err(|error| format!("{}: {error}", path.display()))?;
        // For as long as the process lives: the pointers must not outlast it.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: the types are those of the header, whose version is compared first.
        unsafe {
            let version = library.get::<unsafe extern "C" fn() -> *const c_char>(b"ramway_version\0")?;
            let version = CStr::from_ptr(version()).to_string_lossy();
            if version != env!("CARGO_PKG_VERSION") {
                let ours = env!("CARGO_PKG_VERSION");
                return Err(format!("{} is of version {version}, this is {ours}", path.display()).into());
            }
            Ok(Self {
                last_error: *library.get(b"ramway_last_error\0")?,
                bind: *library.get(b"ramway_listener_bind\0")?,
                accept: *library.get(b"ramway_listener_accept\0")?,
                listener_close: *library.get(b"ramway_listener_close\0")?,
                connect: *library.get(b"ramway_bus_connect\0")?,
                split: *library.get(b"ramway_bus_split\0")?,
                reserve: *library.get(b"ramway_reserve\0")?,
                commit: *library.get(b"ramway_commit\0")?,
                commit_unflushed: *library.get(b"ramway_commit_unflushed\0")?,
                recv: *library.get(b"ramway_recv\0")?,
                recv_batch: *library.get(b"ramway_recv_batch\0")?,
                release: *library.get(b"ramway_release\0")?,
                sender_policy: *library.get(b"ramway_sender_set_wait_policy\0")?,
                receiver_policy: *library.get(b"ramway_receiver_set_wait_policy\0")?,
                sender_close: *library.get(b"ramway_sender_close\0")?,
                receiver_close: *library.get(b"ramway_receiver_close\0")?,
            })
        }
    }

    #[inline(always)]
    fn check(&self, status: c_int) -> Result<()> {
        if status == 0 { Ok(()) } else { Err(self.error()) }
    }

    #[cold]
    fn error(&self) -> crate::Failure {
        // SAFETY: never null, and valid until the next failure of this thread.
        let text = unsafe { CStr::from_ptr((self.last_error)()) };
        text.to_string_lossy().into_owned().into()
    }
}

/// Where the library is: as the environment says, or near this program, installed or just built.
fn find() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("RAMWAY_LIB") {
        return Ok(path.into());
    }
    let program = std::env::current_exe()?;
    let directory = program.parent().unwrap_or(Path::new("/"));
    let places = ["../lib", ".", "deps", ".."];
    let found = places.map(|place| directory.join(place).join(FILE)).into_iter().find(|path| path.exists());
    found.ok_or_else(|| {
        let how = "build it with `cargo build --release -p ramway-capi`, or say where it is in RAMWAY_LIB";
        format!("there is no {FILE} near {}: {how}", directory.display()).into()
    })
}

/// A bus taken apart.
struct Halves {
    api: &'static Api,
    sender: Handle,
    receiver: Handle,
    batch: [Message; BATCH_MAX],
}

impl Halves {
    fn open(api: &'static Api, bus: Handle) -> Result<Box<dyn End>> {
        let (mut sender, mut receiver) = (null_mut(), null_mut());
        // SAFETY: a bus that is given away here, and two places for its ends.
        api.check(unsafe { (api.split)(bus, &mut sender, &mut receiver) })?;
        let batch = [Message { data: null(), len: 0, tag: 0, type_id: 0 }; BATCH_MAX];
        Ok(Box::new(Self { api, sender, receiver, batch }))
    }
}

impl Drop for Halves {
    fn drop(&mut self) {
        // SAFETY: nobody uses the two after this.
        unsafe {
            (self.api.sender_close)(self.sender);
            (self.api.receiver_close)(self.receiver);
        }
    }
}

/// A listener that is closed on every way out.
struct Listener {
    api: &'static Api,
    handle: Handle,
}

impl Listener {
    /// The one connection, after which nobody listens any more.
    fn accept(self) -> Result<Box<dyn End>> {
        let mut bus = null_mut();
        // SAFETY: a listener that lives, and a place for the bus.
        self.api.check(unsafe { (self.api.accept)(self.handle, WAIT_MAX_NS, &mut bus) })?;
        Halves::open(self.api, bus)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // SAFETY: nobody uses it after this.
        unsafe { (self.api.listener_close)(self.handle) };
    }
}

fn options(capacity: u64) -> Options {
    Options {
        size: size_of::<Options>(),
        capacity,
        capacity_back: 0,
        align: 0,
        flags: 0,
        mode: 0,
        wait_policy: 0,
        uids: null(),
        uid_count: 0,
        backlog: 0,
        timeout_ns: WAIT_MAX_NS,
    }
}

impl Mechanism for BusC {
    fn about(&self) -> About {
        let what = "a bus through the C ABI, by function pointers into libramway.so, in place";
        About::new("bus-c", Kind::Ramway, false, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        super::ring::can(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let api = Api::get()?;
        let path = setup.directory.join("bus-c").to_str().ok_or("the directory's name is not UTF-8")?.to_owned();
        let name = CString::new(path.as_str())?;
        let mut handle = null_mut();
        // SAFETY: a string, options and a place for the handle, all of which outlive the call.
        api.check(unsafe { (api.bind)(name.as_ptr(), &options(setup.capacity), &mut handle) })?;
        let listener = Listener { api, handle };
        Ok(Prepared::new(path, move || listener.accept()))
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        let api = Api::get()?;
        let (name, mut bus) = (CString::new(ticket)?, null_mut());
        // SAFETY: a string, options and a place for the bus, all of which outlive the call.
        api.check(unsafe { (api.connect)(name.as_ptr(), &options(0), &mut bus) })?;
        Halves::open(api, bus)
    }
}

impl Channel for Halves {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        let policy = match mode {
            Mode::Spin | Mode::Each | Mode::Batch => WAIT_SPIN,
            Mode::Hybrid => WAIT_HYBRID,
            Mode::Block => WAIT_BLOCK,
        };
        // SAFETY: live handles.
        unsafe {
            self.api.check((self.api.sender_policy)(self.sender, policy))?;
            self.api.check((self.api.receiver_policy)(self.receiver, policy))
        }
    }

    #[inline(always)]
    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let Self { api, sender, .. } = *self;
        let mut room = null_mut();
        // SAFETY: a live handle; the slot has `size` bytes that are this side's until it is committed.
        unsafe {
            api.check((api.reserve)(sender, size, FOREVER, &mut room))?;
            fill(std::slice::from_raw_parts_mut(room.cast(), size));
            let commit = if flush { api.commit } else { api.commit_unflushed };
            api.check(commit(sender, 0, 0, size))
        }
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let Self { api, receiver, .. } = *self;
        let mut count = 1;
        // SAFETY: a live handle, and room for `max` messages.
        api.check(unsafe {
            if max == 1 {
                (api.recv)(receiver, FOREVER, &mut self.batch[0])
            } else {
                let max = BATCH_MAX.min(max as usize);
                (api.recv_batch)(receiver, FOREVER, self.batch.as_mut_ptr(), max, &mut count)
            }
        })?;
        for message in &self.batch[..count] {
            if message.len != size {
                return Err("the message received is not as long as the one sent".into());
            }
            // SAFETY: `size` bytes, which stay until `release`.
            read(unsafe { std::slice::from_raw_parts(message.data.cast(), size) });
        }
        // SAFETY: a live handle; nothing refers to the messages any more.
        api.check(unsafe { (api.release)(receiver) })?;
        Ok(count as u32)
    }
}
