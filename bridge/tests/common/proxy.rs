//! A proxy for TCP that stands between two bridges and harms what passes: delays it, slows it down, holds it, resets or half-closes
//! connections.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes that are passed on at a time.
const PIECE: usize = 16 << 10;
/// No wait is longer without a look at what has been asked.
const SLICE: Duration = Duration::from_millis(20);

/// The proxy; all its connections end with it.
pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepts: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    /// Accepts, but passes nothing on.
    held: AtomicBool,
    /// Refuses: a connection is closed at once.
    refuses: AtomicBool,
    delay_ms: AtomicU64,
    /// Bytes a second in each direction; 0: as fast as they come.
    rate: AtomicU64,
    passed: AtomicU64,
    connections: AtomicU64,
    open: Mutex<Vec<(TcpStream, TcpStream)>>,
}

// All flags and numbers are relaxed: they ask for something soon, and order nothing.
const ORDER: Ordering = Ordering::Relaxed;

impl Proxy {
    /// Between whoever connects to it and `target`.
    pub fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let accepts = std::thread::spawn(move || {
            while !of_thread.over.load(ORDER) {
                match listener.accept() {
                    Ok((near, _)) => of_thread.join(near, target),
                    Err(_) => std::thread::sleep(SLICE),
                }
            }
        });
        Self { address, shared, accepts: Some(accepts) }
    }

    /// Bytes reach the other side this much later.
    pub fn delay(&self, time: Duration) {
        self.shared.delay_ms.store(time.as_millis() as u64, ORDER);
    }

    /// At most so many bytes a second in each direction; 0 ends that.
    pub fn throttle(&self, bytes: u64) {
        self.shared.rate.store(bytes, ORDER);
    }

    /// Connections stay open and nothing passes, or it does again.
    pub fn hold(&self, held: bool) {
        self.shared.held.store(held, ORDER);
    }

    /// No connection is made, or they are again.
    pub fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, ORDER);
    }

    /// Ends all connections as a machine does that has forgotten them.
    pub fn reset(&self) {
        for (near, far) in self.shared.open().drain(..) {
            reset(&near);
            reset(&far);
        }
    }

    /// Ends one direction of all connections: what goes to the target.
    pub fn half_close(&self) {
        for (_, far) in &*self.shared.open() {
            let _ = far.shutdown(Shutdown::Write);
        }
    }

    /// Bytes that were passed on so far, in both directions.
    pub fn passed(&self) -> u64 {
        self.shared.passed.load(ORDER)
    }

    /// Connections that were made so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(ORDER)
    }
}

/// Ends one connection at once, whoever has a descriptor of it.
fn reset(socket: &TcpStream) {
    let nobody = libc::sockaddr { sa_family: libc::AF_UNSPEC as libc::sa_family_t, sa_data: [0; 14] };
    // Connecting to nobody is what Linux takes for that; it fails where the connection has ended by itself.
    // SAFETY: the descriptor is open, and the address is as long as is said.
    unsafe { libc::connect(socket.as_raw_fd(), &raw const nobody, size_of::<libc::sockaddr>() as libc::socklen_t) };
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, ORDER);
        self.reset();
        if let Some(accepts) = self.accepts.take() {
            let _ = accepts.join();
        }
        self.reset();
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Vec<(TcpStream, TcpStream)>> {
        self.open.lock().expect("nobody panics with it")
    }

    fn join(self: &Arc<Self>, near: TcpStream, target: SocketAddr) {
        if self.refuses.load(ORDER) {
            return;
        }
        let Ok(far) = TcpStream::connect(target) else { return };
        self.connections.fetch_add(1, ORDER);
        for side in [&near, &far] {
            side.set_nonblocking(false).expect("a socket that blocks");
            side.set_read_timeout(Some(SLICE)).expect("a time limit");
            side.set_nodelay(true).expect("no delay");
        }
        let clone = |side: &TcpStream| side.try_clone().expect("another descriptor");
        for (from, to) in [(clone(&near), clone(&far)), (clone(&far), clone(&near))] {
            let shared = Arc::clone(self);
            std::thread::spawn(move || shared.pass(from, to));
        }
        self.open().push((near, far));
    }

    /// Passes on until one of the two ends.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut piece = vec![0; PIECE];
        while !self.over.load(ORDER) {
            if self.held.load(ORDER) {
                std::thread::sleep(SLICE);
                continue;
            }
            let read = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                    continue;
                }
                Err(_) => break,
            };
            self.wait(read as u64);
            if to.write_all(&piece[..read]).is_err() {
                break;
            }
            self.passed.fetch_add(read as u64, ORDER);
        }
        // The end goes on to the other side; what comes from there is the other thread's.
        let _ = to.shutdown(Shutdown::Write);
        let _ = from.shutdown(Shutdown::Read);
    }

    /// As long as so many bytes take. A piece is late by the delay, and the next one behind it too: no more than a piece is under way.
    fn wait(&self, bytes: u64) {
        let began = Instant::now();
        loop {
            let delay = Duration::from_millis(self.delay_ms.load(ORDER));
            let rate = self.rate.load(ORDER);
            let slowed = if rate == 0 { Duration::ZERO } else { Duration::from_secs_f64(bytes as f64 / rate as f64) };
            let held = self.held.load(ORDER);
            let left = (delay + slowed).saturating_sub(began.elapsed());
            if self.over.load(ORDER) || (left.is_zero() && !held) {
                return;
            }
            std::thread::sleep(left.clamp(Duration::from_millis(1), SLICE));
        }
    }
}
