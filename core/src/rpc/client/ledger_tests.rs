use super::*;
use std::time::Duration;

const OK: ReplyHeader = ReplyHeader { status: Status::Ok, element: false, code: 0 };
const ELEMENT: ReplyHeader = ReplyHeader { status: Status::Ok, element: true, code: 0 };

fn ledger(max_in_flight: u32) -> Ledger {
    Ledger::new(max_in_flight, 1000)
}

/// A call that is sent if it can be, as the pump does it.
fn start(ledger: &mut Ledger, window: u32) -> Number {
    if ledger.sends_at_once() { ledger.sent(window) } else { ledger.queue(window, queued()) }
}

fn queued() -> Queued {
    Queued { method: 1, meta_len: 0, rest: vec![7; 5] }
}

/// A REPLY with this many bytes after its header.
fn reply(ledger: &mut Ledger, id: u64, header: ReplyHeader, body: usize) -> Result<(), Wrong> {
    ledger.reply(id, header, body != 0, 16 + body, || Reply::new(&vec![0; body], 0))
}

/// Writes all that is due, as long as it is due; gives it.
fn write(ledger: &mut Ledger) -> Vec<String> {
    let mut written = Vec::new();
    loop {
        match ledger.due() {
            Due::Nothing => return written,
            Due::Cancel { id } => {
                written.push(format!("cancel {id}"));
                ledger.owed_was_sent();
            }
            Due::Credit { id, elements } => {
                written.push(format!("credit {id} {elements}"));
                ledger.owed_was_sent();
            }
            Due::Call { len, .. } => {
                written.push(format!("call {} {len}", ledger.next_id()));
                ledger.queued_was_sent();
            }
        }
    }
}

fn end(taken: Taken) -> CallResult<Reply> {
    match taken {
        Taken::End(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

fn kind(taken: Taken) -> (Option<ErrorKind>, bool) {
    let error = end(taken).unwrap_err();
    (error.kind(), error.may_have_run())
}

#[test]
fn a_call_whose_time_is_over_has_timed_out_whoever_says_so_first() {
    for (passed, timed_out) in [(1, false), (2, true)] {
        let mut ledger = Ledger::new(8, 1000);
        let begin = Instant::now();
        let number = ledger.sent(0);
        ledger.set_deadline(number, begin + Duration::from_secs(2));
        ledger.was_cancelled(1, begin + Duration::from_secs(passed));
        let cancelled = ReplyHeader { status: Status::Cancelled, element: false, code: 0 };
        ledger.reply(1, cancelled, false, 16, Reply::default).unwrap();
        let Taken::End(Err(error)) = ledger.take(number) else { panic!("it has ended") };
        assert_eq!((error.is_timed_out(), error.may_have_run()), (timed_out, true));
        assert_eq!((ledger.in_flight(), ledger.owes() && ledger.due() != Due::Nothing), (0, false));
    }
}

#[test]
fn calls_beyond_the_limit_get_their_ids_when_they_are_sent() {
    let mut ledger = ledger(2);
    let calls: Vec<_> = (0..5).map(|_| start(&mut ledger, 0)).collect();
    assert_eq!((ledger.in_flight(), ledger.due()), (2, Due::Nothing));
    // One that is withdrawn takes no id.
    ledger.let_go(calls[2]);
    reply(&mut ledger, 2, OK, 0).unwrap();
    assert_eq!(write(&mut ledger), ["call 3 5"]);
    reply(&mut ledger, 1, OK, 0).unwrap();
    reply(&mut ledger, 3, OK, 0).unwrap();
    assert_eq!(write(&mut ledger), ["call 4 5"]);
    for (i, call) in calls.into_iter().enumerate() {
        match i {
            0 | 1 | 3 => drop(end(ledger.take(call)).unwrap()),
            2 => assert_eq!(kind(ledger.take(call)), (Some(ErrorKind::InvalidArgument), false)),
            _ => assert!(matches!(ledger.take(call), Taken::NotYet)),
        }
    }
    assert_eq!(ledger.in_flight(), 1);
}

#[test]
fn a_cancelled_call_keeps_its_place_until_its_final_reply() {
    let mut ledger = ledger(1);
    let call = start(&mut ledger, 0);
    ledger.let_go(call);
    let next = start(&mut ledger, 0);
    assert_eq!(write(&mut ledger), ["cancel 1"]);
    assert_eq!((ledger.in_flight(), write(&mut ledger).len()), (1, 0));
    reply(&mut ledger, 1, ReplyHeader { status: Status::Cancelled, ..OK }, 0).unwrap();
    assert_eq!(write(&mut ledger), ["call 2 5"]);
    assert!(!ledger.is_ready(next));
    assert_eq!(reply(&mut ledger, 1, OK, 0), Err(Wrong("a reply to a call that has ended")));
    assert_eq!(reply(&mut ledger, 3, OK, 0), Err(Wrong("a reply to a call that was not made")));
    assert_eq!(reply(&mut ledger, 0, OK, 0), Err(Wrong("a reply to a call that was not made")));
}

#[test]
fn what_is_owed_goes_before_any_call_and_is_one_bit_and_one_sum() {
    let mut ledger = ledger(3);
    let (one, two) = (start(&mut ledger, 2), start(&mut ledger, 4));
    for _ in 0..2 {
        reply(&mut ledger, 1, ELEMENT, 1).unwrap();
        assert!(matches!(ledger.take(one), Taken::Element(_)));
    }
    reply(&mut ledger, 2, ELEMENT, 1).unwrap();
    assert!(matches!(ledger.take(two), Taken::Element(_)));
    // Not at once: the credit goes first.
    assert!(!ledger.sends_at_once());
    start(&mut ledger, 0);
    assert_eq!(write(&mut ledger), ["credit 1 2", "call 3 5"]);
    reply(&mut ledger, 1, ELEMENT, 1).unwrap();
    assert!(matches!(ledger.take(one), Taken::Element(_)));
    // Once its CANCEL is owed it owes no credit.
    ledger.let_go(one);
    assert_eq!(write(&mut ledger), ["cancel 1"]);
    // What is owed by a call whose final REPLY comes first is not sent.
    reply(&mut ledger, 2, ELEMENT, 1).unwrap();
    assert!(matches!(ledger.take(two), Taken::Element(_)));
    reply(&mut ledger, 2, OK, 0).unwrap();
    assert!(write(&mut ledger).is_empty());
    assert!(end(ledger.take(two)).unwrap().body().is_empty());
}

#[test]
fn an_element_beyond_the_credit_is_wrong_also_for_a_cancelled_call() {
    let mut ledger = ledger(2);
    let call = start(&mut ledger, 2);
    reply(&mut ledger, 1, ELEMENT, 1).unwrap();
    ledger.let_go(call);
    reply(&mut ledger, 1, ELEMENT, 1).unwrap();
    assert!(reply(&mut ledger, 1, ELEMENT, 1).is_err());
    let _one_reply = start(&mut ledger, 0);
    assert!(reply(&mut ledger, 2, ELEMENT, 1).is_err());
    let mut ledger = self::ledger(1);
    start(&mut ledger, 1);
    assert_eq!(reply(&mut ledger, 1, OK, 1), Err(Wrong("the end of a stream with a body")));
}

#[test]
fn credit_that_was_not_published_does_not_count() {
    let mut ledger = ledger(1);
    let call = start(&mut ledger, 1);
    reply(&mut ledger, 1, ELEMENT, 1).unwrap();
    assert!(matches!(ledger.take(call), Taken::Element(_)));
    assert!(reply(&mut ledger, 1, ELEMENT, 1).is_err());
    assert_eq!(write(&mut ledger), ["credit 1 1"]);
    reply(&mut ledger, 1, ELEMENT, 1).unwrap();
}

#[test]
fn replies_that_nobody_takes_are_bounded() {
    let mut ledger = ledger(10);
    let calls: Vec<_> = (0..3).map(|_| start(&mut ledger, 100)).collect();
    for id in [1, 1, 2, 2] {
        reply(&mut ledger, id, ELEMENT, 184).unwrap();
    }
    // The fifth of 200 bytes fits, the sixth does not: its call fails, and no other one.
    reply(&mut ledger, 3, ELEMENT, 184).unwrap();
    reply(&mut ledger, 2, ELEMENT, 0).unwrap();
    assert_eq!(write(&mut ledger), ["cancel 2"]);
    assert!(matches!(ledger.take(calls[1]), Taken::Element(_)));
    assert!(matches!(ledger.take(calls[1]), Taken::Element(_)));
    assert_eq!(kind(ledger.take(calls[1])), (Some(ErrorKind::TooLarge), true));
    // What was taken or let go of is room again. Elements without a byte count, too.
    ledger.let_go(calls[0]);
    for _ in 0..50 {
        reply(&mut ledger, 3, ELEMENT, 0).unwrap();
    }
    reply(&mut ledger, 3, ELEMENT, 0).unwrap();
    assert_eq!(write(&mut ledger), ["cancel 1", "cancel 3"]);
    for id in 1..=3 {
        reply(&mut ledger, id, ReplyHeader { status: Status::Cancelled, ..OK }, 0).unwrap();
    }
    ledger.let_go(calls[2]);
    assert_eq!((ledger.buffered, ledger.in_flight(), ledger.free.len()), (0, 0, 3));
}

#[test]
fn a_final_reply_beyond_the_limit_ends_its_call() {
    let mut ledger = Ledger::new(2, 20);
    let call = start(&mut ledger, 0);
    reply(&mut ledger, 1, OK, 5).unwrap();
    assert_eq!(kind(ledger.take(call)), (Some(ErrorKind::TooLarge), true));
    assert!(write(&mut ledger).is_empty());
    assert_eq!((ledger.buffered, ledger.free.len()), (0, 1));
}

#[test]
fn time_outs_come_in_their_order_and_may_have_run_if_they_were_sent() {
    let (mut ledger, now) = (ledger(1), Instant::now());
    let calls: Vec<_> = [3, 1, 2]
        .into_iter()
        .map(|seconds| {
            let call = start(&mut ledger, 0);
            ledger.set_deadline(call, now + Duration::from_secs(seconds));
            call
        })
        .collect();
    assert_eq!(ledger.next_deadline(), Some(now + Duration::from_secs(1)));
    ledger.expire(now + Duration::from_secs(2));
    assert_eq!(kind(ledger.take(calls[1])), (Some(ErrorKind::TimedOut), false));
    assert_eq!(kind(ledger.take(calls[2])), (Some(ErrorKind::TimedOut), false));
    assert!(matches!(ledger.take(calls[0]), Taken::NotYet));
    ledger.expire(now + Duration::from_secs(3));
    assert_eq!(kind(ledger.take(calls[0])), (Some(ErrorKind::TimedOut), true));
    assert_eq!(write(&mut ledger), ["cancel 1"]);
    assert!(!ledger.has_deadlines());
    assert_eq!((ledger.next_deadline(), ledger.in_flight()), (None, 1));
}

#[test]
fn a_storm_of_deadlines_keeps_the_heap_small() {
    const COUNT: u64 = 100_000;
    let (mut ledger, now) = (Ledger::new(4, 1000), Instant::now());
    let late = now + Duration::from_secs(3600);
    // All end long before their time.
    for id in 1..=COUNT {
        let call = start(&mut ledger, 0);
        ledger.set_deadline(call, late);
        reply(&mut ledger, id, OK, 0).unwrap();
        end(ledger.take(call)).unwrap();
        assert!(ledger.deadlines.kept() <= 2 * 64, "{}", ledger.deadlines.kept());
    }
    // All at once.
    let calls: Vec<_> = (0..COUNT)
        .map(|i| {
            let call = start(&mut ledger, 0);
            ledger.set_deadline(call, now + Duration::from_nanos(i * 7919 % COUNT));
            call
        })
        .collect();
    ledger.expire(late);
    let sent = calls.into_iter().filter(|call| kind(ledger.take(*call)).1).count();
    assert_eq!(sent, 4);
    assert_eq!(write(&mut ledger).len(), 4);
    assert!(ledger.queue.len() <= 128, "{}", ledger.queue.len());
}

#[test]
fn the_end_of_the_connection_is_the_outcome_of_what_has_none() {
    for (end_kind, may_have_run) in
        [(ErrorKind::Closed, false), (ErrorKind::PeerDead, true), (ErrorKind::Corrupt, true)]
    {
        let mut ledger = ledger(3);
        let calls: Vec<_> = (0..5).map(|_| start(&mut ledger, 0)).collect();
        reply(&mut ledger, 1, OK, 3).unwrap();
        ledger.let_go(calls[1]);
        ledger.end(end_kind, "so it ended".into());
        assert_eq!(end(ledger.take(calls[0])).unwrap().body().len(), 3);
        assert_eq!(kind(ledger.take(calls[2])), (Some(end_kind), may_have_run));
        assert_eq!(kind(ledger.take(calls[3])), (Some(end_kind), false));
        assert_eq!(ledger.check().unwrap_err().to_string(), "so it ended");
        assert_eq!((ledger.due(), ledger.in_flight()), (Due::Nothing, 0));
    }
    let mut ledger = ledger(1);
    let calls = [start(&mut ledger, 0), start(&mut ledger, 0)];
    ledger.close();
    assert_eq!(
        calls.map(|call| kind(ledger.take(call))),
        [(Some(ErrorKind::Closed), true), (Some(ErrorKind::Closed), false)]
    );
}

#[test]
fn changes_are_listed_once() {
    let mut ledger = ledger(4);
    ledger.list_changed();
    let (stream, other) = (start(&mut ledger, 4), start(&mut ledger, 0));
    for _ in 0..3 {
        reply(&mut ledger, 1, ELEMENT, 1).unwrap();
    }
    ledger.let_go(other);
    assert_eq!((ledger.next_changed(), ledger.next_changed()), (Some(stream), None));
    reply(&mut ledger, 1, OK, 0).unwrap();
    assert_eq!((ledger.next_changed(), ledger.next_changed()), (Some(stream), None));
}

#[test]
fn a_number_means_one_call_only() {
    let mut ledger = ledger(1);
    let mut seen = std::collections::HashSet::new();
    for id in 1..1000 {
        let call = start(&mut ledger, 0);
        assert!(call != 0 && seen.insert(call));
        reply(&mut ledger, id, OK, 0).unwrap();
        end(ledger.take(call)).unwrap();
        assert_eq!(kind(ledger.take(call)).0, Some(ErrorKind::InvalidArgument));
    }
    assert_eq!(ledger.calls.len(), 1);
}
