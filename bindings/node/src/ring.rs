//! Named rings, and pairs.

use crate::error::OrThrow;
use crate::opening::{Attempt, blocking, promise};
use crate::options::{PairSettings, RingSettings, policy};
use crate::receiver::NativeReceiver;
use crate::sender::NativeSender;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use ramway::RingBuilder;

fn builder(intent: &str, name: &str, settings: &RingSettings) -> RingBuilder {
    settings.apply(match intent {
        "create" => ramway::Ring::create(name),
        "open" => ramway::Ring::open(name),
        _ => ramway::Ring::open_or_create(name),
    })
}

/// A ring's sending end. `intent` is "create", "open" or "openOrCreate".
#[napi(ts_return_type = "Promise<NativeSender>")]
pub fn open_sender<'env>(
    env: &'env Env,
    attempt: &Attempt,
    intent: String,
    name: String,
    settings: RingSettings,
) -> Result<Object<'env>> {
    let builder = builder(&intent, &name, &settings);
    promise(env, attempt, |go_on| builder.sender_while(go_on), move |_, end| NativeSender::wrap(end, Some(name)))
}

#[napi]
pub fn open_sender_sync(env: Env, intent: String, name: String, settings: RingSettings) -> Result<NativeSender> {
    let builder = builder(&intent, &name, &settings);
    let end = blocking(&env, |go_on| builder.sender_while(go_on))?;
    NativeSender::wrap(end, Some(name))
}

/// A ring's receiving end.
#[napi(ts_return_type = "Promise<NativeReceiver>")]
pub fn open_receiver<'env>(
    env: &'env Env,
    attempt: &Attempt,
    intent: String,
    name: String,
    settings: RingSettings,
) -> Result<Object<'env>> {
    let builder = builder(&intent, &name, &settings);
    let finish = move |_: &Env, end| NativeReceiver::wrap(end, Some(name));
    promise(env, attempt, |go_on| builder.receiver_while(go_on), finish)
}

#[napi]
pub fn open_receiver_sync(env: Env, intent: String, name: String, settings: RingSettings) -> Result<NativeReceiver> {
    let builder = builder(&intent, &name, &settings);
    let end = blocking(&env, |go_on| builder.receiver_while(go_on))?;
    NativeReceiver::wrap(end, Some(name))
}

/// Both ends of a ring.
#[napi(object, object_from_js = false)]
pub struct NativePair {
    pub sender: NativeSender,
    pub receiver: NativeReceiver,
}

/// Both ends of a new ring without a name.
#[napi]
pub fn pair(capacity: f64, settings: PairSettings) -> Result<NativePair> {
    let policy = policy(settings.wait.as_deref());
    let align = settings.align.unwrap_or(16);
    let (sender, receiver) = ramway::Ring::pair_with(capacity as u64, align, policy, true).or_throw()?;
    Ok(NativePair { sender: NativeSender::wrap(sender, None)?, receiver: NativeReceiver::wrap(receiver, None)? })
}
