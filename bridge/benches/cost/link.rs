//! The same over Zenoh alone, as its own examples do it: `z_pub_thr` and `z_sub_thr`, `z_ping` and `z_pong`.

use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use zenoh::Wait;
use zenoh::qos::CongestionControl;

use crate::{Done, obey, read_all};

/// A session with the settings that a bridge has.
fn session(way: &str, endpoint: &str) -> zenoh::Result<zenoh::Session> {
    let mut config = zenoh::Config::default();
    config.insert_json5("listen/endpoints", "[]")?;
    config.insert_json5(&format!("{way}/endpoints"), &format!("[\"{endpoint}\"]"))?;
    config.insert_json5("connect/timeout_ms", "-1")?;
    config.insert_json5("scouting/multicast/enabled", "false")?;
    zenoh::open(config).wait()
}

/// Until somebody subscribes: what is put before goes nowhere.
fn wait_for_subscriber(publisher: &zenoh::pubsub::Publisher<'_>) -> zenoh::Result<()> {
    while !publisher.matching_status().wait()?.matching() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

pub fn put(endpoint: &str, size: usize) -> Done {
    let session = session("connect", endpoint)?;
    let publisher = session.declare_publisher("there").congestion_control(CongestionControl::Block).wait()?;
    wait_for_subscriber(&publisher)?;
    let mut message = vec![1; size];
    let mut sent = 0u64;
    obey(|number| {
        for _ in 0..number {
            message[..8].copy_from_slice(&sent.to_le_bytes());
            publisher.put(&message[..]).wait()?;
            sent += 1;
        }
        Ok(String::new())
    })
}

pub fn subscribe(endpoint: &str) -> Done {
    let session = session("listen", endpoint)?;
    let (goal, goals) = mpsc::channel::<u64>();
    let (to, done) = mpsc::channel();
    // Zenoh calls it from one thread at a time and wants it to be shareable all the same: the lock is never taken.
    let mut goals = Mutex::new(goals);
    let mut state = (0u64, 0u64, None);
    let callback = move |sample: zenoh::sample::Sample| {
        let (received, sum, until) = &mut state;
        let mut slices = sample.payload().slices();
        let first = slices.next().expect("a message has bytes");
        assert_eq!(first[..8], received.to_le_bytes(), "the next one arrives");
        *sum = slices.fold(sum.wrapping_add(read_all(first)), |sum, slice| sum.wrapping_add(read_all(slice)));
        *received += 1;
        // It is said before anything is sent.
        let goal = *until.get_or_insert_with(|| {
            *received - 1 + goals.get_mut().expect("never taken").recv().unwrap_or(u64::MAX / 2)
        });
        if *received == goal {
            *until = None;
            let _ = to.send(*sum);
        }
    };
    let _subscriber = session.declare_subscriber("there").callback_mut(callback).wait()?;
    obey(|number| {
        goal.send(number)?;
        Ok(done.recv()?.to_string())
    })
}

pub fn ping(endpoint: &str, size: usize) -> Done {
    let session = session("connect", endpoint)?;
    let back = session.declare_subscriber("back").wait()?;
    let there = session.declare_publisher("there").congestion_control(CongestionControl::Block).express(true).wait()?;
    wait_for_subscriber(&there)?;
    let message: zenoh::bytes::ZBytes = vec![1; size].into();
    // The other side's publisher has to know of `back` too: the first that comes back says so.
    while {
        there.put(message.clone()).wait()?;
        back.recv_timeout(Duration::from_millis(100))?.is_none()
    } {}
    while back.recv_timeout(Duration::from_millis(100))?.is_some() {}
    obey(|number| {
        let mut took = Vec::with_capacity(number as usize);
        for _ in 0..number {
            let begin = Instant::now();
            there.put(message.clone()).wait()?;
            assert_eq!(back.recv()?.payload().len(), size, "it comes back");
            took.push(begin.elapsed().as_nanos() as u64);
        }
        took.sort_unstable();
        Ok(took[took.len() / 2].to_string())
    })
}

pub fn pong(endpoint: &str) -> Done {
    let session = session("listen", endpoint)?;
    let back = session.declare_publisher("back").congestion_control(CongestionControl::Block).express(true).wait()?;
    let answer = move |sample: zenoh::sample::Sample| {
        back.put(sample.payload().clone()).wait().expect("the session is open");
    };
    let _subscriber = session.declare_subscriber("there").callback(answer).wait()?;
    obey(|_| Ok(String::new()))
}
