//! Listeners.

use crate::bus::NativeBus;
use crate::error::OrThrow;
use crate::handle::Shared;
use crate::opening::{Attempt, GoOn, background, promise};
use crate::options::{ListenSettings, milliseconds};
use crate::teardown::close_with;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use ramway::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

/// Accepts connections. `lib/listener.ts` waits for its descriptor.
#[napi]
pub struct NativeListener {
    /// A thread that accepts holds one more reference to the listener.
    core: Arc<Shared<Arc<ramway::Listener>>>,
}

/// Starts to listen at `name`. With `one`, only the first connector that comes through is ever told that it is welcome.
#[napi(ts_return_type = "Promise<NativeListener>")]
pub fn bind<'env>(
    env: &'env Env,
    attempt: &Attempt,
    name: String,
    settings: ListenSettings,
    one: bool,
) -> Result<Object<'env>> {
    let builder = settings.builder(&name)?;
    let work = move |_: GoOn<'_>| if one { builder.bind_one() } else { builder.bind() };
    promise(env, attempt, work, NativeListener::wrap)
}

#[napi]
pub fn bind_sync(env: Env, name: String, settings: ListenSettings, one: bool) -> Result<NativeListener> {
    let builder = settings.builder(&name)?;
    let core = if one { builder.bind_one() } else { builder.bind() }.or_throw()?;
    NativeListener::wrap(&env, core)
}

impl NativeListener {
    fn wrap(env: &Env, core: ramway::Listener) -> Result<Self> {
        let core = Shared::new(Arc::new(core), "listener");
        close_with(env, &core)?;
        Ok(Self { core })
    }

    fn core(&self) -> Result<Arc<ramway::Listener>> {
        self.core.with(|core| Ok(Arc::clone(core)))
    }
}

#[napi]
impl NativeListener {
    /// Readable when `accept` may get further.
    #[napi(getter)]
    pub fn fd(&self) -> Result<i32> {
        Ok(self.core()?.as_fd().as_raw_fd())
    }

    #[napi(getter)]
    pub fn path(&self) -> Result<String> {
        Ok(self.core()?.path().to_string_lossy().into_owned())
    }

    #[napi(getter)]
    pub fn refused(&self) -> Result<f64> {
        Ok(self.core()?.refused() as f64)
    }

    #[napi(getter)]
    pub fn last_refusal(&self) -> Result<Option<String>> {
        Ok(self.core()?.last_refusal())
    }

    /// Whether the descriptor is readable now.
    #[napi]
    pub fn ready(&self) -> Result<bool> {
        let mut poll = libc::pollfd { fd: self.fd()?, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, whose descriptor the listener has open. An error reads as "not now".
        Ok(unsafe { libc::poll(&mut poll, 1, 0) } > 0)
    }

    /// Milliseconds until `accept` is to be called although nothing is readable: a connector's time is up then.
    #[napi(getter)]
    pub fn due_in(&self) -> Result<Option<f64>> {
        Ok(self.core()?.due_in().map(|due| due.as_secs_f64() * 1e3))
    }

    /// Goes on with the handshakes as far as they go, and gives a bus if that completed one. In a thread, because what a
    /// bus takes most of its time for is its memory.
    #[napi(ts_return_type = "Promise<NativeBus | null>")]
    pub fn accept<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let core = self.core()?;
        let work = move || accept(&core, Duration::ZERO);
        background(env, "ramway-accept", work, |_, bus| bus.map(NativeBus::wrap).transpose())
    }

    /// Waits for a bus here, for at most `timeout` milliseconds.
    #[napi]
    pub fn accept_sync(&self, timeout: f64) -> Result<Option<NativeBus>> {
        let core = self.core()?;
        accept(&core, milliseconds(timeout)).or_throw()?.map(NativeBus::wrap).transpose()
    }

    /// Stops to listen. The name goes now, or when a thread that accepts is done.
    #[napi]
    pub fn close(&self) {
        drop(self.core.take());
    }
}

fn accept(listener: &ramway::Listener, timeout: Duration) -> ramway::Result<Option<ramway::Bus>> {
    match listener.accept_timeout(timeout) {
        Ok(bus) => Ok(Some(bus)),
        Err(e) if e.kind() == ErrorKind::TimedOut => Ok(None),
        Err(e) => Err(e),
    }
}
