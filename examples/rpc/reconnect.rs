//! A client whose server is killed and started again under it: it connects again by a policy of its own, and says of how many calls nobody
//! knows whether they were run. The guide (docs/guides/rpc.md) shows the part that is marked.

use ramway::rpc::{Fault, Server};
use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "usage: reconnect serve NAME FILE | reconnect call NAME CALLS";

fn main() -> ExitCode {
    ramway_examples::run("reconnect", |arguments| match arguments {
        ["serve", name, file] => serve(name, file),
        ["call", name, calls] => book(name, calls.parse()?),
        _ => Err(USAGE.into()),
    })
}

/// Each call adds a byte to a file.
fn serve(name: &str, file: &str) -> Result<(), Box<dyn Error>> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    let mut server = Server::bind(name)?;
    server.method("Till.Book", move |_| file.write_all(b".").map_err(|error| Fault::new(1, error.to_string())))?;
    Ok(server.run()?)
}

fn book(name: &str, calls: u64) -> Result<(), Box<dyn Error>> {
    let mut till = Reconnecting { name: name.into(), client: None, limit: Duration::from_secs(60) };
    let (mut booked, mut unknown) = (0, 0_u64);
    while booked < calls {
        match till.call(method_id("Till.Book"), b"", false)? {
            Ok(_) => booked += 1,
            // To book it again could be to book it twice.
            Err(error) if error.kind() == Some(ErrorKind::PeerDead) => unknown += 1,
            Err(error) => return Err(error.into()),
        }
    }
    println!("{booked} booked, {unknown} perhaps");
    Ok(())
}

// guide: reconnect
use ramway::ErrorKind;
use ramway::rpc::{CallOptions, CallResult, Client, Reply, Status, method_id};
use std::time::{Duration, Instant};

/// A client that connects again where its server has gone.
struct Reconnecting {
    name: String,
    client: Option<Client>,
    /// For a call, with all that is done again.
    limit: Duration,
}

impl Reconnecting {
    /// Makes a call, again if it was not run; if it may have been run, again only where `twice` says that this does no harm.
    /// The outer error: there is no server.
    fn call(&mut self, method: u32, body: &[u8], twice: bool) -> ramway::Result<CallResult<Reply>> {
        let end = Instant::now() + self.limit;
        let mut pause = Duration::from_millis(1);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let client = match &mut self.client {
                Some(client) => client,
                // Waits for the next server.
                none => none.insert(Client::connector(&self.name).timeout(left).connect()?),
            };
            let error = match client.call_with(method, body, &CallOptions::new().timeout(left)) {
                Ok(reply) => return Ok(Ok(reply)),
                Err(error) => error,
            };
            let is_over = matches!(error.kind(), Some(ErrorKind::Closed | ErrorKind::PeerDead));
            let is_busy = matches!(error.status(), Some(Status::Overloaded | Status::Draining));
            if is_over {
                self.client = None;
            }
            if !(is_over || is_busy) || (error.may_have_run() && !twice) || left.is_zero() {
                return Ok(Err(error));
            }
            if is_busy {
                std::thread::sleep(pause.min(left));
                pause *= 2;
            }
        }
    }
}
// guide: end
