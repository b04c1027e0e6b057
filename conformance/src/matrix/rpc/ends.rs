//! How a connection ends: drained, killed on either side, stopped.

use std::thread::sleep;
use std::time::Duration;

use ramway_agents::Result;

use super::super::crash::in_time;
use super::super::pair::Pair;
use super::{
    all_ok, both, connect, connected, finish, listening, of, opening, running, serve, served, serving, settled, sum,
};
use crate::run::{Program, Scene};

/// A server that shuts down refuses new calls, ends those that run, and closes.
pub fn drain(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let (mut server, mut client) = both(pair, scene, "", "")?;
    client.ask("start method=5 count=3 sizes=100", "started")?;
    client.ask("health", "healthy")?;
    server.ask("shutdown limit=60000", "draining")?;
    // It says so before it has begun.
    let refused = loop {
        let called = client.ask("call method=1", "called")?;
        if of(&called, "Ok")? == 0 {
            break called;
        }
    };
    refused.expect("count=1 Draining=1 may_have_run=0")?;
    client.ask("health", "healthy")?;
    client.ask("describe", "described")?;
    server.ask("gate", "opened")?;
    client.ask("collect", "called")?.expect("count=3 Ok=3 may_have_run=0")?;
    server.ask("join", "ended")?;
    client.ask("call method=1", "called")?.expect("count=1 Closed=1 may_have_run=0")?;
    finish(scene, server, client)
}

/// At the end of its limit a server cancels what runs, and closes.
pub fn drain_limit(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let (mut server, mut client) = both(pair, scene, "", "")?;
    client.ask("start method=5 count=3", "started")?;
    client.ask("stream count=1000 size=100 window=4", "started")?;
    client.ask("health", "healthy")?;
    client.tell("collect")?;
    server.ask("shutdown limit=200", "draining")?;
    // A handler that a busy machine keeps from ending in time is abandoned: that is `PeerDead`.
    let called = client.expect("called")?;
    sum(called.expect("count=3 may_have_run=3")?, &["Cancelled", "PeerDead"], 3)?;
    server.ask("join", "ended")?;
    let streamed = client.ask("next", "streamed")?;
    sum(streamed.expect("received=4 may_have_run=1")?, &["Cancelled", "PeerDead"], 1)?;
    let called = client.ask("call method=1", "called")?;
    sum(&called, &["Closed", "PeerDead"], 1)?;
    finish(scene, server, client)
}

/// A server is killed with calls in flight: the client learns it in time, and that they may have run. A new server of the name
/// serves it.
pub fn server_dies(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let (server, mut client) = both(pair, scene, "", "")?;
    client.ask("start method=5 count=5", "started")?;
    client.ask("health", "healthy")?;
    client.tell("collect")?;
    sleep(Duration::from_millis(pair.random.u64(0..60)));
    let (_, death) = server.kill()?;
    let called = client.expect("called")?;
    in_time(death, called.expect("count=5 PeerDead=5 may_have_run=5")?)?;
    client.ask("call method=1 count=3", "called")?.expect("count=3 PeerDead=3")?;
    client.ask("close", "closed")?;
    let server = serve(pair, scene, "")?;
    client.tell(&opening(pair, scene, ""))?;
    connected(&mut client, &server)?;
    all_ok(&mut client, 10, "method=1")?;
    finish(scene, server, client)
}

/// A server is killed at a random moment of many calls, again and again: each call has one outcome, and no more may have run
/// without a reply than were in flight.
pub fn server_dies_at_random(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let (mut server, mut client) = both(pair, scene, "", "")?;
    let count = pair.messages / 5;
    for _ in 0..3 {
        client.tell(&format!("call method=1 count={count} in_flight=16"))?;
        let began = pair.random.u64(1..count / 2);
        served(scene, &mut server, "calls", |event| Ok(event.number::<u64>("began")? >= began))?;
        server.kill()?;
        let called = client.expect("called")?;
        sum(called.expect(&format!("count={count}"))?, &["Ok", "PeerDead"], count)?;
        if called.number::<u64>("may_have_run")? > 16 {
            return Err(format!("more may have run than were in flight: `{}`", called.line).into());
        }
        client.ask("close", "closed")?;
        server = serve(pair, scene, "")?;
        client.tell(&opening(pair, scene, ""))?;
        connected(&mut client, &server)?;
        // What may have run was not repeated.
        settled(scene, &mut server, &mut client)?.expect("began=0 clients=1")?;
    }
    all_ok(&mut client, 10, "method=1")?;
    finish(scene, server, client)
}

/// A server is restarted under load, in good order: what it took it answers, what it refused or left was not run, and nothing is run
/// twice, by the old server or by the next one of the name. The clients connect again when they are told to.
pub fn server_restarts(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut server = serve(pair, scene, "")?;
    let mut clients = Vec::new();
    for label in ["client 1", "client 2"] {
        clients.push(connect(pair, scene, &server, "", label)?);
    }
    let count = pair.messages / 10;
    for _ in 0..2 {
        clients.iter_mut().try_for_each(|client| client.tell(&format!("call method=1 count={count} in_flight=16")))?;
        let began = pair.random.u64(1..count);
        served(scene, &mut server, "calls", |event| Ok(event.number::<u64>("began")? >= began))?;
        server.ask("shutdown limit=60000", "draining")?;
        let mut answered = 0;
        for client in &mut clients {
            let called = client.expect("called")?;
            sum(called.expect("may_have_run=0")?, &["Ok", "Draining", "Closed"], count)?;
            answered += of(&called, "Ok")?;
        }
        server.ask("join", "ended")?;
        server.ask("served", "served")?.expect(&format!("began={answered} running=0 cancelled=0"))?;
        server.ask("close", "closed")?;
        server.tell(&listening(pair, scene, ""))?;
        serving(&mut server)?;
        for client in &mut clients {
            client.ask("health", "end")?.expect("name=Closed")?;
            client.ask("close", "closed")?;
            client.tell(&opening(pair, scene, ""))?;
            connected(client, &server)?;
            all_ok(client, 10, "method=1")?;
        }
        running(scene, &mut server, 0)?.expect("began=20 clients=2")?;
    }
    let last = clients.pop().ok_or("two")?;
    clients.into_iter().try_for_each(Program::give_back)?;
    finish(scene, server, last)
}

/// A client is killed with calls and a stream under way: they are cancelled, and no other client is disturbed.
pub fn client_dies(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut server = serve(pair, scene, "")?;
    let mut client = connect(pair, scene, &server, "", "client")?;
    client.ask("start method=5 count=1", "started")?;
    client.ask("health", "healthy")?;
    running(scene, &mut server, 1)?;
    let mut victim = connect(pair, scene, &server, "", "client that is killed")?;
    victim.ask("start method=5 count=20 sizes=1000", "started")?;
    victim.ask("stream count=1000 size=100 streams=2 window=2", "started")?;
    victim.ask("health", "healthy")?;
    victim.kill()?;
    served(scene, &mut server, "one client and its call", |event| {
        Ok(event.number::<u64>("clients")? == 1 && event.number::<u64>("running")? == 1)
    })?;
    all_ok(&mut client, 100, "method=1 in_flight=8")?;
    let mut next = connect(pair, scene, &server, "", "next client")?;
    all_ok(&mut next, 100, "method=1 in_flight=8")?;
    next.give_back()?;
    server.ask("gate", "opened")?;
    client.ask("collect", "called")?.expect("count=1 Ok=1")?;
    settled(scene, &mut server, &mut client)?;
    finish(scene, server, client)
}

/// A client is stopped (SIGSTOP) with streams and replies under way: it stops nobody else, and goes on where it was.
pub fn client_stopped(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut server = serve(pair, scene, "")?;
    let mut stopped = connect(pair, scene, &server, "", "client that is stopped")?;
    let mut client = connect(pair, scene, &server, "", "client")?;
    stopped.ask("stream count=1000 size=1000 streams=4 window=16", "started")?;
    stopped.tell("next")?;
    stopped.stop()?;
    all_ok(&mut client, 200, "method=1 in_flight=16")?;
    client.ask("stream count=500 size=1000", "started")?;
    client.ask("next", "streamed")?.expect("received=500 Ok=1")?;
    stopped.go_on()?;
    stopped.expect("streamed")?.expect("received=4000 Ok=4 may_have_run=0")?;
    settled(scene, &mut server, &mut stopped)?;
    stopped.give_back()?;
    finish(scene, server, client)
}

/// A server is stopped (SIGSTOP): it is alive, so a call ends by its own time alone, and may have run. Then the server goes on,
/// and nothing of those calls is left.
pub fn server_stopped(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let (mut server, mut client) = both(pair, scene, "", "")?;
    all_ok(&mut client, 10, "method=1")?;
    server.stop()?;
    let called = client.ask("call method=1 count=3 deadline=50000 in_flight=3", "called")?;
    called.expect("count=3 TimedOut=3 may_have_run=3")?;
    client.ask("start method=1 count=200", "started")?;
    client.tell("collect")?;
    server.go_on()?;
    client.expect("called")?.expect("count=200 Ok=200 may_have_run=0")?;
    settled(scene, &mut server, &mut client)?.expect("clients=1")?;
    finish(scene, server, client)
}
