//! Buses: what a connection gives.

use crate::endpoint::{Core, NativeEndpoint};
use crate::opening::{Attempt, blocking, promise};
use crate::options::ConnectSettings;
use napi::bindgen_prelude::*;
use napi_derive::napi;

/// The ends of a bus, and who has the other ones.
#[napi(object, object_from_js = false)]
pub struct NativeBus {
    /// Missing where this direction has no capacity.
    pub sender: Option<NativeEndpoint>,
    /// Missing where this direction has no capacity.
    pub receiver: Option<NativeEndpoint>,
    pub peer_uid: u32,
    pub peer_pid: Option<u32>,
}

impl NativeBus {
    pub(crate) fn wrap(core: ramway::Bus) -> Result<Self> {
        let (peer_uid, peer_pid) = (core.peer_uid(), core.peer_pid());
        let (sender, receiver) = core.split();
        Ok(Self {
            sender: sender.map(|end| NativeEndpoint::wrap(Core::Sender(end), None)).transpose()?,
            receiver: receiver.map(|end| NativeEndpoint::wrap(Core::Receiver(end), None)).transpose()?,
            peer_uid,
            peer_pid,
        })
    }
}

/// Connects to the listener at `name`.
#[napi(ts_return_type = "Promise<NativeBus>")]
pub fn connect<'env>(
    env: &'env Env,
    attempt: &Attempt,
    name: String,
    settings: ConnectSettings,
) -> Result<Object<'env>> {
    let connector = settings.connector(&name)?;
    promise(env, attempt, move |go_on| connector.connect_while(go_on), |_, bus| NativeBus::wrap(bus))
}

#[napi]
pub fn connect_sync(env: Env, name: String, settings: ConnectSettings) -> Result<NativeBus> {
    let connector = settings.connector(&name)?;
    NativeBus::wrap(blocking(&env, |go_on| connector.connect_while(go_on))?)
}
