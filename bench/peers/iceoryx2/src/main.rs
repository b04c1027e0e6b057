//! iceoryx2: a publish-subscribe service of byte slices each way, loaned, filled, sent and read in place. No overflow,
//! and a publisher that waits for space: nothing may be lost. Where the sides poll, `receive` in a loop, as its own
//! benchmark does; where they sleep, an event service beside each, a notification for each message. It has no wait that
//! polls first.

mod fan;
mod producers;
mod rpc;

use core::mem::MaybeUninit;
use fan::Topic;
use iceoryx2::port::{listener::Listener, notifier::Notifier, publisher::Publisher, subscriber::Subscriber};
use iceoryx2::prelude::*;
use ramway_bench::fan::{ManyToOne, OneToMany};
use ramway_bench::{About, Burst, Channel, End, Failure, Kind, Mechanism, Mode, Prepared, Setup};

type Result<T> = std::result::Result<T, Failure>;

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

struct Iceoryx2;

struct Pair {
    // Ports go before the node that they belong to.
    tx: Publisher<ipc::Service, [u8], ()>,
    rx: Subscriber<ipc::Service, [u8], ()>,
    notifier: Notifier<ipc::Service>,
    listener: Listener<ipc::Service>,
    sleeps: bool,
    _node: Node<ipc::Service>,
    _rest: Option<Rest>,
}

/// What it leaves behind: a file that all nodes of a prefix share is never removed, and after a kill there are more.
struct Rest(String);

const PREFIX: &str = "ramway_bench_";

impl Drop for Rest {
    fn drop(&mut self) {
        remove(|name| name.starts_with(&self.0));
    }
}

/// Removes memory of pairs by its name.
fn remove(wanted: impl Fn(&str) -> bool) {
    for entry in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(&wanted) {
            // Somebody else may have done so.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Of a pair whose leading process is gone.
fn is_stale(name: &str) -> bool {
    let pid =
        name.strip_prefix(PREFIX).and_then(|rest| rest.split('_').next()).filter(|pid| pid.parse::<u32>().is_ok());
    pid.is_some_and(|pid| !std::path::Path::new("/proc").join(pid).exists())
}

/// As many messages wait at most, whatever their size: more have not made it faster.
const BUFFERED_MAX: usize = 4096;

fn buffered(setup: &Setup) -> usize {
    (setup.capacity as usize / setup.largest.max(1)).clamp(2, BUFFERED_MAX)
}

fn open(setup: &Setup, prefix: &str, sends_on: &str, receives_on: &str) -> Result<Pair> {
    set_log_level(LogLevel::Error);
    let mut config = Config::default();
    // Names of this pair's own: nothing is shared with, or left to, another run.
    config.global.prefix = FileName::new(prefix.as_bytes())?;
    let directory = setup.directory.to_str().ok_or("a path that is not UTF-8")?;
    config.global.set_root_path(&Path::new(directory.as_bytes())?);
    let node = NodeBuilder::new()
        .config(&config)
        .signal_handling_mode(SignalHandlingMode::Disabled)
        .create::<ipc::Service>()?;
    let messages = |name: &str| -> Result<_> {
        let service = node.service_builder(&name.try_into()?).publish_subscribe::<[u8]>();
        let service = service.max_publishers(1).max_subscribers(1).max_nodes(2).history_size(0);
        let service = service.subscriber_max_buffer_size(buffered(setup)).subscriber_max_borrowed_samples(1);
        Ok(service.payload_alignment(Alignment::ALIGN_64).enable_safe_overflow(false).open_or_create()?)
    };
    let events = |name: &str| -> Result<_> {
        let service = node.service_builder(&name.try_into()?).event();
        Ok(service.max_notifiers(1).max_listeners(1).max_nodes(2).open_or_create()?)
    };
    let rx = messages(receives_on)?.subscriber_builder().buffer_size(buffered(setup)).create()?;
    let listener = events(&format!("{receives_on}-event"))?.listener_builder().create()?;
    let tx = messages(sends_on)?
        .publisher_builder()
        .initial_max_slice_len(setup.largest)
        .max_loaned_samples(1)
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()?;
    let notifier = events(&format!("{sends_on}-event"))?.notifier_builder().create()?;
    Ok(Pair { tx, rx, notifier, listener, sleeps: false, _node: node, _rest: None })
}

impl Mechanism for Iceoryx2 {
    fn about(&self) -> About {
        let what =
            "iceoryx2 publish-subscribe in place, without overflow; an event for each message where a side sleeps";
        About::new("iceoryx2", Kind::Peer, false, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.size > 0 && burst.mode != Mode::Hybrid && !burst.test.is_fan()
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        remove(is_stale);
        let prefix = format!("{PREFIX}{}_", std::process::id());
        let mut pair = open(setup, &prefix, "there", "back")?;
        pair._rest = Some(Rest(prefix.clone()));
        Ok(Prepared::new(prefix, move || Ok(Box::new(pair) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(open(setup, ticket, "back", "there")?))
    }
}

impl Channel for Pair {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        self.sleeps = mode == Mode::Block;
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut sample = self.tx.loan_slice_uninit(size)?;
        let payload: &mut [MaybeUninit<u8>] = sample.payload_mut();
        // SAFETY: the same bytes; `fill` only writes, and writes all of them.
        fill(unsafe { std::slice::from_raw_parts_mut(payload.as_mut_ptr().cast(), size) });
        // SAFETY: filled just now.
        let sample = unsafe { sample.assume_init() };
        if sample.send()? != 1 {
            return Err("a message was sent to nobody".into());
        }
        if self.sleeps {
            self.notifier.notify()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let mut count = 0;
        while count < max {
            let Some(sample) = self.rx.receive()? else {
                match (count > 0, self.sleeps) {
                    (true, _) => break,
                    // Returns at once if there was a notification since the last time.
                    (false, true) => _ = self.listener.blocking_wait(|_| {})?,
                    (false, false) => std::hint::spin_loop(),
                }
                continue;
            };
            if sample.payload().len() != size {
                return Err(format!("a message of {} bytes instead of {size}", sample.payload().len()).into());
            }
            read(sample.payload());
            count += 1;
        }
        Ok(count)
    }
}

fn main() {
    let fans = [
        OneToMany(Topic::Unread("iceoryx2-1", 1)),
        OneToMany(Topic::Unread("iceoryx2-8", 8)),
        OneToMany(Topic::Readers),
        OneToMany(Topic::Blackboard),
    ];
    let producers = ManyToOne(producers::Producers);
    match ramway_bench::child_main(&[&Iceoryx2, &fans[0], &fans[1], &fans[2], &fans[3], &producers, &rpc::Rpc]) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
