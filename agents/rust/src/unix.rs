//! `--over unix`: the same messages through a Unix stream socket of the standard library, to compare with.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use crate::Stop;
use crate::args::{Args, Command};
use crate::speed::{Channel, Plan, receive_all, round_trips, send_all};

struct Socket {
    stream: UnixStream,
    /// What is committed and not yet written.
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// Bytes of `incoming` that no whole message was made of yet.
    kept: usize,
}

impl Channel for Socket {
    fn put(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<(), Stop> {
        let at = self.outgoing.len();
        self.outgoing.resize(at + size, 0);
        fill(&mut self.outgoing[at..]);
        if flush {
            self.stream.write_all(&self.outgoing)?;
            self.outgoing.clear();
        }
        Ok(())
    }

    fn take(&mut self, size: usize, max: u64, mut read: impl FnMut(&[u8])) -> Result<u64, Stop> {
        let room = size * max as usize;
        if self.incoming.len() < room {
            self.incoming.resize(room, 0);
        }
        while self.kept < size {
            match self.stream.read(&mut self.incoming[self.kept..room])? {
                0 => return Err(std::io::Error::from(ErrorKind::UnexpectedEof).into()),
                more => self.kept += more,
            }
        }
        let whole = self.kept / size;
        self.incoming[..whole * size].chunks_exact(size).for_each(&mut read);
        self.incoming.copy_within(whole * size..self.kept, 0);
        self.kept -= whole * size;
        Ok(whole as u64)
    }
}

fn connect(path: &str) -> Result<UnixStream, Stop> {
    let began = Instant::now();
    loop {
        match UnixStream::connect(path) {
            Err(_) if began.elapsed() < Duration::from_secs(10) => std::thread::sleep(Duration::from_millis(1)),
            outcome => return Ok(outcome?),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Stop> {
    let plan = Plan::new(args);
    let stream = match (&args.listen, &args.connect) {
        (Some(path), _) => UnixListener::bind(path)?.accept()?.0,
        (_, Some(path)) => connect(path)?,
        _ => return Err(Stop::Usage("--over unix needs --listen or --connect")),
    };
    println!("attached pid={} epoch=1 peer_epoch=1 capacity=0 max=0", std::process::id());
    let mut socket = Socket { stream, outgoing: Vec::new(), incoming: Vec::new(), kept: 0 };
    match args.command {
        Command::Flood => send_all(&mut socket, &plan?)?,
        Command::Drain => receive_all(&mut socket, &plan?)?,
        Command::Ping => round_trips(&mut socket, &plan?)?,
        Command::Echo => echo(&mut socket.stream, args)?,
        _ => return Err(Stop::Usage("--over unix is for flood, drain, ping and echo")),
    }
    println!("closed");
    Ok(())
}

fn echo(stream: &mut UnixStream, args: &Args) -> Result<(), Stop> {
    let size = match args.sizes {
        crate::args::Sizes::Fixed(size) => size as usize,
        _ => 32,
    };
    let mut buffer = vec![0; size];
    let mut received = 0u64;
    loop {
        match stream.read_exact(&mut buffer) {
            Ok(()) => stream.write_all(&buffer)?,
            Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => break,
            Err(cause) => return Err(cause.into()),
        }
        received += 1;
    }
    println!(
        "end name=Closed number=9 received={received} first=-1 last=-1 bytes={} elapsed_ms=0",
        received * size as u64
    );
    Ok(())
}
