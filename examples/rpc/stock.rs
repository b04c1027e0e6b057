//! The stock of a shop, as an RPC server: one of three programs in three languages, which the guide (docs/guides/rpc.md) starts in
//! three terminals. Bodies are JSON; the guide has a table of the methods.

use ramway::rpc::{Fault, Request, Server};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

const ITEMS: [&str; 3] = ["apple", "pear", "plum"];
const SHELVES: u32 = 1000;
/// Somebody has to walk to a shelf to count it.
const COUNTING: Duration = Duration::from_millis(100);
/// How long calls that run may go on when the server ends.
const DRAIN: Duration = Duration::from_secs(5);

/// What lies on a shelf.
#[derive(Clone, Serialize)]
struct Shelf {
    shelf: u32,
    item: &'static str,
    count: u32,
}

#[derive(Deserialize)]
struct Take {
    item: String,
    count: u32,
}

#[derive(Serialize)]
struct Taken {
    left: u32,
}

#[derive(Deserialize)]
struct Count {
    /// The first shelf to count.
    from: u32,
}

type Shelves = Arc<Mutex<Vec<Shelf>>>;

fn main() -> ExitCode {
    ramway_examples::exit_code("stock", serve())
}

fn serve() -> Result<(), Box<dyn Error>> {
    let shelf = |shelf| Shelf { shelf, item: ITEMS[shelf as usize % ITEMS.len()], count: 4 };
    let shelves: Shelves = Arc::new(Mutex::new((1..=SHELVES).map(shelf).collect()));

    let mut server = Server::bind("stock")?;
    let stock = Arc::clone(&shelves);
    server.method("Stock.Take", move |request| take(&mut lock(&stock), &read(request)?))?;
    // It waits, and must not hold up who takes something: on the pool's threads.
    server.pool_stream("Stock.Count", move |request| Ok(count(Arc::clone(&shelves), &read(request)?)))?;

    // guide: drain
    let (stopper, mut signals) = (server.stopper(), Signals::new([SIGINT, SIGTERM])?);
    thread::spawn(move || signals.forever().for_each(|_| stopper.shutdown(DRAIN)));
    println!("serving at {}", server.path().display());
    server.run()?;
    // guide: end
    println!("closed");
    Ok(())
}

fn lock(shelves: &Shelves) -> MutexGuard<'_, Vec<Shelf>> {
    shelves.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<'a, T: Deserialize<'a>>(request: &Request<'a>) -> Result<T, Fault> {
    serde_json::from_slice(request.body()).map_err(|error| Fault::new(400, error.to_string()))
}

fn write(message: &impl Serialize) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(message).map_err(|error| Fault::new(500, error.to_string()))
}

fn take(shelves: &mut [Shelf], wanted: &Take) -> Result<Vec<u8>, Fault> {
    if !ITEMS.contains(&wanted.item.as_str()) {
        return Err(Fault::new(404, format!("there is no {:?}", wanted.item)));
    }
    let here = || shelves.iter().filter(|shelf| shelf.item == wanted.item);
    let left: u32 = here().map(|shelf| shelf.count).sum();
    if left < wanted.count {
        return Err(Fault::new(409, format!("only {left} of {:?} are left", wanted.item)));
    }
    let mut missing = wanted.count;
    for shelf in shelves.iter_mut().filter(|shelf| shelf.item == wanted.item) {
        let taken = missing.min(shelf.count);
        shelf.count -= taken;
        missing -= taken;
    }
    write(&Taken { left: left - wanted.count })
}

/// Shelf by shelf. No more than the caller's window is counted ahead, and nothing more once the call is cancelled.
fn count(shelves: Shelves, wanted: &Count) -> impl Iterator<Item = Result<Vec<u8>, Fault>> + use<> {
    (wanted.from.max(1)..=SHELVES).map(move |number| {
        thread::sleep(COUNTING);
        let shelf = lock(&shelves)[number as usize - 1].clone();
        write(&shelf)
    })
}
