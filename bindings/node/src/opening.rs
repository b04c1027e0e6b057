//! Calls that may wait (for a name, a role, a listener, memory), kept off the event loop.
//!
//! Each gets a thread of its own: libuv's pool has four, and four connectors that wait would hold up every file that the
//! program reads.

use crate::error::{OrThrow, os, thrown};
use napi::bindgen_prelude::*;
use napi::sys;
use napi_derive::napi;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a call that waits asks now and then: whether it is to go on.
pub(crate) type GoOn<'a> = &'a dyn Fn() -> bool;

/// One call that may wait. It is given up when this is collected, too: with its environment, say.
#[napi]
pub struct Attempt {
    given_up: Arc<AtomicBool>,
}

#[napi]
impl Attempt {
    #[napi(constructor)]
    #[allow(clippy::new_without_default, reason = "made by JavaScript alone")]
    pub fn new() -> Self {
        Self { given_up: Arc::new(AtomicBool::new(false)) }
    }

    /// Ends the call within 100 ms, with ERR_RAMWAY_INTERRUPTED, if it still waits then.
    #[napi]
    pub fn give_up(&self) {
        // Relaxed: the flag is all that there is to see.
        self.given_up.store(true, Ordering::Relaxed);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Does `work` in a thread and, back in JavaScript's, resolves the promise with what `finish` makes of its outcome.
pub(crate) fn promise<'env, T, J>(
    env: &'env Env,
    attempt: &Attempt,
    work: impl FnOnce(GoOn<'_>) -> ramway::Result<T> + Send + 'static,
    finish: impl FnOnce(&Env, T) -> Result<J> + Send + 'static,
) -> Result<Object<'env>>
where
    T: Send + 'static,
    J: ToNapiValue + 'static,
{
    let given_up = Arc::clone(&attempt.given_up);
    background(
        env,
        "ramway-open",
        // Relaxed: as in `give_up`.
        move || work(&|| !given_up.load(Ordering::Relaxed)),
        finish,
    )
}

/// [`promise`] for work that does not wait, but takes longer than an event loop should.
pub(crate) fn background<'env, T, J>(
    env: &'env Env,
    name: &str,
    work: impl FnOnce() -> ramway::Result<T> + Send + 'static,
    finish: impl FnOnce(&Env, T) -> Result<J> + Send + 'static,
) -> Result<Object<'env>>
where
    T: Send + 'static,
    J: ToNapiValue + 'static,
{
    let (deferred, promise) = env.create_deferred()?;
    let to_settle = deferred.clone();
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let outcome = work();
        // Where the environment has gone meanwhile the outcome is dropped: a handle is closed by that.
        to_settle.resolve(move |env| finish(&env, outcome.map_err(|e| thrown(&e))?));
    });
    if let Err(e) = spawned {
        deferred.reject(os(&e, "a thread to open in"));
    }
    Ok(promise)
}

/// Does `work` here. It is to stop once the runtime stops this thread: a worker that is terminated, say.
pub(crate) fn blocking<T>(env: &Env, work: impl FnOnce(GoOn<'_>) -> ramway::Result<T>) -> Result<T> {
    let env = env.raw();
    let mut global = ptr::null_mut();
    // SAFETY: the environment is the one that called us.
    unsafe { sys::napi_get_global(env, &mut global) };
    let runs = || {
        let mut has = false;
        // SAFETY: as above, on its thread; the handle lives until our caller returns to JavaScript. The answer does not
        // matter: an environment that may not run JavaScript any more refuses the question.
        unsafe { sys::napi_has_named_property(env, global, c"Object".as_ptr(), &mut has) == sys::Status::napi_ok }
    };
    work(&runs).or_throw()
}
