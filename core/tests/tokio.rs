//! Rings and regions in tokio: nothing is lost or done twice, whatever is cancelled when.

mod support;

use futures_util::{SinkExt, StreamExt};
use ramway::tensor::Dtype;
use ramway::tokio::{AsyncReceiver, AsyncRegion, AsyncSender};
use ramway::{Bus, ErrorKind, OwnedMessage, Region, Ring};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::LONG;
use tokio::time::timeout;

const PART: &str = "RAMWAY_TOKIO_PART";

/// What the other process of `test` is to do, in that process.
fn part_of(test: &str) -> Option<String> {
    std::env::var(PART).ok()?.strip_prefix(test)?.strip_prefix(' ').map(str::to_owned)
}

fn part(test: &str, part: &str) -> Child {
    support::only(test)
        .env(PART, format!("{test} {part}"))
        // Its summary is not this process's; what goes wrong is told on stderr.
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn name(test: &str) -> String {
    format!("/dev/shm/ramway-tokio-{}-{test}", std::process::id())
}

fn pair(capacity: u64) -> (AsyncSender, AsyncReceiver) {
    let (tx, rx) = Ring::pair(capacity).unwrap();
    (AsyncSender::new(tx).unwrap(), AsyncReceiver::new(rx).unwrap())
}

fn halves(bus: Bus) -> (AsyncSender, AsyncReceiver) {
    let (tx, rx) = bus.split();
    (AsyncSender::new(tx.unwrap()).unwrap(), AsyncReceiver::new(rx.unwrap()).unwrap())
}

/// For futures that must not be late.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let value = timeout(LONG, future).await.expect("a wake-up was lost");
    assert!(started.elapsed() < LONG / 2, "a wake-up came far too late");
    value
}

async fn ping_pong(test: &str) {
    const ROUNDS: u64 = 10_000;
    if let Some(name) = part_of(test) {
        let (mut tx, mut rx) = halves(Bus::connect(name).unwrap());
        while let Ok(message) = in_time(rx.recv()).await {
            let (tag, payload) = (message.tag(), message.to_vec());
            drop(message);
            in_time(tx.send_tagged(0, tag, &payload)).await.unwrap();
        }
        return;
    }
    let name = name(test);
    let mut other = part(test, &name);
    let (mut tx, mut rx) = halves(Bus::listen(&name, 4096).unwrap());
    let started = Instant::now();
    for i in 0..ROUNDS {
        in_time(tx.send_tagged(0, i, &i.to_le_bytes())).await.unwrap();
        let message = in_time(rx.recv()).await.unwrap();
        assert_eq!((message.tag(), &*message), (i, &i.to_le_bytes()[..]));
    }
    println!("figure: {:?} a round trip", started.elapsed() / ROUNDS as u32);
    drop((tx, rx));
    assert!(other.wait().unwrap().success());
}

#[tokio::test(flavor = "current_thread")]
async fn ping_pong_on_one_thread() {
    ping_pong("ping_pong_on_one_thread").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ping_pong_on_two_threads() {
    ping_pong("ping_pong_on_two_threads").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_receive_takes_nothing() {
    const MESSAGES: u64 = 3_000;
    let (mut tx, mut rx) = pair(4096);
    let sender = tokio::spawn(async move {
        for i in 0..MESSAGES {
            tx.send(0, &i.to_le_bytes()).await.unwrap();
            if i % 7 == 0 {
                tokio::time::sleep(Duration::from_micros(i % 1_500)).await;
            }
        }
    });
    let (mut next, mut cancelled) = (0u64, 0);
    let started = Instant::now();
    while next < MESSAGES {
        assert!(started.elapsed() < LONG);
        match timeout(Duration::from_micros(300), rx.recv()).await {
            Ok(message) => {
                assert_eq!(*message.unwrap(), next.to_le_bytes());
                next += 1;
            }
            Err(_) => cancelled += 1,
        }
    }
    assert!(cancelled > 0);
    sender.await.unwrap();
    assert_eq!(in_time(rx.recv()).await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_send_sends_nothing() {
    let (mut tx, mut rx) = pair(4096);
    let receiver = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Ok(message) = rx.recv().await {
            all.push(u64::from_le_bytes(message[..8].try_into().unwrap()));
            drop(message);
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        all
    });
    let mut payload = [0; 1_000];
    let (mut sent, mut cancelled) = (Vec::new(), 0);
    for i in 0..1_000u64 {
        payload[..8].copy_from_slice(&i.to_le_bytes());
        match timeout(Duration::from_micros(500), tx.send(0, &payload)).await {
            Ok(done) => {
                done.unwrap();
                sent.push(i);
            }
            Err(_) => cancelled += 1,
        }
    }
    assert!(cancelled > 0);
    let slot = in_time(tx.reserve(8)).await.unwrap();
    drop(slot);
    drop(tx);
    assert_eq!(in_time(receiver).await.unwrap(), sent);
}

#[tokio::test(flavor = "current_thread")]
async fn many_receivers_need_no_threads() {
    const TEST: &str = "many_receivers_need_no_threads";
    const RINGS: usize = 200;
    // Alone in a process, where nobody else starts threads.
    if part_of(TEST).is_none() {
        assert!(part(TEST, "alone").wait().unwrap().success());
        return;
    }
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    // Where io_uring is missing there is one thread for each; that is not what this looks at.
    let before = threads();
    let (_tx, rx) = pair(4096);
    let has_uring = threads() <= before;
    drop(rx);
    let mut senders = Vec::new();
    let mut tasks = tokio::task::JoinSet::new();
    for i in 0..RINGS as u64 {
        let (tx, rx) = Ring::pair(4096).unwrap();
        senders.push(tx);
        tasks.spawn(async move {
            let mut rx = AsyncReceiver::new(rx).unwrap();
            assert_eq!(*in_time(rx.recv()).await.unwrap(), i.to_le_bytes());
            i
        });
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    if has_uring {
        assert!(threads() <= before + 1, "{} threads", threads());
    }
    for (i, tx) in senders.iter_mut().enumerate().rev() {
        tx.send(0, &(i as u64).to_le_bytes()).unwrap();
    }
    let mut done = 0;
    while let Some(result) = in_time(tasks.join_next()).await {
        result.unwrap();
        done += 1;
    }
    assert_eq!(done, RINGS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_and_sinks() {
    const MESSAGES: u64 = 5_000;
    let (mut first, stream) = pair(4096);
    let (sink, mut last) = pair(8192);
    // The middle hands everything on: a stream of messages is what a sink takes.
    let middle = tokio::spawn(stream.forward(sink));
    let source = tokio::spawn(async move {
        for i in 0..MESSAGES {
            let data = vec![i as u8; (i % 700) as usize];
            first.feed(OwnedMessage { type_id: 5, tag: i, data }).await.unwrap();
        }
        first.close().await.unwrap();
        assert_eq!(first.send(0, b"").await.unwrap_err().kind(), ErrorKind::Detached);
    });
    let mut expected = 0;
    while let Some(message) = in_time(last.next()).await {
        let message = message.unwrap();
        assert_eq!((message.type_id, message.tag), (5, expected));
        assert_eq!(message.data, vec![expected as u8; (expected % 700) as usize]);
        expected += 1;
    }
    assert_eq!(expected, MESSAGES);
    assert!(in_time(last.next()).await.is_none());
    source.await.unwrap();
    middle.await.unwrap().unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn handles_leave_the_runtime_while_they_wait() {
    let (mut tx, mut rx) = Ring::pair(4096).unwrap();
    for i in 0..100u64 {
        let mut waiting = AsyncReceiver::new(rx).unwrap();
        assert!(timeout(Duration::from_micros(100), waiting.recv()).await.is_err());
        rx = waiting.into_inner();
        tx.send(0, &i.to_le_bytes()).unwrap();
        assert_eq!(*rx.recv().unwrap(), i.to_le_bytes());
    }
    let mut waiting = AsyncReceiver::new(rx).unwrap();
    assert!(timeout(Duration::from_millis(1), waiting.recv()).await.is_err());
    drop(waiting);
    assert_eq!(tx.send(0, b"").unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(flavor = "current_thread")]
async fn a_receiver_that_is_dead_says_so_and_does_not_wait() {
    use ramway::layout::{BLOCK_OFFSETS, RingBlock, TailLine};
    use std::os::unix::fs::FileExt;
    let name = name("dead");
    let _tx = Ring::create(&name).capacity(4096).sender().unwrap();
    let mut rx = AsyncReceiver::new(Ring::open(&name).receiver().unwrap()).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let tail = BLOCK_OFFSETS[0] + std::mem::offset_of!(RingBlock, tail) + std::mem::offset_of!(TailLine, tail);
    // Beyond the capacity, and after that as if nothing had been.
    for lie in [8192u64, 0] {
        file.write_all_at(&lie.to_le_bytes(), tail as u64).unwrap();
        assert_eq!(in_time(rx.recv()).await.unwrap_err().kind(), ErrorKind::Corrupt, "{lie}");
    }
    // Nobody has seen the sender's close, and so the ring would stay for one who does.
    std::fs::remove_file(name).unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn a_region_wakes_a_task() {
    const TEST: &str = "a_region_wakes_a_task";
    const ROUNDS: u64 = 2_000;
    if let Some(name) = part_of(TEST) {
        let region = Region::open(name).unwrap();
        for i in 0..ROUNDS {
            region.atomic_u64(0).unwrap().fetch_add(1, std::sync::atomic::Ordering::Release);
            region.notify().unwrap();
            if i % 50 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        return;
    }
    let name = name("region");
    let region = AsyncRegion::new(Region::create(&name, 8).unwrap()).unwrap();
    let mut other = part(TEST, &name);
    while region.get_ref().load_u64(0).unwrap() < ROUNDS {
        in_time(region.wait()).await.unwrap();
    }
    assert!(other.wait().unwrap().success());
}

#[tokio::test]
async fn a_tensor_waits_for_room_too() {
    let (mut tx, mut rx) = pair(4096);
    tx.send(0, &[0; 3000]).await.unwrap();
    let consumer = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(in_time(rx.recv()).await.unwrap());
        let message = in_time(rx.recv()).await.unwrap();
        message.tensor().unwrap().as_slice::<u16>().unwrap().iter().map(|&n| u64::from(n)).sum::<u64>()
    });
    let too_large = tx.reserve_tensor(Dtype::U16, &[3000]).await.unwrap_err();
    assert_eq!(too_large.kind(), ErrorKind::TooLarge);
    let mut slot = in_time(tx.reserve_tensor(Dtype::U16, &[1000])).await.unwrap();
    slot.as_mut_slice::<u16>().unwrap().fill(7);
    slot.commit().unwrap();
    assert_eq!(consumer.await.unwrap(), 7000);
}

#[tokio::test]
async fn a_wait_for_the_peer_ends_when_it_comes() {
    let name = name("peer");
    let mut rx = AsyncReceiver::new(Ring::create(&name).capacity(4096).receiver().unwrap()).unwrap();
    assert!(timeout(Duration::from_millis(50), rx.wait_for_peer()).await.is_err());
    let (epoch, tx) = tokio::join!(rx.wait_for_peer(), async {
        tokio::task::yield_now().await;
        Ring::open(&name).sender().unwrap()
    });
    assert_eq!(epoch.unwrap(), 1);
    drop(tx);
    // The wait before left the descriptor armed for a peer: messages and endings are seen all the same.
    assert_eq!(timeout(LONG, rx.recv()).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    // This one is gone again before the receiver looks.
    let (epoch, ()) = tokio::join!(rx.wait_for_peer(), async {
        tokio::task::yield_now().await;
        let mut tx = Ring::open(&name).sender().unwrap();
        tx.send(1, b"gone again").unwrap();
    });
    assert_eq!(epoch.unwrap(), 2);
    assert_eq!(&*timeout(LONG, rx.recv()).await.unwrap().unwrap(), b"gone again");

    let mut tx = AsyncSender::new(Ring::open(&name).sender().unwrap()).unwrap();
    assert_eq!(timeout(LONG, tx.wait_for_peer()).await.unwrap().unwrap(), 1);
    // Its close would keep the name, because the receiver goes without having seen it.
    drop((tx, rx));
    ramway::survey::unlink(&name).unwrap();
}
