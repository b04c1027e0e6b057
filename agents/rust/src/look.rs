//! `read` and `show`.

use ramway::{ErrorKind, Region};

use crate::args::{Args, Role, Sizes};
use crate::message::Messages;
use crate::place::open;
use crate::{Stop, read_line};

pub(crate) fn read(args: &Args) -> Result<(), Stop> {
    if let Some(name) = &args.region {
        let region = Region::builder().timeout(std::time::Duration::from_secs(10)).open(name)?;
        let mut bytes = vec![0; region.len() as usize];
        region.read_at(0, &mut bytes)?;
        println!("region len={} crc32={}", region.len(), crc32fast::hash(&bytes));
        println!("closed");
        return Ok(());
    }
    let pause = || {
        if args.pause {
            read_line();
        }
    };
    let ends = match args.role.ok_or(Stop::Usage("--role is missing"))? {
        Role::Producer => {
            let mut ends = open(args, args.ring.as_deref(), None)?;
            let tx = ends.sending()?;
            pause();
            match tx.last_tag() {
                Some(tag) => println!("last tag={tag}"),
                None => println!("last none"),
            }
            let messages = Messages::new(Sizes::Fixed(args.size.unwrap_or(0)), tx.max_message_len() as u64);
            let message = messages.make(0);
            match tx.try_send_tagged(message.type_id, message.tag, message.payload) {
                Ok(()) => println!("sent"),
                Err(cause) => end(cause.kind()),
            }
            ends
        }
        Role::Consumer => {
            let mut ends = open(args, None, args.ring.as_deref())?;
            let rx = ends.receiving()?;
            pause();
            loop {
                let outcome = match args.limit() {
                    Some(limit) => rx.recv_timeout(limit),
                    None => rx.recv(),
                };
                match outcome {
                    Ok(message) => println!(
                        "message type_id={} tag={} len={} crc32={}",
                        message.type_id(),
                        message.tag(),
                        message.len(),
                        crc32fast::hash(&message)
                    ),
                    Err(cause) => {
                        end(cause.kind());
                        break;
                    }
                }
            }
            ends
        }
    };
    ends.close();
    Ok(())
}

fn end(kind: ErrorKind) {
    println!("end name={} number={}", kind.name(), kind.code());
}

const SHOWN: usize = 4096;

pub(crate) fn show(args: &Args) -> Result<(), Stop> {
    let view = |address: *const u8| println!("view addr={address:p} len={SHOWN} pid={}", std::process::id());
    match args.role.ok_or(Stop::Usage("--role is missing"))? {
        Role::Producer => {
            let mut ends = open(args, args.ring.as_deref(), None)?;
            let mut slot = ends.sending()?.reserve(SHOWN)?;
            slot.fill(0x11);
            let address = slot.as_mut_ptr();
            view(address);
            slot.commit(SHOWN)?;
            obey(address);
            ends.close();
        }
        Role::Consumer => {
            let mut ends = open(args, None, args.ring.as_deref())?;
            let message = ends.receiving()?.recv()?;
            view(message.as_ptr());
            obey(message.as_ptr().cast_mut());
            drop(message);
            ends.close();
        }
    }
    Ok(())
}

/// Writes and reads single bytes of the message by its address, as standard input says. The ring stays open meanwhile,
/// and its runner pokes at the producer's side only, which is writable.
fn obey(address: *mut u8) {
    loop {
        let line = read_line();
        let words: Vec<&str> = line.split_whitespace().collect();
        let offset = words.get(1).and_then(|w| w.parse::<usize>().ok()).filter(|&offset| offset < SHOWN).unwrap_or(0);
        match words.first().copied() {
            Some("poke") => {
                let value = words.get(2).and_then(|w| w.parse().ok()).unwrap_or(0);
                // SAFETY: inside the message, whose mapping lives as long as the ring is open. Volatile, because the
                // other process looks at it.
                unsafe { address.add(offset).write_volatile(value) };
                println!("poked");
            }
            // SAFETY: as above.
            Some("peek") => println!("byte value={}", unsafe { address.add(offset).read_volatile() }),
            _ => return,
        }
    }
}
