//! Bridges as processes.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use super::Machine;
use super::net::Net;

/// A bridge that runs; killed when this goes.
pub struct Bridge {
    child: Child,
    said: Arc<Mutex<String>>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

/// A command line of the bridge on this machine.
pub fn command(machine: &Machine, net: &Net) -> Command {
    let mut command = net.command(env!("CARGO_BIN_EXE_ramway-bridge"));
    command.env("RAMWAY_DIR", &machine.directory).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

impl Bridge {
    /// Starts one with this file of rules.
    pub fn start(machine: &Machine, net: &Net, config: &Path) -> Self {
        let mut command = command(machine, net);
        command.arg("--config").arg(config).arg("--verbose");
        Self::of(command)
    }

    /// Starts one by this command.
    pub fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the bridge starts");
        let said = Arc::new(Mutex::new(String::new()));
        let read = |pipe: Box<dyn std::io::Read + Send>| {
            let said = Arc::clone(&said);
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    said.lock().expect("nobody panics with it").push_str(&(line + "\n"));
                }
            })
        };
        let readers = vec![
            read(Box::new(child.stdout.take().expect("piped"))),
            read(Box::new(child.stderr.take().expect("piped"))),
        ];
        Self { child, said, readers }
    }

    /// All that it has said.
    pub fn said(&self) -> String {
        self.said.lock().expect("nobody panics with it").clone()
    }

    /// Waits until it has said this.
    pub fn wait_for(&mut self, text: &str) {
        super::until(&format!("the bridge says '{text}'"), || {
            let said = self.said();
            let over = self.child.try_wait().expect("a child");
            assert!(
                over.is_none() || said.contains(text),
                "the bridge ended ({over:?}) without saying '{text}':\n{said}"
            );
            said.contains(text)
        });
    }

    /// Bytes of memory that are its own: no segment is among them. Not of a bridge in a network of its own.
    pub fn anonymous(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(&path).expect("the bridge is there");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux says it");
        let kilobytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
        kilobytes << 10
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: a plain system call; the child is not waited for yet, so that its number is nobody else's.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0, "the bridge is there");
    }

    /// Kills it at once.
    pub fn kill(mut self) {
        self.end();
    }

    /// Waits for its end.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let mut status = None;
        super::until("the bridge ends", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        for reader in self.readers.drain(..) {
            reader.join().expect("the reader of its output");
        }
        (status.expect("it has ended"), self.said())
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            eprintln!("the bridge said:\n{}", self.said());
        }
    }
}

/// The metrics that a bridge serves, from this network.
pub fn metric(address: SocketAddr, name: &str) -> f64 {
    use std::io::{Read, Write};
    let mut connected = None;
    super::until("the metrics are served", || {
        connected = std::net::TcpStream::connect(address).ok();
        connected.is_some()
    });
    let mut stream = connected.expect("it is connected");
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    let values = text.lines().filter(of_name).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.sum()
}

/// A port of this machine that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}
