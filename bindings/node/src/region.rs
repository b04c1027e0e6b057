//! Regions.

use crate::apart::Apart;
use crate::buffer::{self, Buffer, Owner};
use crate::error::{OrThrow, refuse};
use crate::handle::Shared;
use crate::opening::{Attempt, GoOn, blocking, promise};
use crate::options::{RegionSettings, milliseconds};
use crate::teardown::close_with;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use ramway::{ErrorKind, Region, RegionBuilder};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Named shared bytes. `lib/region.ts` waits for its descriptor.
#[napi]
pub struct NativeRegion {
    /// An ArrayBuffer holds the memory, and not this.
    core: Arc<Shared<Region>>,
    /// The memory, held longer than `core` does; `None` once it is closed.
    memory: Option<Arc<Apart<Owner>>>,
    name: String,
    /// A buffer was handed out.
    viewed: AtomicBool,
}

/// `intent` is "create", "open" (whatever the size) or "openOrCreate".
fn make(builder: &RegionBuilder, intent: &str, name: &str, size: f64, go_on: GoOn<'_>) -> ramway::Result<Region> {
    match intent {
        "create" => builder.create_while(name, size as u64, go_on),
        "open" => builder.open_while(name, go_on),
        _ => builder.open_or_create_while(name, size as u64, go_on),
    }
}

#[napi(ts_return_type = "Promise<NativeRegion>")]
pub fn open_region<'env>(
    env: &'env Env,
    attempt: &Attempt,
    intent: String,
    name: String,
    size: f64,
    settings: RegionSettings,
) -> Result<Object<'env>> {
    let builder = settings.builder()?;
    let shown = name.clone();
    let work = move |go_on: GoOn<'_>| make(&builder, &intent, &name, size, go_on);
    promise(env, attempt, work, |env, core| NativeRegion::wrap(env, core, shown))
}

#[napi]
pub fn open_region_sync(
    env: Env,
    intent: String,
    name: String,
    size: f64,
    settings: RegionSettings,
) -> Result<NativeRegion> {
    let builder = settings.builder()?;
    let core = blocking(&env, |go_on| make(&builder, &intent, &name, size, go_on))?;
    NativeRegion::wrap(&env, core, name)
}

impl NativeRegion {
    fn wrap(env: &Env, core: Region, name: String) -> Result<Self> {
        let memory = Apart::new(core.mapping(), core.capacity() as usize);
        let core = Shared::new(core, "region");
        close_with(env, &core)?;
        Ok(Self { core, memory: Some(memory), name, viewed: AtomicBool::new(false) })
    }
}

#[napi]
impl NativeRegion {
    #[napi(getter)]
    pub fn size(&self) -> Result<f64> {
        self.core.with(|core| Ok(core.len() as f64))
    }

    #[napi(getter)]
    pub fn read_only(&self) -> Result<bool> {
        self.core.with(|core| Ok(core.is_read_only()))
    }

    /// A new ArrayBuffer over the region's bytes. They stay mapped as long as it lives; the name does not stay with it.
    #[napi(ts_return_type = "ArrayBuffer")]
    pub fn buffer(&self, env: Env) -> Result<Buffer> {
        let (start, len) = self.core.with(|core| {
            if core.is_read_only() {
                let name = &self.name;
                let text = format!("the region '{name}' was opened read-only, and JavaScript has no read-only views");
                return Err(refuse(ErrorKind::Unsupported, text + ": use readAt"));
            }
            // `Detached` in a fork's child: there the bytes are the parent's.
            core.notifications().or_throw()?;
            Ok((core.as_ptr(), core.len() as usize))
        })?;
        let memory: Arc<Apart<Owner>> = self.memory.clone().expect("there until it is closed");
        // Relaxed: only this thread uses it.
        self.viewed.store(true, Ordering::Relaxed);
        // SAFETY: `len` bytes are mapped there for reading and writing, as long as the mapping lives: `close` ends that
        // early only where all buffers are detached.
        unsafe { buffer::over(&env, start, len, memory) }
    }

    /// Copies bytes out, from `offset` on.
    #[napi]
    pub fn read_at(&self, offset: f64, mut to: Uint8ArraySlice<'_>) -> Result<()> {
        // SAFETY: nobody else uses the array while this call lasts.
        let to = unsafe { to.as_mut() };
        self.core.with(|core| core.read_at(offset as u64, to).or_throw())
    }

    /// Copies bytes in, from `offset` on.
    #[napi]
    pub fn write_at(&self, offset: f64, from: Uint8ArraySlice<'_>) -> Result<()> {
        self.core.with(|core| core.write_at(offset as u64, &from).or_throw())
    }

    #[napi]
    pub fn notify(&self) -> Result<()> {
        self.core.with(|core| core.notify().or_throw())
    }

    /// A number that changes by 2 with each notification.
    #[napi(getter)]
    pub fn notifications(&self) -> Result<u32> {
        self.core.with(|core| core.notifications().or_throw())
    }

    /// Readable, once `arm` said no, when it would say yes.
    #[napi(getter)]
    pub fn fd(&self) -> Result<i32> {
        self.core.with(|core| Ok(core.readiness().or_throw()?.as_raw_fd()))
    }

    /// Whether the number of notifications is another one than `known`; if not, the descriptor is armed.
    #[napi]
    pub fn arm(&self, known: u32) -> Result<bool> {
        self.core.with(|core| {
            core.readiness().or_throw()?;
            loop {
                let more = core.try_wait().or_throw()?;
                if core.notifications().or_throw()? != known {
                    return Ok(true);
                }
                if !more {
                    return Ok(false);
                }
            }
        })
    }

    /// Waits here until the number of notifications is another one than `known`, for at most `timeout` milliseconds.
    #[napi]
    pub fn wait_since(&self, known: u32, timeout: f64) -> Result<Option<u32>> {
        self.core.with(|core| core.wait_since(known, Some(milliseconds(timeout))).or_throw())
    }

    /// All buffers are detached, unless some were `moved`, transferred to an owner that keeps the memory.
    #[napi]
    pub fn close(&mut self, moved: bool) {
        // In this order: the name is free when this returns, and the memory is given back meanwhile.
        drop(self.core.take());
        if let Some(memory) = self.memory.take().filter(|_| !moved) {
            // Relaxed: as in `buffer`.
            memory.close(self.viewed.load(Ordering::Relaxed));
        }
    }
}
