use super::*;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

const STATUS_OK: Reply = Reply { status: Status::Ok, code: 0, meta: Vec::new(), body: Vec::new() };

fn ledger(max_in_flight: u32, max_bytes: usize) -> Ledger<()> {
    Ledger::new(Limits { max_in_flight, max_bytes })
}

/// Opens the next call.
fn open(ledger: &mut Ledger<()>, id: u64, window: u32, copied: usize) {
    assert_eq!(ledger.admit(id, false), Ok(Admission::Yes));
    assert!(ledger.copy(copied));
    ledger.open(id, Open::new(window, copied, None, ()));
}

fn body(len: usize) -> Reply {
    Reply::ok(Vec::new(), vec![1; len])
}

#[test]
fn ids_are_consecutive_from_1() {
    for wrong in [0, 2, u64::MAX] {
        assert_eq!(ledger(4, 0).admit(wrong, false), Err(Corrupt));
    }
    let mut ledger = ledger(4, 0);
    assert_eq!(ledger.admit(1, false), Ok(Admission::Yes));
    assert_eq!(ledger.admit(2, false), Ok(Admission::Yes));
    assert_eq!(ledger.admit(2, false), Err(Corrupt));
}

#[test]
fn a_call_beyond_the_limit_is_refused_and_counts_as_an_id_all_the_same() {
    let mut ledger = ledger(2, 0);
    assert_eq!(ledger.admit(1, false), Ok(Admission::Yes));
    assert_eq!(ledger.admit(2, false), Ok(Admission::Yes));
    assert_eq!(ledger.admit(3, false), Ok(Admission::No(Status::Overloaded)));
    ledger.published();
    assert_eq!(ledger.admit(4, false), Ok(Admission::Yes));
    assert_eq!(ledger.admit(5, false), Ok(Admission::No(Status::Overloaded)));
    assert_eq!(ledger.admit(6, true), Ok(Admission::No(Status::Draining)));
}

#[test]
fn a_place_is_free_only_when_the_final_reply_is_published() {
    let mut ledger = ledger(1, 100);
    open(&mut ledger, 1, 0, 0);
    assert!(ledger.cancel(1).unwrap().is_some());
    assert_eq!(ledger.admit(2, false), Ok(Admission::No(Status::Overloaded)), "it was cancelled, and runs still");
    assert!(ledger.end(1).is_some());
    ledger.park(1, Reply::of(Status::Cancelled));
    assert_eq!(ledger.admit(3, false), Ok(Admission::No(Status::Overloaded)), "its reply is not sent");
    assert!(!ledger.is_done());
    assert!(ledger.unpark().is_none());
    assert!(ledger.is_done());
    assert_eq!(ledger.admit(4, false), Ok(Admission::Yes));
}

#[test]
fn copies_are_bounded_and_given_back() {
    let mut ledger = ledger(10, 100);
    open(&mut ledger, 1, 0, 60);
    assert_eq!(ledger.admit(2, false), Ok(Admission::Yes));
    assert!(!ledger.copy(41));
    assert_eq!(ledger.in_flight, 1, "it is refused");
    open(&mut ledger, 3, 0, 40);
    // A reply of a byte beyond: its own request is given back first.
    ledger.end(3);
    ledger.park(3, body(41));
    assert_eq!(ledger.first_parked().unwrap().reply, Reply::of(Status::ReplyTooLarge));
    ledger.end(1);
    ledger.park(1, body(100));
    assert_eq!((ledger.longest_parked(), ledger.parked.len()), (0, 2));
    ledger.unpark();
    ledger.unpark();
    assert_eq!((ledger.longest_parked(), ledger.in_flight), (100, 0));
}

#[test]
fn parked_replies_keep_their_order() {
    let mut ledger = ledger(10, 100);
    (1..=3).for_each(|id| open(&mut ledger, id, 1, 0));
    assert!(ledger.park_element(2, body(1)));
    ledger.end(1);
    ledger.park(1, body(2));
    assert!(ledger.park_element(3, body(3)));
    assert!(ledger.must_park());
    let mut order = Vec::new();
    while let Some(parked) = ledger.first_parked() {
        order.push((parked.id, parked.element));
        ledger.unpark();
    }
    assert_eq!(order, [(2, true), (1, false), (3, true)]);
}

#[test]
fn a_stream_waits_for_credit_and_for_its_parked_element() {
    let mut ledger = ledger(10, 100);
    open(&mut ledger, 1, 2, 0);
    assert!(ledger.get(1).unwrap().may_go_on());
    ledger.get(1).unwrap().credit -= 1;
    assert!(ledger.park_element(1, body(100)));
    assert!(!ledger.get(1).unwrap().may_go_on(), "one of its elements is parked");
    assert!(!ledger.park_element(1, body(1)), "too much");
    let (id, open) = ledger.unpark().unwrap();
    assert_eq!((id, open.may_go_on()), (1, true));
    ledger.get(1).unwrap().credit -= 1;
    assert!(!ledger.get(1).unwrap().may_go_on(), "no credit");
    assert!(ledger.credit(1, u32::MAX).unwrap().unwrap().may_go_on());
    ledger.get(1).unwrap().credit = u64::MAX;
    assert_eq!(ledger.credit(1, 7).unwrap().unwrap().credit, u64::MAX, "it saturates");
}

#[test]
fn what_comes_for_a_call_that_has_ended_is_dropped_and_for_one_that_was_never_made_is_corrupt() {
    let mut ledger = ledger(10, 100);
    open(&mut ledger, 1, 1, 0);
    open(&mut ledger, 2, 0, 0);
    assert_eq!(ledger.credit(1, 0).map(drop), Err(Corrupt), "credit of 0");
    assert_eq!(ledger.credit(2, 1).map(drop), Err(Corrupt), "credit for one reply");
    for never in [0, 3, u64::MAX] {
        assert_eq!(ledger.credit(never, 1).map(drop), Err(Corrupt));
        assert_eq!(ledger.cancel(never).map(drop), Err(Corrupt));
    }
    assert!(ledger.cancel(2).unwrap().is_some());
    assert!(ledger.cancel(2).unwrap().is_none(), "once is enough");
    ledger.end(1);
    ledger.end(2);
    assert!(ledger.credit(1, 1).unwrap().is_none() && ledger.cancel(2).unwrap().is_none());
}

#[test]
fn deadlines_are_met_in_their_order_and_not_for_calls_that_have_ended() {
    let mut ledger = ledger(u32::MAX, 0);
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    for (id, seconds) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
        ledger.admit(id, false).unwrap();
        ledger.open(id, Open::new(0, 0, Some(at(seconds)), ()));
    }
    assert_eq!(ledger.next_deadline(), Some(at(10)));
    assert!(ledger.time_out(start).is_none());
    ledger.end(2);
    let mut met = |now| std::iter::from_fn(|| ledger.time_out(now).map(|(id, _)| id)).collect::<Vec<_>>();
    assert_eq!(met(at(20)), [4, 3]);
    assert_eq!(met(at(25)), []);
    assert_eq!(met(at(30)), [1]);
    assert_eq!(ledger.next_deadline(), None);
    assert_eq!(ledger.get(3).unwrap().stopped, Some(Status::Cancelled));
}

#[test]
fn ended_calls_leave_nothing_behind_however_late_their_deadlines() {
    let mut ledger = ledger(8, 0);
    let late = Instant::now() + Duration::from_secs(1 << 30);
    for id in 1..100_000u64 {
        ledger.admit(id, false).unwrap();
        ledger.open(id, Open::new(0, 0, Some(late), ()));
        ledger.end(id);
        ledger.published();
    }
    assert!(ledger.deadlines.len() < 200 && ledger.open.is_empty());
}

/// All that a client, its ring and a server's handlers can do in any order, with few calls, small windows and a ring of one place:
/// each reachable state is visited once.
///
/// The server's side is the ledger itself, driven as `connection.rs` does. What must hold: every call has one final REPLY, and none
/// after it; no more elements than credit; never more in flight than allowed, and a handler that runs has its place; and from
/// each state the end is reached by what server, handlers and a client that receives do, whatever else the client does not do.
mod all_orders {
    use super::*;

    const BYTES: usize = 2;
    /// Only the first calls are cancelled, and have credit beyond their window.
    const TOUCHED: usize = 2;
    /// Frames that each ring holds.
    const ROOM: usize = 1;

    /// What the client has said about one call, and heard.
    #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    struct Seen {
        window: u32,
        credit: u32,
        elements: u32,
        cancelled: bool,
        is_final: bool,
    }

    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    enum Up {
        Call(u32),
        Cancel(u64),
        Credit(u64),
    }

    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Down {
        id: u64,
        element: bool,
        status: u32,
    }

    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct World {
        /// How many calls the client makes, and how many may be in flight.
        limits: (usize, u32),
        ledger: Shadow,
        up: Vec<Up>,
        down: Vec<Down>,
        seen: Vec<Seen>,
        /// Handlers that run, and whether they are streams: of each at most two elements.
        runs: BTreeMap<u64, u32>,
    }

    /// The ledger's state in values.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Shadow {
        last_id: u64,
        in_flight: u32,
        bytes: usize,
        open: BTreeMap<u64, (u32, u64, bool, usize, Option<u32>)>,
        parked: Vec<(u64, bool, u32, usize)>,
        refusal: Option<(u64, u32)>,
    }

    fn restore(shadow: &Shadow, in_flight: u32) -> Ledger<()> {
        let mut ledger = ledger(in_flight, BYTES);
        let status = |code: u32| Status::from_code(code).unwrap();
        (ledger.last_id, ledger.in_flight, ledger.bytes) = (shadow.last_id, shadow.in_flight, shadow.bytes);
        for (id, &(window, credit, is_parked, copied, stopped)) in &shadow.open {
            let open =
                Open { window, credit, is_parked, copied, deadline: None, stopped: stopped.map(status), task: () };
            ledger.open.insert(*id, open);
        }
        for &(id, element, code, len) in &shadow.parked {
            let reply = Reply { body: vec![0; len], ..Reply::of(status(code)) };
            ledger.parked.push_back(Parked { id, element, reply });
        }
        ledger.refusal = shadow.refusal.map(|(id, code)| (id, status(code)));
        ledger
    }

    fn shadow(ledger: &Ledger<()>) -> Shadow {
        let open = |open: &Open<()>| {
            (open.window, open.credit, open.is_parked, open.copied, open.stopped.map(|status| status as u32))
        };
        Shadow {
            last_id: ledger.last_id,
            in_flight: ledger.in_flight,
            bytes: ledger.bytes,
            open: ledger.open.iter().map(|(id, call)| (*id, open(call))).collect(),
            parked: ledger
                .parked
                .iter()
                .map(|parked| (parked.id, parked.element, parked.reply.status as u32, parked.reply.len()))
                .collect(),
            refusal: ledger.refusal.map(|(id, status)| (id, status as u32)),
        }
    }

    /// A world with its ledger at hand.
    struct Turn {
        world: World,
        ledger: Ledger<()>,
    }

    impl Turn {
        fn of(world: &World) -> Self {
            Self { world: world.clone(), ledger: restore(&world.ledger, world.limits.1) }
        }

        fn done(mut self) -> World {
            self.world.ledger = shadow(&self.ledger);
            self.world
        }

        fn send(&mut self, id: u64, element: bool, status: Status) -> bool {
            let fits = self.world.down.len() < ROOM;
            if fits {
                self.world.down.push(Down { id, element, status: status as u32 });
            }
            fits
        }

        fn conclude(&mut self, id: u64, reply: Reply) {
            if !self.ledger.must_park() && self.send(id, false, reply.status) {
                self.ledger.published();
            } else {
                self.ledger.park(id, reply);
            }
        }

        fn send_refusal(&mut self) {
            if let Some((id, status)) = self.ledger.refusal()
                && !self.ledger.must_park()
                && self.send(id, false, status)
            {
                self.ledger.refused();
            }
        }

        fn end(&mut self, id: u64, reply: Reply) {
            let open = self.ledger.end(id).unwrap();
            let reply = open.stopped.map_or(reply, Reply::of);
            self.conclude(id, reply);
        }
    }

    /// What the server and its handlers may do next. `None`: nothing.
    fn server(world: &World) -> Vec<World> {
        let mut next = Vec::new();
        // Publishes what was parked, then the answer that is not parked.
        let mut turn = Turn::of(world);
        while let Some(parked) = turn.ledger.first_parked() {
            let (id, element, status) = (parked.id, parked.element, parked.reply.status);
            if !turn.send(id, element, status) {
                break;
            }
            turn.ledger.unpark();
        }
        turn.send_refusal();
        next.push(turn.done());
        // Takes a frame.
        if world.ledger.refusal.is_none() && !world.up.is_empty() {
            let mut turn = Turn::of(world);
            match turn.world.up.remove(0) {
                Up::Call(window) => {
                    let id = turn.ledger.last_id + 1;
                    match turn.ledger.admit(id, false).unwrap() {
                        Admission::Yes if turn.ledger.copy(1) => {
                            turn.ledger.open(id, Open::new(window, 1, None, ()));
                            turn.world.runs.insert(id, 0);
                        }
                        Admission::Yes => turn.ledger.refuse(id, Status::Overloaded),
                        Admission::No(status) => turn.ledger.refuse(id, status),
                    }
                    turn.send_refusal();
                }
                Up::Cancel(id) => drop(turn.ledger.cancel(id).unwrap().is_some()),
                Up::Credit(id) => drop(turn.ledger.credit(id, 1).unwrap().is_some()),
            }
            next.push(turn.done());
        }
        // A handler ends, or has an element.
        for (&id, &elements) in &world.runs {
            let mut turn = Turn::of(world);
            turn.world.runs.remove(&id);
            turn.end(id, if world.ledger.open[&id].0 > 0 { STATUS_OK } else { body(1) });
            next.push(turn.done());
            let mut turn = Turn::of(world);
            if elements < 2 && turn.ledger.get(id).is_some_and(|open| open.window > 0 && open.may_go_on()) {
                *turn.world.runs.get_mut(&id).unwrap() += 1;
                turn.ledger.get(id).unwrap().credit -= 1;
                let is_sent = !turn.ledger.must_park() && turn.send(id, true, Status::Ok);
                if !is_sent && !turn.ledger.park_element(id, body(1)) {
                    turn.ledger.stop(id, Status::ReplyTooLarge);
                }
                next.push(turn.done());
            }
        }
        next.retain(|other| other != world);
        next
    }

    /// The client receives.
    fn receives(world: &World) -> Option<World> {
        let mut world = world.clone();
        if world.down.is_empty() {
            return None;
        }
        let Down { id, element, .. } = world.down.remove(0);
        let seen = &mut world.seen[id as usize - 1];
        assert!(!seen.is_final, "a REPLY to a call that has its final one");
        if element {
            seen.elements += 1;
            assert!(seen.elements <= seen.window + seen.credit, "an element beyond credit");
        } else {
            seen.is_final = true;
        }
        Some(world)
    }

    /// What the client may send. A client that does not keep to the limit: it has all calls in flight at once.
    fn sends(world: &World) -> Vec<World> {
        let mut next = Vec::new();
        if world.up.len() == ROOM {
            return next;
        }
        let mut say = |up: Up, change: &dyn Fn(&mut World)| {
            let mut world = world.clone();
            world.up.push(up);
            change(&mut world);
            next.push(world);
        };
        if world.seen.len() < world.limits.0 {
            for window in [0, 1] {
                let seen = Seen { window, credit: 0, elements: 0, cancelled: false, is_final: false };
                say(Up::Call(window), &|world| world.seen.push(seen.clone()));
            }
        }
        for (index, seen) in world.seen.iter().enumerate().take(TOUCHED) {
            let id = index as u64 + 1;
            if !seen.cancelled {
                say(Up::Cancel(id), &|world| world.seen[index].cancelled = true);
            }
            if seen.window > 0 && seen.credit == 0 {
                say(Up::Credit(id), &|world| world.seen[index].credit = 1);
            }
        }
        next
    }

    fn check(world: &World) {
        let Shadow { in_flight, bytes, open, parked, .. } = &world.ledger;
        let most = world.limits.1;
        assert!(*in_flight <= most && *bytes <= BYTES, "{world:?}");
        assert!(world.runs.len() <= most as usize, "more handlers run than calls may be in flight: {world:?}");
        assert!(world.runs.keys().all(|id| open.contains_key(id)));
        let finals = parked.iter().filter(|(_, element, ..)| !element).count();
        assert_eq!(*in_flight as usize, open.len() + finals, "{world:?}");
        for id in open.keys() {
            let of = parked.iter().filter(|(other, ..)| other == id).count();
            assert!(of <= 1, "more than one element is parked: {world:?}");
        }
    }

    /// Nothing is owed to the client.
    fn is_quiet(world: &World) -> bool {
        world.up.is_empty() && world.down.is_empty() && world.seen.iter().all(|seen| seen.is_final)
    }

    #[test]
    fn every_order_keeps_the_rules_and_can_go_on_to_the_end() {
        for limits in [(2, 2), (3, 1)] {
            explore(limits);
        }
    }

    fn explore(limits: (usize, u32)) {
        let start = World {
            limits,
            ledger: shadow(&ledger(limits.1, BYTES)),
            up: Vec::new(),
            down: Vec::new(),
            seen: Vec::new(),
            runs: BTreeMap::new(),
        };
        let mut known = HashSet::from([start.clone()]);
        let mut todo = vec![start];
        while let Some(world) = todo.pop() {
            check(&world);
            let by_server = server(&world);
            let received = receives(&world);
            // No deadlock: as long as something is owed, the server, a handler, or a client that only receives can go on. Each of
            // these steps leaves less to do, so the end is reached.
            assert!(is_quiet(&world) || !by_server.is_empty() || received.is_some(), "stuck: {world:?}");
            for next in by_server.into_iter().chain(received).chain(sends(&world)) {
                if known.insert(next.clone()) {
                    todo.push(next);
                }
            }
        }
        assert!(known.len() > 1000, "{} states", known.len());
    }
}
