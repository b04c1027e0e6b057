//! Programs that serve and call, as processes: the test's own program once more, in a part that the environment names.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ramway::rpc::{CallOptions, Client, Fault, Server};
use ramway::{Bus, ErrorKind, Inbox, Incoming, Left, Listener};

use super::{LONG, Machine, until};

/// The number of each method of the server.
pub const ECHO: u32 = 1;
/// Until it is cancelled; leaves the files `.held` and `.cancelled`.
pub const HOLD: u32 = 2;
/// A stream of the numbers from 0 on, as many as the request says.
pub const COUNT: u32 = 3;
/// What its time limit leaves, in microseconds; the largest number without one.
pub const LEFT: u32 = 4;
/// How many calls of this one have run.
pub const RUNS: u32 = 5;
/// Leaves a file `.ran-N` of the number in the request; once only.
pub const MARK: u32 = 7;
/// Has the server shut down.
pub const SHUT_DOWN: u32 = 6;

/// A process that plays a part; killed when this goes.
pub struct Part(Child);

impl Part {
    /// Starts one on this machine.
    pub fn start(machine: &Machine, part: &str, name: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("the test's program"));
        command.args(["--exact", "a_part", "--nocapture"]).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("RAMWAY_DIR", &machine.directory).env("RAMWAY_TEST_PART", part).env("RAMWAY_TEST_NAME", name);
        Self(command.spawn().expect("the process starts"))
    }

    /// Kills it at once.
    pub fn kill(mut self) {
        self.end();
    }

    /// Waits until it has ended by itself.
    pub fn wait(mut self) {
        until("the process ends", || self.0.try_wait().expect("a child").is_some());
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.end();
    }
}

/// Plays the part that this process was started for, if it was for one.
pub fn play() {
    let Ok(part) = std::env::var("RAMWAY_TEST_PART") else { return };
    let name = std::env::var("RAMWAY_TEST_NAME").expect("a name beside the part");
    match part.as_str() {
        "serve" => serve(Server::builder(&name).max_in_flight(77).capacity(1 << 16)),
        "serve-two" => serve(Server::builder(&name).max_clients(2)),
        "echo" => echo(&Listener::builder(&name).capacities(1 << 16, 1 << 15).align(64).bind().expect("a listener")),
        "echo-one" => answer(Bus::listen(&name, 1 << 16).expect("a bus")),
        "inbox" => collect(Inbox::bind(&name).expect("an inbox")),
        // A client that is killed while it calls.
        "hold" => drop(
            client(&std::env::var_os("RAMWAY_DIR").map(PathBuf::from).expect("set").join(name + ".sock"))
                .call(HOLD, b""),
        ),
        other => panic!("no part is called {other}"),
    }
}

fn serve(builder: ramway::rpc::ServerBuilder) {
    let directory = ramway::survey::directory();
    let mark = move |name: &str| drop(std::fs::write(directory.join(name), ""));
    let mut server = builder.bind().expect("a server");
    let stopper = server.stopper();
    let runs = Arc::new(AtomicU64::new(0));
    server.method(ECHO, |request| Ok(request.body().to_vec())).expect("a method");
    let hold = move |request: &mut ramway::rpc::Request<'_>| {
        mark(".held");
        while !request.is_cancelled() {
            std::thread::sleep(Duration::from_millis(5));
        }
        mark(".cancelled");
        Ok(Vec::new())
    };
    server.pool(HOLD, hold).expect("a method");
    let count = |request: &ramway::rpc::Request<'_>| {
        let end = u64::from_le_bytes(request.body().try_into().map_err(|_| Fault::new(1, "8 bytes"))?);
        Ok((0..end).map(|number| Ok::<_, Fault>(number.to_le_bytes())))
    };
    server.stream(COUNT, count).expect("a method");
    let left = |request: &mut ramway::rpc::Request<'_>| {
        let left = request.remaining().map_or(u64::MAX, |left| left.as_micros() as u64);
        Ok(left.to_le_bytes())
    };
    server.method(LEFT, left).expect("a method");
    // Relaxed: it orders nothing.
    let runs_now = move |_: &mut ramway::rpc::Request<'_>| Ok((runs.fetch_add(1, Ordering::Relaxed) + 1).to_le_bytes());
    server.method(RUNS, runs_now).expect("a method");
    let once = move |request: &mut ramway::rpc::Request<'_>| {
        let number = u64::from_le_bytes(request.body().try_into().map_err(|_| Fault::new(1, "8 bytes"))?);
        let made = std::fs::File::create_new(ramway::survey::directory().join(format!(".ran-{number}")));
        made.map(|_| number.to_le_bytes()).map_err(|error| Fault::new(2, error.to_string()))
    };
    server.method(MARK, once).expect("a method");
    let shut_down = move |_: &mut ramway::rpc::Request<'_>| {
        stopper.shutdown(LONG);
        Ok(Vec::new())
    };
    server.method(SHUT_DOWN, shut_down).expect("a method");
    server.run().expect("it serves");
}

/// Leaves files of what it has received: `.got-N` after the message N, `.closed` and `.died` of who has gone.
fn collect(mut inbox: Inbox) {
    let directory = ramway::survey::directory();
    loop {
        let mark = match inbox.recv().expect("an inbox that goes on") {
            Incoming::Message(_, message) => {
                format!(".got-{}", u64::from_le_bytes((&*message).try_into().expect("8 bytes")))
            }
            Incoming::Left(_, Left::Closed) => ".closed".into(),
            Incoming::Left(_, _) => ".died".into(),
        };
        std::fs::write(directory.join(mark), "").expect("a file");
    }
}

/// Answers each message with itself.
fn echo(listener: &Listener) {
    loop {
        let bus = listener.accept().expect("a bus");
        std::thread::spawn(|| answer(bus));
    }
}

fn answer(bus: Bus) {
    let (Some(mut sender), Some(mut receiver)) = bus.split() else { return };
    while let Ok(message) = receiver.recv() {
        if sender.send_tagged(message.type_id(), message.tag(), &message).is_err() {
            return;
        }
    }
}

/// A client of the server whose socket this is, as soon as it is there.
pub fn client(socket: &std::path::Path) -> Client {
    Client::connector(socket).timeout(LONG).connect().expect("a client")
}

/// Where a listener of this name is on a machine.
pub fn socket(machine: &Machine, name: &str) -> PathBuf {
    machine.at(&format!("{name}.sock"))
}

/// The bus of a listener, as soon as it is there.
pub fn bus(socket: &std::path::Path) -> Bus {
    Bus::connector(socket).timeout(LONG).connect().expect("a bus")
}

/// Waits for the end of a bus, and says how it was.
pub fn end_of(bus: &mut Bus) -> ErrorKind {
    loop {
        match bus.recv_timeout(LONG) {
            Ok(_) => {}
            Err(error) => return error.kind(),
        }
    }
}

/// The number that a method has replied.
pub fn number(reply: &ramway::rpc::Reply) -> u64 {
    u64::from_le_bytes(reply.body().try_into().expect("8 bytes"))
}

/// Options of a call with a time limit that no working test reaches.
pub fn with_long_limit() -> CallOptions<'static> {
    CallOptions::new().timeout(LONG)
}
