//! What is bounded, what is cancelled, whose time is over, and who is refused.

use ramway_agents::Result;

use super::super::pair::Pair;
use super::{all_ok, both, connect, connected, finish, of, serve, served, settled, sum, wait};
use crate::run::Scene;

/// Streams that nobody reads stop by themselves, and stop no other call.
pub fn slow_reader(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let (mut server, mut client) = both(pair, scene, "", "")?;
    let (streams, window, count) = (2, 4, 1000);
    client.ask(&format!("stream count={count} size=1000 streams={streams} window={window}"), "started")?;
    served(scene, &mut server, "full windows", |event| Ok(event.number::<u64>("elements")? >= streams * window))?;
    all_ok(&mut client, 200, "method=1")?;
    all_ok(&mut client, 200, "method=1 in_flight=16")?;
    client.ask("health", "healthy")?;
    let elements: u64 = server.ask("served", "served")?.number("elements")?;
    // Each stream may have one that waits for credit, and a handler may have handed over the one after it.
    if elements > streams * (window + 2) {
        return Err(format!("{streams} streams of a window of {window} that nobody read came to {elements}").into());
    }
    client.ask("next count=10", "streamed")?.expect("received=20")?;
    all_ok(&mut client, 20, "method=1")?;
    client.ask("next", "streamed")?.expect("received=1980 Ok=2 may_have_run=0")?;
    settled(scene, &mut server, &mut client)?;
    finish(scene, server, client)
}

/// 10,000 calls at a time, of which none ends before all are there.
pub fn in_flight(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    // One more for `health`.
    let (mut server, mut client) =
        both(pair, scene, " max_in_flight=10001 max_bytes=67108864", " max_buffered=67108864")?;
    client.ask("start method=5 count=10000 sizes=8", "started")?.expect("count=10000")?;
    client.ask("health", "healthy")?;
    client.ask("state", "state")?.expect("in_flight=10000")?;
    all_ok(&mut client, 10, "method=1")?;
    server.ask("gate", "opened")?;
    client.ask("collect", "called")?.expect("count=10000 Ok=10000 may_have_run=0 bytes=80000")?;
    settled(scene, &mut server, &mut client)?.expect("began=10010")?;
    finish(scene, server, client)
}

/// A client keeps to the server's limit by itself, and waits; what a server would have to copy beyond its limit it refuses.
pub fn overloaded(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut server = serve(pair, scene, " max_in_flight=4")?;
    let mut client = scene.start(pair.consumer, "client")?;
    client.tell(&format!("open rpc=s role=client wait={}", wait(pair)))?;
    connected(&mut client, &server)?.expect("max_in_flight=4")?;
    client.ask("start method=5 count=20", "started")?;
    served(scene, &mut server, "a running call", |event| Ok(event.number::<u64>("running")? >= 1))?;
    client.ask("state", "state")?.expect("in_flight=4")?;
    let began: u64 = server.ask("served", "served")?.number("began")?;
    if began > 4 {
        return Err(format!("{began} handlers were begun where 4 calls may be in flight").into());
    }
    server.ask("gate", "opened")?;
    client.ask("collect", "called")?.expect("count=20 Ok=20")?;
    finish(scene, server, client)?;

    let mut server = serve(pair, scene, " max_bytes=32768")?;
    let mut client = connect(pair, scene, &server, "", "client")?;
    client.ask("start method=5 count=64 sizes=4000", "started")?;
    // Behind all of them: so each was kept or refused. It may be refused itself.
    client.tell("health")?;
    client.event()?;
    server.ask("gate", "opened")?;
    let called = client.ask("collect", "called")?;
    sum(called.expect("count=64 may_have_run=0")?, &["Ok", "Overloaded"], 64)?;
    let kept = of(&called, "Ok")?;
    if !(1..=8).contains(&kept) {
        return Err(format!("{kept} requests of 4000 bytes were kept in 32768").into());
    }
    all_ok(&mut client, 20, "method=1")?;
    finish(scene, server, client)
}

/// A client beyond the limit is refused; a place is free again when one goes.
pub fn busy(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut server = serve(pair, scene, " max_clients=1")?;
    let mut first = connect(pair, scene, &server, "", "client")?;
    let mut second = scene.start(pair.consumer, "second client")?;
    let open = format!("open rpc=s role=client timeout=1000 wait={}", wait(pair));
    second.ask(&open, "error")?.expect("name=Busy number=4")?;
    all_ok(&mut first, 10, "method=1")?;
    first.finish()?;
    served(scene, &mut server, "no client", |event| Ok(event.number::<u64>("clients")? == 0))?;
    second.tell(&open)?;
    connected(&mut second, &server)?;
    all_ok(&mut second, 10, "method=1")?;
    finish(scene, server, second)
}

/// Calls are cancelled at every moment of their life, again and again; each ends once, on both sides.
pub fn cancel_storm(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let (mut server, mut client) = both(pair, scene, "", "")?;
    let count = pair.messages / 10;
    let half = count / 2;
    for in_flight in [2, 64] {
        let called = client.ask(&format!("call method=1 count={count} in_flight={in_flight} cancel=yes"), "called")?;
        called.expect(&format!("count={count} Ok={half} cancelled={half} may_have_run=0"))?;
    }
    for round in 0..pair.messages / 2000 {
        // More than may be in flight in some rounds: the rest is withdrawn.
        let count = 50 + 170 * (round % 8);
        client.ask(&format!("start method=5 count={count}"), "started")?;
        client.ask("cancel", "cancelled")?.expect(&format!("count={count}"))?;
        client.ask("stream count=100000 size=100 streams=5 window=2", "started")?;
        client.ask("cancel", "cancelled")?.expect("count=5")?;
    }
    settled(scene, &mut server, &mut client)?.expect("clients=1")?;
    all_ok(&mut client, 100, "method=1 in_flight=8")?;
    finish(scene, server, client)
}

/// Calls whose time is over, or nearly: each ends once, in time, and nothing stays behind.
pub fn deadline_storm(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let (mut server, mut client) = both(pair, scene, "", "")?;
    let late = ["TimedOut", "Cancelled"];
    let called = client.ask("call method=5 count=3 deadline=50000", "called")?;
    sum(&called, &late, 3)?;
    if called.number::<u64>("elapsed_ms")? < 150 {
        return Err(format!("three calls with 50 ms each were over too early: `{}`", called.line).into());
    }
    let many = pair.messages / 50;
    let called = client.ask(&format!("call method=5 count={many} in_flight=64 deadline=1000"), "called")?;
    sum(&called, &late, many)?;
    for deadline in [1, 50, 500] {
        let called = client.ask(&format!("call method=1 count={many} in_flight=64 deadline={deadline}"), "called")?;
        sum(&called, &["Ok", "TimedOut", "Cancelled"], many)?;
    }
    settled(scene, &mut server, &mut client)?;
    client.ask("stream count=100000 size=8 streams=3 deadline=100000", "started")?;
    let streamed = client.ask("next", "streamed")?;
    // A fast pair receives all of it in time.
    sum(&streamed, &["Ok", "TimedOut", "Cancelled"], 3)?;
    settled(scene, &mut server, &mut client)?;
    all_ok(&mut client, 100, "method=1 in_flight=8 deadline=30000000")?;
    finish(scene, server, client)
}

/// A plain connector and a server, a client and a plain listener: refused, and both go on.
pub fn plain_peers(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let server = serve(pair, scene, "")?;
    let mut peer = scene.start(pair.consumer, "plain connector")?;
    peer.ask("open role=both connect=s", "error")?.expect("name=AbiMismatch number=13")?;
    let mut client = connect(pair, scene, &server, "", "client")?;
    all_ok(&mut client, 10, "method=1")?;
    finish(scene, server, client)?;

    let mut listener = scene.start(pair.producer, "plain listener")?;
    listener.tell("open role=both listen=b")?;
    let mut client = scene.start(pair.consumer, "client of a plain listener")?;
    client.ask("open rpc=b role=client", "error")?.expect("name=AbiMismatch number=13")?;
    peer.tell("open role=both connect=b")?;
    listener.expect("attached")?;
    peer.expect("attached")?;
    client.finish()?;
    peer.finish()?;
    listener.finish()
}
