//! RPC: one language serves, another one calls.

mod calls;
mod ends;
mod limits;

use std::time::{Duration, Instant};

use ramway_agents::{Event, Result};

use super::pair::{Over, Pair};
use super::stream::empty;
use super::{Load, Scenario, scenario};
use crate::run::{Program, Scene};

const RPC: &[Over] = &[Over::Rpc];
/// Of scenarios that are about the client: either one, where a language has two.
const EITHER: &[Over] = &[Over::Rpc, Over::RpcAsync];

/// Everything that a server and a client play.
pub const SCENARIOS: &[Scenario] = &[
    scenario("calls", EITHER, Load::Busy, calls::calls),
    scenario("errors", EITHER, Load::Idle, calls::errors),
    scenario("streams", EITHER, Load::Busy, calls::streams),
    scenario("many-clients", RPC, Load::Busy, calls::many_clients),
    scenario("both-ways-full", EITHER, Load::Busy, calls::both_ways_full),
    scenario("slow-reader", EITHER, Load::Idle, limits::slow_reader),
    scenario("in-flight", EITHER, Load::Busy, limits::in_flight),
    scenario("overloaded", EITHER, Load::Idle, limits::overloaded),
    scenario("busy", RPC, Load::Idle, limits::busy),
    scenario("cancel-storm", EITHER, Load::Busy, limits::cancel_storm),
    scenario("deadline-storm", EITHER, Load::Busy, limits::deadline_storm),
    scenario("plain-peers", RPC, Load::Idle, limits::plain_peers),
    scenario("drain", EITHER, Load::Idle, ends::drain),
    scenario("drain-limit", EITHER, Load::Idle, ends::drain_limit),
    scenario("server-dies", EITHER, Load::Idle, ends::server_dies),
    scenario("server-dies-at-random", EITHER, Load::Busy, ends::server_dies_at_random),
    scenario("server-restarts", EITHER, Load::Busy, ends::server_restarts),
    scenario("client-dies", RPC, Load::Idle, ends::client_dies),
    scenario("client-stopped", EITHER, Load::Idle, ends::client_stopped),
    scenario("server-stopped", EITHER, Load::Idle, ends::server_stopped),
];

/// Between two looks at what a program has come to.
const PAUSE: Duration = Duration::from_millis(2);

fn wait(pair: &Pair<'_>) -> &'static str {
    pair.pick(&["hybrid", "block"])
}

/// Where the server of a scene listens.
fn place(scene: &Scene) -> String {
    scene.path("s")
}

/// What opens a server.
fn listening(pair: &Pair<'_>, scene: &Scene, keys: &str) -> String {
    format!("open rpc={} role=server wait={}{keys}", place(scene), wait(pair))
}

/// What opens a client.
fn opening(pair: &Pair<'_>, scene: &Scene, keys: &str) -> String {
    format!("open rpc={} role=client wait={}{}{keys}", place(scene), wait(pair), kind(pair))
}

/// The key that says which of a language's clients it is.
fn kind(pair: &Pair<'_>) -> &'static str {
    if pair.over == Over::RpcAsync { " kind=async" } else { "" }
}

/// A server that listens, with these keys of `open` beside.
fn serve(pair: &Pair<'_>, scene: &Scene, keys: &str) -> Result<Program> {
    let mut server = scene.take(pair.producer, "server")?;
    server.tell(&listening(pair, scene, keys))?;
    serving(&mut server)?;
    Ok(server)
}

fn serving(server: &mut Program) -> Result<()> {
    let pid = server.pid();
    server.expect("attached")?.expect(&format!("pid={pid}"))?;
    Ok(())
}

/// A client that is connected.
fn connect(pair: &Pair<'_>, scene: &Scene, server: &Program, keys: &str, label: &str) -> Result<Program> {
    let mut client = scene.take(pair.consumer, label)?;
    client.tell(&opening(pair, scene, keys))?;
    connected(&mut client, server)?;
    Ok(client)
}

fn connected(client: &mut Program, server: &Program) -> Result<Event> {
    let event = client.expect("attached")?;
    event.expect(&format!("pid={} peer_pid={}", client.pid(), server.pid()))?;
    Ok(event)
}

/// Both, either one first.
fn both(pair: &Pair<'_>, scene: &Scene, server_keys: &str, client_keys: &str) -> Result<(Program, Program)> {
    if pair.variant.is_multiple_of(2) {
        let server = serve(pair, scene, server_keys)?;
        let client = connect(pair, scene, &server, client_keys, "client")?;
        return Ok((server, client));
    }
    let mut client = scene.take(pair.consumer, "client")?;
    client.tell(&opening(pair, scene, client_keys))?;
    let server = serve(pair, scene, server_keys)?;
    connected(&mut client, &server)?;
    Ok((server, client))
}

/// The client closes, then the server, and nothing is left behind.
fn finish(scene: &Scene, server: Program, client: Program) -> Result<()> {
    client.give_back()?;
    server.give_back()?;
    empty(scene)
}

/// Makes calls of which each must succeed.
fn all_ok(client: &mut Program, count: u64, keys: &str) -> Result<Event> {
    let event = client.ask(&format!("call count={count} {keys}"), "called")?;
    event.expect(&format!("count={count} Ok={count} may_have_run=0"))?;
    Ok(event)
}

/// How many calls of an event had an outcome.
fn of(event: &Event, name: &str) -> Result<u64> {
    if event.get(name).is_none() { Ok(0) } else { event.number(name) }
}

/// Compares the sum of these outcomes with how many calls there were.
fn sum(event: &Event, names: &[&str], calls: u64) -> Result<u64> {
    let sum = names.iter().map(|name| of(event, name)).sum::<Result<u64>>()?;
    if sum == calls { Ok(sum) } else { Err(format!("`{}`: {names:?} are {sum} of {calls} calls", event.line).into()) }
}

/// Asks the server for its numbers until they are as they must be.
fn served(scene: &Scene, server: &mut Program, what: &str, right: impl Fn(&Event) -> Result<bool>) -> Result<Event> {
    let until = Instant::now() + scene.left().min(Duration::from_secs(30));
    loop {
        let event = server.ask("served", "served")?;
        if right(&event)? {
            return Ok(event);
        }
        if Instant::now() >= until {
            return Err(format!("the server does not come to {what}: `{}`", event.line).into());
        }
        std::thread::sleep(PAUSE);
    }
}

/// Waits until so many handlers run.
fn running(scene: &Scene, server: &mut Program, count: u64) -> Result<Event> {
    served(scene, server, &format!("{count} running calls"), |event| Ok(event.number::<u64>("running")? == count))
}

/// Waits until no call of the client is in flight, and no handler runs: what was cancelled has ended everywhere.
fn settled(scene: &Scene, server: &mut Program, client: &mut Program) -> Result<Event> {
    let until = Instant::now() + scene.left().min(Duration::from_secs(30));
    loop {
        client.ask("health", "healthy")?;
        let state = client.ask("state", "state")?;
        if state.number::<u64>("in_flight")? == 0 {
            break;
        }
        if Instant::now() >= until {
            return Err(format!("calls stay in flight: `{}`", state.line).into());
        }
        std::thread::sleep(PAUSE);
    }
    running(scene, server, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_added() {
        let event = Event::parse("called count=9 Ok=4 TimedOut=5 may_have_run=5");
        assert_eq!(sum(&event, &["Ok", "TimedOut", "Cancelled"], 9).expect("all"), 9);
        assert!(sum(&event, &["Ok"], 9).is_err());
        assert_eq!(of(&event, "Cancelled").expect("none"), 0);
    }
}
