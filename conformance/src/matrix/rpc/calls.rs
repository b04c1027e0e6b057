//! What works: calls and streams of all sizes, and the errors of single calls.

use ramway_agents::Result;

use super::super::pair::Pair;
use super::super::stream::{empty, wait};
use super::{all_ok, both, connect, connected, finish, kind, serve, served, serving, settled};
use crate::run::{Program, Scene};
use crate::vectors::rpc::{SUM, method_id};

/// The methods of an agent's server, as `describe` gives them.
fn described() -> String {
    let sum = method_id(SUM);
    assert!(sum > 7, "the numbers are in order");
    format!("1,2,3,4,5,6,7,{sum} {SUM}")
}

/// New programs, which are told a name and no path, and spin on some pairs.
fn by_name(pair: &Pair<'_>, scene: &Scene) -> Result<(Program, Program)> {
    let mut server = scene.start(pair.producer, "server")?;
    server.tell(&format!("open rpc=s role=server wait={}", wait(pair)))?;
    serving(&mut server)?;
    let mut client = scene.start(pair.consumer, "client")?;
    client.tell(&format!("open rpc=s role=client wait={}{}", wait(pair), kind(pair)))?;
    connected(&mut client, &server)?;
    Ok((server, client))
}

/// Blocking calls and many at a time, with metadata and without, by number and by name.
pub fn calls(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let (mut server, mut client) = by_name(pair, scene)?;
    let count = pair.messages / 10;
    all_ok(&mut client, count, "method=1")?;
    all_ok(&mut client, count, "method=1 start=7 in_flight=64 meta=13")?;
    all_ok(&mut client, count / 10, "method=1 sizes=ramp longest=300 in_flight=3 meta=16")?;
    all_ok(&mut client, 20, "method=1 sizes=65000")?;
    all_ok(&mut client, 200, "method=2 sizes=ramp longest=60000 in_flight=2")?;
    all_ok(&mut client, 200, "method=sum in_flight=4")?;
    all_ok(&mut client, 5, "method=7")?;
    all_ok(&mut client, 5, "method=7 deadline=30000000")?;
    client.ask("health", "healthy")?;
    let text = client.ask("describe", "described")?;
    if text.get("text") != Some(&described()) {
        return Err(format!("`{}`, expected {}", text.line, described()).into());
    }
    client.ask("state", "state")?.expect("in_flight=0")?;
    let began = 2 * count + count / 10 + 20 + 200 + 200 + 10;
    settled(scene, &mut server, &mut client)?.expect(&format!("began={began} cancelled=0 clients=1"))?;
    client.finish()?;
    server.finish()?;
    empty(scene)
}

/// Each way in which one call fails; the others go on.
pub fn errors(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let (server, mut client) = both(pair, scene, "", "")?;
    for in_flight in [1, 4] {
        for (keys, expected) in [
            ("method=3 count=5", "count=5 Application=5 may_have_run=5"),
            ("method=99 count=5", "count=5 NoSuchMethod=5 may_have_run=0"),
            ("method=6 count=3", "count=3 HandlerFailed=3 may_have_run=3"),
            ("method=2 count=2 sizes=70000", "count=2 ReplyTooLarge=2 may_have_run=2"),
            ("method=1 count=2 sizes=70000", "count=2 TooLarge=2 may_have_run=0"),
        ] {
            client.ask(&format!("call {keys} in_flight={in_flight}"), "called")?.expect(expected)?;
            all_ok(&mut client, 3, "method=1")?;
        }
    }
    finish(scene, server, client)
}

/// Streams: long ones and empty ones, one and several at a time, with the smallest window, and one that fails.
pub fn streams(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let (mut server, mut client) = both(pair, scene, "", "")?;
    let long = pair.messages / 10;
    for (keys, streams, elements, end) in [
        (format!("count={long} size=100"), 1, long, "Ok"),
        (format!("count={} size=100 window=1", long / 10), 1, long / 10, "Ok"),
        (format!("count={} size=10 streams=8 window=4", long / 10), 8, 8 * (long / 10), "Ok"),
        ("count=20 size=60000 window=2".into(), 1, 20, "Ok"),
        ("count=0 size=8 streams=3".into(), 3, 0, "Ok"),
        ("count=40 size=8 code=9 streams=2".into(), 2, 80, "Application"),
    ] {
        client.ask(&format!("stream {keys}"), "started")?.expect(&format!("count={streams}"))?;
        let failed = if end == "Ok" { 0 } else { streams };
        let expected = format!("received={elements} {end}={streams} may_have_run={failed}");
        client.ask("next", "streamed")?.expect(&expected)?;
    }
    let elements = long + long / 10 + 8 * (long / 10) + 100;
    settled(scene, &mut server, &mut client)?.expect(&format!("began=16 cancelled=0 elements={elements}"))?;
    finish(scene, server, client)
}

/// Four clients at a time, each of which gets its own replies.
pub fn many_clients(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut server = serve(pair, scene, "")?;
    let mut clients = Vec::new();
    for label in ["client 1", "client 2", "client 3", "client 4"] {
        clients.push(connect(pair, scene, &server, "", label)?);
    }
    served(scene, &mut server, "four clients", |event| Ok(event.number::<u64>("clients")? == 4))?;
    let count = pair.messages / 40;
    for (at, client) in clients.iter_mut().enumerate() {
        client.tell(&format!("call method=1 count={count} start={} in_flight=16", 100_000 * at))?;
    }
    for client in &mut clients {
        client.expect("called")?.expect(&format!("count={count} Ok={count}"))?;
    }
    let last = clients.pop().ok_or("four")?;
    clients.into_iter().try_for_each(Program::give_back)?;
    finish(scene, server, last)
}

/// Requests and replies that nearly fill the rings, many at a time: both rings are full again and again, and neither side
/// waits for room without receiving.
pub fn both_ways_full(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let keys = " capacity=4096 max_bytes=4194304";
    let (server, mut client) = both(pair, scene, keys, " max_buffered=4194304")?;
    let count = pair.messages / 50;
    all_ok(&mut client, count, "method=1 sizes=ramp longest=4000 start=3000 in_flight=32")?;
    all_ok(&mut client, count, "method=2 sizes=4000 in_flight=32")?;
    finish(scene, server, client)
}
