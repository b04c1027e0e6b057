//! A key-value server: one bus per client, requests pipelined, replies matched by their tag.

use ramway::{Bus, ErrorKind, Listener, Receiver, Sender};
use std::collections::HashMap;
use std::error::Error;
use std::io::BufRead;
use std::process::ExitCode;
use std::sync::Mutex;

const SET: u32 = 1;
const GET: u32 = 2;
const VALUE: u32 = 3;
const MISSING: u32 = 4;
/// Requests under way at most, so that neither side's ring can fill up while both sides wait for room.
const PIPELINE: u64 = 32;
const USAGE: &str = "usage: key-value serve NAME CLIENTS | key-value client NAME   (reads 'set KEY VALUE', 'get KEY')";

type Store = Mutex<HashMap<Vec<u8>, Vec<u8>>>;

fn main() -> ExitCode {
    ramway_examples::run("key-value", |arguments| match arguments {
        ["serve", name, clients] => serve(name, clients.parse()?),
        ["client", name] => client(name),
        _ => Err(USAGE.into()),
    })
}

fn serve(name: &str, clients: usize) -> Result<(), Box<dyn Error>> {
    let listener = Listener::bind(name)?;
    let store = Store::default();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            let bus = listener.accept()?;
            scope.spawn(|| {
                // A client that closes, or dies, ends its bus and nothing else.
                if let Err(error) = answer(bus, &store)
                    && error.kind() != ErrorKind::Closed
                {
                    eprintln!("key-value: a client is gone: {error}");
                }
            });
        }
        Ok(())
    })
}

fn answer(bus: Bus, store: &Store) -> ramway::Result<()> {
    let (mut replies, mut requests) = both(bus);
    loop {
        let request = requests.recv()?;
        let tag = request.tag();
        let (key, value) = split(&request);
        match request.type_id() {
            SET => {
                store.lock().unwrap().insert(key.to_vec(), value.to_vec());
                replies.send_tagged(VALUE, tag, value)?;
            }
            GET => {
                // Copied, so that a client that does not read its replies holds nobody else up.
                let value = store.lock().unwrap().get(key).cloned();
                match value {
                    Some(value) => replies.send_tagged(VALUE, tag, &value)?,
                    None => replies.send_tagged(MISSING, tag, b"")?,
                }
            }
            // A newer client may know more than we do.
            _ => replies.send_tagged(MISSING, tag, b"")?,
        }
    }
}

fn client(name: &str) -> Result<(), Box<dyn Error>> {
    let (mut requests, mut replies) = both(Bus::connect(name)?);
    let (mut sent, mut answered) = (0, 0);
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (kind, rest) = match line.split_once(' ') {
            Some(("set", rest)) => (SET, rest),
            Some(("get", rest)) => (GET, rest),
            _ => return Err(USAGE.into()),
        };
        requests.send_tagged(kind, sent, rest.as_bytes())?;
        sent += 1;
        if sent - answered == PIPELINE {
            print(&mut replies, &mut answered)?;
        }
    }
    while answered < sent {
        print(&mut replies, &mut answered)?;
    }
    Ok(())
}

/// One reply. This server answers in order; the tag is how a client of one that does not would know which it is.
fn print(replies: &mut Receiver, answered: &mut u64) -> Result<(), Box<dyn Error>> {
    let reply = replies.recv()?;
    if reply.tag() != *answered {
        return Err(format!("reply {} to request {answered}", reply.tag()).into());
    }
    match reply.type_id() {
        VALUE => println!("{}", String::from_utf8_lossy(&reply)),
        _ => println!("(missing)"),
    }
    *answered += 1;
    Ok(())
}

/// `KEY VALUE`, or `KEY` alone.
fn split(request: &[u8]) -> (&[u8], &[u8]) {
    match request.iter().position(|&byte| byte == b' ') {
        Some(at) => (&request[..at], &request[at + 1..]),
        None => (request, b""),
    }
}

fn both(bus: Bus) -> (Sender, Receiver) {
    match bus.split() {
        (Some(sender), Some(receiver)) => (sender, receiver),
        _ => unreachable!("a bus made with one capacity has both directions"),
    }
}
