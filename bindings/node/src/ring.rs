//! Named rings, and pairs.

use crate::endpoint::{Core, NativeEndpoint};
use crate::error::{OrThrow, refuse};
use crate::opening::{Attempt, GoOn, blocking, promise};
use crate::options::{PairSettings, RingSettings, policy};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use ramway::{ErrorKind, RingBuilder};
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

fn builder(intent: &str, name: &str, settings: &RingSettings) -> Result<RingBuilder> {
    let builder = match intent {
        "create" => ramway::Ring::create(name),
        "open" => ramway::Ring::open(name),
        "openOrCreate" => ramway::Ring::open_or_create(name),
        _ => {
            let fd = descriptor(name)?;
            // SAFETY: it is not -1, and is only copied; one that is not open makes the copy fail.
            ramway::Ring::from_fd(unsafe { BorrowedFd::borrow_raw(fd) })
        }
    };
    settings.apply(builder)
}

fn descriptor(number: &str) -> Result<RawFd> {
    let fd = number.parse().ok().filter(|&fd: &RawFd| fd >= 0);
    fd.ok_or_else(|| refuse(ErrorKind::InvalidArgument, format_args!("{number} is no descriptor")))
}

/// The name that errors and users see: a descriptor's ring has none.
fn named(intent: &str, name: String) -> Option<String> {
    (intent != "fromFd").then_some(name)
}

/// Makes a ring without a name; gives its descriptor, which is the caller's.
#[napi]
pub fn unnamed(settings: RingSettings) -> Result<i32> {
    Ok(settings.apply(ramway::Ring::unnamed())?.into_fd().or_throw()?.into_raw_fd())
}

/// Closes a descriptor of [`unnamed`]'s, once.
#[napi]
pub fn close_descriptor(fd: i32) -> Result<()> {
    if fd < 0 {
        return Err(refuse(ErrorKind::InvalidArgument, format_args!("{fd} is no descriptor")));
    }
    // SAFETY: the caller has it from `unnamed`, and gives it up.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// `sender`: which end.
fn open(builder: RingBuilder, sender: bool, go_on: GoOn<'_>) -> ramway::Result<Core> {
    if sender {
        builder.sender_while(go_on).map(Core::Sender)
    } else {
        builder.receiver_while(go_on).map(Core::Receiver)
    }
}

/// An end of a ring. `intent` is "create", "open", "openOrCreate", or "fromFd", whose name is a descriptor's number.
#[napi(ts_return_type = "Promise<NativeEndpoint>")]
pub fn open_endpoint<'env>(
    env: &'env Env,
    attempt: &Attempt,
    sender: bool,
    intent: String,
    name: String,
    settings: RingSettings,
) -> Result<Object<'env>> {
    let builder = builder(&intent, &name, &settings)?;
    let finish = move |_: &Env, end| NativeEndpoint::wrap(end, named(&intent, name));
    promise(env, attempt, move |go_on| open(builder, sender, go_on), finish)
}

#[napi]
pub fn open_endpoint_sync(
    env: Env,
    sender: bool,
    intent: String,
    name: String,
    settings: RingSettings,
) -> Result<NativeEndpoint> {
    let builder = builder(&intent, &name, &settings)?;
    NativeEndpoint::wrap(blocking(&env, |go_on| open(builder, sender, go_on))?, named(&intent, name))
}

/// Both ends of a ring.
#[napi(object, object_from_js = false)]
pub struct NativePair {
    pub sender: NativeEndpoint,
    pub receiver: NativeEndpoint,
}

/// Both ends of a new ring without a name.
#[napi]
pub fn pair(capacity: f64, settings: PairSettings) -> Result<NativePair> {
    let policy = policy(settings.wait.as_deref())?;
    let align = settings.align.unwrap_or(16);
    let (sender, receiver) = ramway::Ring::pair_with(capacity as u64, align, policy, true).or_throw()?;
    Ok(NativePair {
        sender: NativeEndpoint::wrap(Core::Sender(sender), None)?,
        receiver: NativeEndpoint::wrap(Core::Receiver(receiver), None)?,
    })
}
