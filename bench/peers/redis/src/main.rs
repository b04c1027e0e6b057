//! Redis: a server of the pair's own on a Unix socket, without persistence; a list each way. `RPUSH` and `BLPOP`; where
//! several messages go together, one `RPUSH` of all of them and `BLMPOP` with a count. Of lists, streams and
//! publish-subscribe, lists were the fastest there and back and one way, and they lose nothing. A receiver that has
//! nothing waits in the server, so there is nothing to poll.

mod fan;

use ramway_bench::fan::{ManyToOne, OneToMany};
use ramway_bench::{About, Burst, Channel, End, Failure, Kind, Mechanism, Mode, Prepared, Setup};
use redis::{Client, Cmd, Connection, Value};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Failure>;

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

struct Redis;

/// Killed and reaped when the leading process is through; killed by the kernel if that dies.
struct Server(Child);

struct Pair {
    tx: Connection,
    rx: Connection,
    sends_on: &'static str,
    receives_on: &'static str,
    /// Messages that may wait: the server itself has no bound.
    bound: i64,
    /// Written and not yet sent.
    out: Vec<Vec<u8>>,
    _server: Option<Server>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// With these options too.
    fn start(setup: &Setup, options: &[&str]) -> Result<Self> {
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
        command.args(["--loglevel", "warning", "--logfile", "redis.log", "--dir"]).arg(&setup.directory);
        command.arg("--unixsocket").arg(socket(setup)).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let anywhere = || {
            // SAFETY: plain values, and a set on the stack; async-signal-safe.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // The two processors belong to the two processes: the scheduler finds the best place for a third.
                let all: libc::cpu_set_t = std::mem::transmute([u8::MAX; size_of::<libc::cpu_set_t>()]);
                libc::sched_setaffinity(0, size_of_val(&all), &all);
            }
            Ok(())
        };
        // SAFETY: the closure allocates nothing and calls only async-signal-safe functions.
        unsafe { command.pre_exec(anywhere) };
        let child = command.spawn().map_err(|cause| format!("redis-server: {cause}"))?;
        Ok(Self(child))
    }
}

fn socket(setup: &Setup) -> std::path::PathBuf {
    setup.directory.join("redis.sock")
}

fn connect(path: &Path) -> Result<Connection> {
    let client = Client::open(format!("unix://{}", path.display()))?;
    let began = Instant::now();
    loop {
        match client.get_connection() {
            Ok(connection) => return Ok(connection),
            Err(_) if began.elapsed() < Duration::from_secs(10) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// As many messages as the others' rings hold.
fn bound(setup: &Setup) -> i64 {
    (setup.capacity as usize / setup.largest.max(1)).clamp(2, 1 << 20) as i64
}

/// Appends messages to a list, and waits while that is longer than `bound`.
fn push(tx: &mut Connection, list: &str, messages: impl Iterator<Item = Vec<u8>>, bound: i64) -> Result<()> {
    let mut push = redis::cmd("RPUSH");
    push.arg(list);
    for message in messages {
        push.arg(message);
    }
    // It answers with the list's length.
    let mut length: i64 = push.query(tx)?;
    while length > bound {
        std::thread::sleep(Duration::from_micros(50));
        length = redis::cmd("LLEN").arg(list).query(tx)?;
    }
    Ok(())
}

impl Pair {
    fn connect(
        setup: &Setup,
        sends_on: &'static str,
        receives_on: &'static str,
        server: Option<Server>,
    ) -> Result<Self> {
        let path = socket(setup);
        let bound = bound(setup);
        let (tx, rx) = (connect(&path)?, connect(&path)?);
        Ok(Self { tx, rx, sends_on, receives_on, bound, out: Vec::new(), _server: server })
    }

    fn flush(&mut self) -> Result<()> {
        push(&mut self.tx, self.sends_on, self.out.drain(..), self.bound)
    }
}

impl Mechanism for Redis {
    fn about(&self) -> About {
        let what = "a redis-server on a Unix socket, a list each way: RPUSH and BLPOP, several together by BLMPOP";
        About::new("redis", Kind::Peer, true, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.size > 0 && !matches!(burst.mode, Mode::Spin | Mode::Hybrid)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let server = Server::start(setup, &[])?;
        let pid = server.0.id();
        let pair = Pair::connect(setup, "there", "back", Some(server))?;
        Ok(Prepared::new(String::new(), move || Ok(Box::new(pair) as Box<dyn End>)).processes(vec![pid]))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Pair::connect(setup, "back", "there", None)?))
    }
}

impl Channel for Pair {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut message = vec![0; size];
        fill(&mut message);
        self.out.push(message);
        if flush { self.flush() } else { Ok(()) }
    }

    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let mut pop = Cmd::new();
        match max {
            1 => pop.arg("BLPOP").arg(self.receives_on).arg(0),
            _ => pop.arg("BLMPOP").arg(0).arg(1).arg(self.receives_on).arg("LEFT").arg("COUNT").arg(max),
        };
        // The list's name, and a message or a list of them.
        let Value::Array(answer) = pop.query(&mut self.rx)? else { return Err(STRANGE.into()) };
        let messages = match answer.get(1) {
            Some(Value::Array(messages)) => messages.as_slice(),
            Some(message) => std::slice::from_ref(message),
            None => return Err(STRANGE.into()),
        };
        for message in messages {
            match message {
                Value::BulkString(bytes) if bytes.len() == size => read(bytes),
                Value::BulkString(bytes) => return Err(format!("{} bytes instead of {size}", bytes.len()).into()),
                _ => return Err(STRANGE.into()),
            }
        }
        Ok(messages.len() as u32)
    }
}

const STRANGE: &str = "an answer of another form";

fn main() {
    let pubsub = [fan::PubSub::Each, fan::PubSub::Pipelined].map(OneToMany);
    let (value, producers) = (OneToMany(fan::Value), ManyToOne(fan::Producers));
    match ramway_bench::child_main(&[&Redis, &pubsub[0], &pubsub[1], &value, &producers]) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
