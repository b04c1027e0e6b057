//! Topics in tokio: publishers and subscribers of each policy as tasks.

mod support;

use futures_util::{SinkExt, StreamExt};
use ramway::tokio::{AsyncReceiver, AsyncSender};
use ramway::{ErrorKind, OwnedMessage, Policy, Topic};
use std::time::{Duration, Instant};
use support::topic::{POLICIES, create, is_whole, message};
use support::{Dir, LONG, Peer, helper_role, listen, say};
use tokio::time::timeout;

const SHORT: Duration = Duration::from_millis(20);

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["idle", name] => {
            let _subscriber = Topic::open(name).subscriber().unwrap();
            say("ready");
            listen();
        }
        _ => panic!("{role:?}"),
    }
}

fn publisher(name: &str) -> AsyncSender<Topic> {
    AsyncSender::new(create(name, 4096).publisher().unwrap()).unwrap()
}

fn subscriber(name: &str, policy: Policy) -> AsyncReceiver<Topic> {
    AsyncReceiver::new(Topic::open(name).policy(policy).subscriber().unwrap()).unwrap()
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(LONG, future).await.expect("a wake-up was lost")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_policy_is_a_task() {
    const COUNT: u64 = 5000;
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = publisher(&name);
    let tasks: Vec<_> = POLICIES
        .into_iter()
        .map(|policy| {
            let mut subscriber = subscriber(&name, policy);
            tokio::spawn(async move {
                let (mut before, mut total) = (0, 0);
                while before < COUNT {
                    let received = in_time(subscriber.recv()).await.unwrap();
                    let seq = received.seq();
                    assert!(seq > before && is_whole(&received, seq));
                    total += 1 + received.lost();
                    before = seq;
                    if seq % 50 == 0 {
                        drop(received);
                        tokio::time::sleep(Duration::from_micros(seq % 900)).await;
                    }
                }
                assert!(total == COUNT || policy == Policy::Latest);
                assert!(policy != Policy::Reliable || subscriber.get_mut().lost() == 0);
                assert_eq!(in_time(subscriber.recv()).await.unwrap_err().kind(), ErrorKind::Closed);
            })
        })
        .collect();
    in_time(publisher.wait_for_peer()).await.unwrap();
    for seq in 1..=COUNT {
        in_time(publisher.send_tagged(1, seq, &message(seq, (seq * 3 % 500) as usize))).await.unwrap();
    }
    publisher.into_inner().unwrap().close().unwrap();
    for task in tasks {
        in_time(task).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_receive_takes_nothing() {
    const COUNT: u64 = 1500;
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = publisher(&name);
    let mut reliable = subscriber(&name, Policy::Reliable);
    let sender = tokio::spawn(async move {
        for i in 0..COUNT {
            publisher.send(0, &i.to_le_bytes()).await.unwrap();
            if i % 7 == 0 {
                tokio::time::sleep(Duration::from_micros(i % 1_500)).await;
            }
        }
        publisher
    });
    let (mut next, started) = (1, Instant::now());
    while next <= COUNT {
        assert!(started.elapsed() < LONG);
        if let Ok(received) = timeout(Duration::from_micros(300), reliable.recv()).await {
            let received = received.unwrap();
            assert_eq!((received.seq(), received.lost()), (next, 0));
            next += 1;
        }
    }
    drop(sender.await.unwrap());
}

#[tokio::test(flavor = "current_thread")]
async fn batches_streams_and_sinks() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = publisher(&name);
    let (mut reliable, mut lossy) = (subscriber(&name, Policy::Reliable), subscriber(&name, Policy::Lossy));
    for n in 0..5u8 {
        publisher.feed(OwnedMessage { type_id: 1, tag: n.into(), data: vec![n; 9] }).await.unwrap();
    }
    SinkExt::<OwnedMessage>::flush(&mut publisher).await.unwrap();
    assert_eq!(reliable.recv_batch(0).await.unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(in_time(reliable.recv_batch(3)).await.unwrap().iter().count(), 3);
    let mut buffer = Vec::new();
    assert_eq!(in_time(reliable.recv_into(&mut buffer)).await.unwrap().seq, 4);
    for seq in 1..=5 {
        let copy = in_time(lossy.next()).await.unwrap().unwrap();
        assert_eq!((copy.seq, copy.lost, copy.tag), (seq, 0, seq - 1));
    }
    assert!(timeout(SHORT, lossy.next()).await.is_err());
    SinkExt::<OwnedMessage>::close(&mut publisher).await.unwrap();
    assert!(in_time(lossy.next()).await.is_none(), "a close ends the stream");
    assert_eq!(in_time(reliable.next()).await.unwrap().unwrap().seq, 5);
    assert!(in_time(reliable.next()).await.is_none());
}

#[tokio::test(flavor = "current_thread")]
async fn a_killed_subscriber_frees_a_publisher_that_is_a_task() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = publisher(&name);
    let mut dying = Peer::start(&["idle", &name]);
    dying.expect("ready");
    while publisher.get_mut().unwrap().try_send(0, &[0; 500]).is_ok() {}
    assert!(timeout(SHORT, publisher.send(0, &[0; 500])).await.is_err(), "it is full");
    dying.kill();
    let killed = Instant::now();
    in_time(publisher.send(0, &[0; 500])).await.unwrap();
    println!("free after {:?}", killed.elapsed());
}

#[tokio::test(flavor = "current_thread")]
async fn an_ejection_is_told_and_the_stream_goes_on() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let sender = create(&name, 4096).eject_after(Duration::from_millis(50)).publisher().unwrap();
    let mut publisher = AsyncSender::new(sender).unwrap();
    let mut slow = subscriber(&name, Policy::Reliable);
    for _ in 0..20 {
        in_time(publisher.send(0, &[0; 500])).await.unwrap();
    }
    let lagged = in_time(slow.next()).await.unwrap().unwrap_err();
    assert_eq!(lagged.kind(), ErrorKind::Lagged);
    let mut next = 1 + lagged.lost().unwrap();
    while next <= 20 {
        assert_eq!(in_time(slow.next()).await.unwrap().unwrap().seq, next);
        next += 1;
    }
}

/// Subscribers that nobody waits for come and go: they are not whom the publisher waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_waits_for_a_reliable_subscriber() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = publisher(&name);
    let waiting = tokio::spawn(async move { publisher.wait_for_peer().await.map(|_| publisher) });
    for _ in 0..20 {
        drop(Topic::open(&name).lossy().subscriber().unwrap());
        tokio::time::sleep(SHORT / 10).await;
        assert!(!waiting.is_finished());
    }
    let mut reliable = subscriber(&name, Policy::Reliable);
    let mut publisher = in_time(waiting).await.unwrap().unwrap();
    publisher.send(0, b"x").await.unwrap();
    assert_eq!(in_time(reliable.recv()).await.unwrap().seq(), 1);
    assert_eq!(in_time(reliable.wait_for_peer()).await.unwrap(), 1);
}
