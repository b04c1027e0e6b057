//! A TCP connection over the loopback interface, without Nagle's delay.

use super::pipe::{Stream, can_stream};
use crate::Result;
use crate::case::Burst;
use crate::channel::{About, End, Kind, Mechanism, Prepared, Setup};
use std::fs::File;
use std::io::{Error, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

pub(crate) struct Tcp;

/// The first bytes of the connection: any user of the machine can connect to a port.
type Key = [u8; 16];

/// How long the following process may take to connect.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Buffers as the kernel chooses them: setting a size would switch that off.
fn stream(socket: TcpStream, setup: &Setup) -> Result<Box<dyn End>> {
    socket.set_nodelay(true)?;
    let reader = OwnedFd::from(socket.try_clone()?);
    Ok(Box::new(Stream::new(socket.into(), reader, setup)))
}

/// The first connection that begins with the key.
fn accept(listener: &TcpListener, key: &Key) -> Result<TcpStream> {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which outlives the call.
        match unsafe { libc::poll(&mut poll, 1, left.as_millis() as i32) } {
            0 => return Err("the second process does not connect".into()),
            -1 if Error::last_os_error().raw_os_error() != Some(libc::EINTR) => {
                return Err(Error::last_os_error().into());
            }
            -1 => continue,
            _ => {}
        }
        let (mut socket, _) = listener.accept()?;
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        let mut said = Key::default();
        if socket.read_exact(&mut said).is_ok() && said == *key {
            socket.set_read_timeout(None)?;
            return Ok(socket);
        }
    }
}

impl Mechanism for Tcp {
    fn about(&self) -> About {
        About::new("tcp", Kind::Kernel, true, "a TCP connection over loopback with TCP_NODELAY, blocking")
    }

    fn can(&self, burst: &Burst) -> bool {
        can_stream(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut key = Key::default();
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        let ticket = format!("{} {}", listener.local_addr()?.port(), u128::from_ne_bytes(key));
        let setup = setup.clone();
        Ok(Prepared::new(ticket, move || stream(accept(&listener, &key)?, &setup)))
    }

    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        let (port, key) = ticket.split_once(' ').ok_or("not a port and a key")?;
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port.parse()?))?;
        socket.write_all(&key.parse::<u128>()?.to_ne_bytes())?;
        stream(socket, setup)
    }
}
