//! libuv's watch over a descriptor, by the symbols that the node executable exports.
//! (<https://docs.libuv.org/en/v1.x/poll.html>; the functions used are part of its stable ABI.)

use crate::wakeups::Set;
use napi::bindgen_prelude::*;
use napi::{check_status, sys};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// `uv_handle_type` of a poll handle.
const UV_POLL: c_int = 8;
/// `uv_poll_event`.
const UV_READABLE: c_int = 1;

type PollCallback = unsafe extern "C" fn(handle: *mut c_void, status: c_int, events: c_int);
type CloseCallback = unsafe extern "C" fn(handle: *mut c_void);

/// libuv's functions.
#[derive(Clone, Copy)]
struct Uv {
    handle_size: unsafe extern "C" fn(c_int) -> usize,
    set_data: unsafe extern "C" fn(*mut c_void, *mut c_void),
    poll_init: unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int,
    poll_start: unsafe extern "C" fn(*mut c_void, c_int, PollCallback) -> c_int,
    unref: unsafe extern "C" fn(*mut c_void),
    close: unsafe extern "C" fn(*mut c_void, CloseCallback),
}

impl Uv {
    /// `None` where the process does not export them.
    fn find() -> Option<Self> {
        /// # Safety
        /// `F` is the type of the function of this name.
        unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
            const { assert!(size_of::<F>() == size_of::<*mut c_void>()) }
            // SAFETY: a search of the process's symbols by a terminated name.
            let address = NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })?;
            // SAFETY: the caller knows the type; a function pointer is an address.
            Some(unsafe { std::mem::transmute_copy::<NonNull<c_void>, F>(&address) })
        }
        // SAFETY: libuv documents the functions with the types of the fields.
        unsafe {
            Some(Self {
                handle_size: symbol(c"uv_handle_size")?,
                set_data: symbol(c"uv_handle_set_data")?,
                poll_init: symbol(c"uv_poll_init")?,
                poll_start: symbol(c"uv_poll_start")?,
                unref: symbol(c"uv_unref")?,
                close: symbol(c"uv_close")?,
            })
        }
    }
}

/// A watch that calls JavaScript on the loop's own thread. It does not keep the loop running.
pub(crate) struct Poll {
    /// Null once libuv has closed the handle: the environment's end may come before this is dropped.
    state: Rc<Cell<*mut State>>,
}

/// Lives from `Poll::new` until libuv has closed the handle. Used on the loop's thread only.
struct State {
    owner: Rc<Cell<*mut State>>,
    uv: Uv,
    /// `uv_poll_t`, of the size that libuv says, in 8-byte words.
    handle: Box<[u64]>,
    env: sys::napi_env,
    callback: sys::napi_ref,
    set: Arc<Set>,
    /// Has the environment wait until the handle is closed.
    hook: sys::napi_async_cleanup_hook_handle,
    closing: bool,
}

impl Poll {
    /// `None` if this process has no libuv for us.
    pub(crate) fn new(
        env: &Env,
        fd: RawFd,
        set: Arc<Set>,
        callback: &Function<'_, Vec<u32>, ()>,
    ) -> Result<Option<Self>> {
        let Some(uv) = Uv::find() else { return Ok(None) };
        let mut event_loop = ptr::null_mut();
        // SAFETY: the environment is the one that called us.
        check_status!(unsafe { sys::napi_get_uv_event_loop(env.raw(), &mut event_loop) })?;
        // SAFETY: no arguments that could be wrong.
        let words = unsafe { (uv.handle_size)(UV_POLL) }.div_ceil(8);
        let owner = Rc::new(Cell::new(ptr::null_mut()));
        let mut state = Box::new(State {
            owner: Rc::clone(&owner),
            uv,
            handle: vec![0; words].into_boxed_slice(),
            env: env.raw(),
            callback: ptr::null_mut(),
            set,
            hook: ptr::null_mut(),
            closing: false,
        });
        let handle = state.handle.as_mut_ptr().cast();
        // SAFETY: the loop is this thread's, the handle has the size that libuv asks for, the descriptor is open.
        if unsafe { (uv.poll_init)(event_loop.cast(), handle, fd) } != 0 {
            return Ok(None);
        }
        let state = Box::into_raw(state);
        owner.set(state);
        // SAFETY: the handle is initialized; `state` lives until it is closed.
        unsafe {
            (uv.set_data)(handle, state.cast());
            (uv.poll_start)(handle, UV_READABLE, on_readable);
            (uv.unref)(handle);
            check_status!(sys::napi_create_reference(env.raw(), callback.raw(), 1, &mut (*state).callback))?;
            check_status!(sys::napi_add_async_cleanup_hook(
                env.raw(),
                Some(on_teardown),
                state.cast(),
                &mut (*state).hook
            ))?;
        }
        Ok(Some(Self { state: owner }))
    }
}

/// Calls JavaScript with the tokens that are ready.
unsafe extern "C" fn on_readable(handle: *mut c_void, _: c_int, _: c_int) {
    // SAFETY: the state outlives the handle.
    let state = unsafe { &*state_of(handle) };
    let Ok(tokens) = state.set.wait(Some(Duration::ZERO)) else { return };
    if tokens.is_empty() || state.closing {
        return;
    }
    // SAFETY: on the environment's thread, outside of any call of JavaScript; what is made lies in the scope.
    unsafe {
        let env = state.env;
        let mut scope = ptr::null_mut();
        sys::napi_open_handle_scope(env, &mut scope);
        let (mut function, mut receiver, mut result) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        sys::napi_get_reference_value(env, state.callback, &mut function);
        sys::napi_get_global(env, &mut receiver);
        if let Ok(argument) = Vec::<u32>::to_napi_value(env, tokens) {
            sys::napi_make_callback(env, ptr::null_mut(), receiver, function, 1, &argument, &mut result);
        }
        let mut pending = false;
        sys::napi_is_exception_pending(env, &mut pending);
        if pending {
            let mut exception = ptr::null_mut();
            sys::napi_get_and_clear_last_exception(env, &mut exception);
            sys::napi_fatal_exception(env, exception);
        }
        sys::napi_close_handle_scope(env, scope);
    }
}

/// # Safety
/// A handle of [`Poll::new`]'s.
unsafe fn state_of(handle: *mut c_void) -> *mut State {
    // `uv_handle_t` begins with its `data`, as libuv documents for all handles.
    // SAFETY: the handle is at least one pointer long.
    unsafe { handle.cast::<*mut State>().read() }
}

unsafe extern "C" fn on_teardown(_: sys::napi_async_cleanup_hook_handle, state: *mut c_void) {
    // SAFETY: the hook is removed with the state.
    unsafe { close(state.cast()) };
}

/// # Safety
/// A state whose handle is not closed yet (`closing` may be set).
unsafe fn close(state: *mut State) {
    // SAFETY: alive until `on_closed`.
    let this = unsafe { &mut *state };
    if std::mem::replace(&mut this.closing, true) {
        return;
    }
    let handle = this.handle.as_mut_ptr().cast();
    // SAFETY: an open handle, on its loop's thread.
    unsafe { (this.uv.close)(handle, on_closed) };
}

unsafe extern "C" fn on_closed(handle: *mut c_void) {
    // SAFETY: libuv is done with the handle; this is the only box of it.
    let state = unsafe { Box::from_raw(state_of(handle)) };
    state.owner.set(ptr::null_mut());
    if !state.hook.is_null() {
        // SAFETY: the hook was added and not removed yet.
        unsafe { sys::napi_remove_async_cleanup_hook(state.hook) };
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let state = self.state.get();
        if !state.is_null() {
            // SAFETY: the state lives until the handle is closed, which clears the pointer; this is the loop's thread,
            // where objects of JavaScript are finalized.
            unsafe { close(state) };
        }
    }
}
