//! The link to the other bridges: the only place that knows Zenoh.

use crate::config::{self, Mode, Session, Tls};
use std::fmt;
use std::io::Read;
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::{CongestionControl, Priority};
use zenoh::sample::{Locality, SampleKind};

/// Why the link cannot do something.
#[derive(Debug)]
pub struct LinkError(String);

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LinkError {}

fn failed(doing: impl fmt::Display) -> impl FnOnce(zenoh::Error) -> LinkError {
    move |cause| LinkError(format!("{doing}: {cause}"))
}

/// A session with the other bridges.
#[derive(Clone)]
pub struct Link {
    session: zenoh::Session,
}

/// What is put under one key.
pub struct Outlet {
    publisher: Publisher<'static>,
}

/// What arrives under a key, as long as this lives.
pub struct Inlet {
    _subscriber: Subscriber<()>,
}

/// How a message is to travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It waits for room on the link. Credit keeps it from waiting long.
    Waiting,
    /// It is dropped where there is no room.
    Dropping,
}

/// What has arrived.
pub struct Arrived<'a> {
    /// Its key.
    pub key: &'a str,
    payload: &'a ZBytes,
    attachment: Option<&'a ZBytes>,
}

/// Bytes that have arrived; a clone is the same bytes.
#[derive(Clone)]
pub struct Payload(ZBytes);

impl Payload {
    /// All of them. A copy is made only of what was longer than a batch of the link and so came in parts.
    #[must_use]
    pub fn bytes(&self) -> std::borrow::Cow<'_, [u8]> {
        self.0.to_bytes()
    }

    /// The first `N` of them, without a copy of the others; `None`: there are fewer.
    #[must_use]
    pub fn first<const N: usize>(&self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.reader().read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Arrived<'_> {
    /// The message.
    #[must_use]
    pub fn payload(&self) -> Payload {
        Payload(self.payload.clone())
    }

    /// What came beside it.
    #[must_use]
    pub fn attachment(&self) -> Option<Vec<u8>> {
        self.attachment.map(|bytes| bytes.to_bytes().into_owned())
    }
}

impl Link {
    /// Opens the session. It need not have a link to anybody yet.
    ///
    /// # Errors
    /// If the settings are wrong, or an endpoint cannot be listened on.
    pub fn open(config: &config::Link) -> Result<Self, LinkError> {
        let settings = settings(&config.session)?;
        let session = zenoh::open(settings).wait().map_err(failed("opening the link"))?;
        Ok(Self { session })
    }

    /// A place to put messages under `key`.
    ///
    /// # Errors
    /// If the session is closed.
    pub fn outlet(&self, key: String, how: How) -> Result<Outlet, LinkError> {
        let (congestion, express) = match how {
            // At once: a piece is as good as a batch, and what is there at the same time is in one piece already.
            How::Waiting => (CongestionControl::Block, true),
            How::Dropping => (CongestionControl::Drop, false),
        };
        let doing = format!("declaring the key '{key}'");
        let publisher = self
            .session
            .declare_publisher(key)
            .congestion_control(congestion)
            // One priority for all: messages of two priorities could pass each other.
            .priority(Priority::Data)
            .express(express)
            .allowed_destination(Locality::Remote)
            .wait()
            .map_err(failed(doing))?;
        Ok(Outlet { publisher })
    }

    /// Calls `arrived` for each message with a key that matches `keys`. `arrived` must not block.
    ///
    /// # Errors
    /// If the session is closed.
    pub fn inlet(
        &self,
        keys: String,
        arrived: impl Fn(Arrived<'_>) + Send + Sync + 'static,
    ) -> Result<Inlet, LinkError> {
        let doing = format!("subscribing to the keys '{keys}'");
        let subscriber = self
            .session
            .declare_subscriber(keys)
            .allowed_origin(Locality::Remote)
            .callback(move |sample| {
                if sample.kind() == SampleKind::Put {
                    arrived(Arrived {
                        key: sample.key_expr().as_str(),
                        payload: sample.payload(),
                        attachment: sample.attachment(),
                    });
                }
            })
            .wait()
            .map_err(failed(doing))?;
        Ok(Inlet { _subscriber: subscriber })
    }

    /// Puts one message under a key that seldom has any: a few bytes, which wait for room and go before data.
    ///
    /// # Errors
    /// If the session is closed.
    pub fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), LinkError> {
        self.session
            .put(key, bytes)
            .congestion_control(CongestionControl::Block)
            .priority(Priority::Data)
            .express(true)
            .allowed_destination(Locality::Remote)
            .wait()
            .map_err(failed(format_args!("putting a message under the key '{key}'")))
    }

    /// Ends the session.
    pub fn close(&self) {
        // Whatever it says, the process goes on to its end.
        let _ = self.session.close().wait();
    }
}

impl Outlet {
    /// Puts a message.
    ///
    /// # Errors
    /// If the session is closed.
    pub fn put(&self, bytes: Vec<u8>) -> Result<(), LinkError> {
        self.publisher.put(bytes).wait().map_err(failed("putting a message on the link"))
    }

    /// Puts a message with an attachment.
    ///
    /// # Errors
    /// If the session is closed.
    pub fn put_with(&self, bytes: Vec<u8>, attachment: Vec<u8>) -> Result<(), LinkError> {
        self.publisher.put(bytes).attachment(attachment).wait().map_err(failed("putting a message on the link"))
    }
}

/// Zenoh's settings.
fn settings(session: &Session) -> Result<zenoh::Config, LinkError> {
    let (mode, listen, connect, discovery, tls) = match session {
        Session::File(path) => {
            return zenoh::Config::from_file(path)
                .map_err(failed(format_args!("reading Zenoh's settings {}", path.display())));
        }
        Session::Here { mode, listen, connect, discovery, tls } => (mode, listen, connect, discovery, tls),
    };
    let mut config = zenoh::Config::default();
    let mut set = |key: &str, value: serde_json::Value| {
        config
            .insert_json5(key, &value.to_string())
            .map_err(failed(format_args!("the setting {key} = {value} of the link")))
    };
    let mode = match mode {
        Mode::Peer => "peer",
        Mode::Client => "client",
    };
    set("mode", mode.into())?;
    set("listen/endpoints", listen.as_slice().into())?;
    set("connect/endpoints", connect.as_slice().into())?;
    // A bridge may start before the others, and outlives their absence.
    set("connect/timeout_ms", (-1).into())?;
    set("connect/exit_on_failure", false.into())?;
    set("scouting/multicast/enabled", (*discovery).into())?;
    if let Some(Tls { ca, certificate, key, mutual }) = tls {
        let path = |path: &std::path::Path| serde_json::Value::from(path.display().to_string());
        set("transport/link/tls/root_ca_certificate", path(ca))?;
        set("transport/link/tls/listen_certificate", path(certificate))?;
        set("transport/link/tls/listen_private_key", path(key))?;
        set("transport/link/tls/enable_mtls", (*mutual).into())?;
        if *mutual {
            set("transport/link/tls/connect_certificate", path(certificate))?;
            set("transport/link/tls/connect_private_key", path(key))?;
        }
    }
    Ok(config)
}
