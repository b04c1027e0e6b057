//! What a server with the agents' methods must answer to a client.

use super::super::image::payload;
use super::super::model::Class;
use super::{
    CALL, CANCEL, CAPACITY, CREDIT, DESCRIBE, End, Exchange, Expected, Frame, PING, REPLY, SUM, Step, call,
    call_payload, cancel, credit, element, expected, frame, framed, metadata, method_id, plain, receive, reply,
    reply_payload, send, stream_element, stream_request, words,
};

// The statuses of section 20.
const APPLICATION: u32 = 1;
const NO_SUCH_METHOD: u32 = 2;
const TIMED_OUT: u32 = 3;
const CANCELLED: u32 = 4;
const OVERLOADED: u32 = 5;
const REPLY_TOO_LARGE: u32 = 6;
const HANDLER_FAILED: u32 = 8;

/// The method whose handler waits.
const HOLD: u32 = 5;

/// What the limit is where it is not the point.
const IN_FLIGHT: u32 = 16;

pub fn all() -> Vec<Exchange> {
    let mut list = Vec::new();
    replies(&mut list);
    sizes(&mut list);
    streams(&mut list);
    cancelled(&mut list);
    limits(&mut list);
    ends(&mut list);
    hostile_calls(&mut list);
    hostile_others(&mut list);
    list
}

fn exchange(class: Class, name: &str, about: &str, steps: Vec<Step>, end: End) -> Exchange {
    let (name, about) = (format!("server-{name}"), about.into());
    Exchange { name, about, class, max_in_flight: IN_FLIGHT, max_bytes: None, max_buffered: None, steps, end }
}

fn good(name: &str, about: &str, steps: Vec<Step>) -> Exchange {
    exchange(Class::Good, name, about, steps, End::Open)
}

/// One CALL and its REPLY.
fn one(name: &str, about: &str, call: Frame, reply: Frame) -> Exchange {
    good(name, about, vec![send(&[call]), receive(reply)])
}

fn failed(id: u64, status: u32) -> Frame {
    reply(id, status, &[])
}

fn application(id: u64, code: u32, text: &str) -> Frame {
    frame(REPLY, id, &reply_payload(APPLICATION, 0, code, &[], text.as_bytes()))
}

fn replies(list: &mut Vec<Exchange>) {
    let body = payload(0, 5);
    list.push(one("echo", "a call and its reply", plain(1, 1, &body), reply(1, 0, &body)));
    list.push(one("empty", "a body of no bytes", plain(1, 1, &[]), reply(1, 0, &[])));
    for (len, about) in [
        (1, "one byte of metadata: the body begins at the next multiple of 16"),
        (16, "metadata that end where the body begins"),
        (17, "17 bytes of metadata"),
    ] {
        let meta = metadata(0, len);
        let reply = frame(REPLY, 1, &reply_payload(0, 0, 0, &meta, &body));
        list.push(one(&format!("metadata-{len}"), about, call(1, 1, 0, &meta, &body), reply));
    }
    let meta = metadata(0, 5);
    let reply_of = frame(REPLY, 1, &reply_payload(0, 0, 0, &meta, &[]));
    list.push(one("metadata-alone", "metadata and no body", call(1, 1, 0, &meta, &[]), reply_of));
    let mut padded = call_payload(0, 1, 0, &meta, &body);
    padded[16 + 5..32].fill(0xC3);
    let reply_of = frame(REPLY, 1, &reply_payload(0, 0, 0, &meta, &body));
    let about = "bytes between metadata and body that are not 0: not looked at";
    list.push(one("padding", about, frame(CALL, 1, &padded), reply_of));

    let about = "three calls, one after the other";
    let steps = (1..=3).flat_map(|id| {
        let body = payload(id, id);
        [send(&[plain(id, 1, &body)]), receive(reply(id, 0, &body))]
    });
    list.push(good("ids", about, steps.collect()));

    let request = |code: u32, text: &str| [&words(&[code]), text.as_bytes()].concat();
    let about = "an error of the application, with its number and text";
    let text = "no such key: grüße";
    list.push(one("application", about, plain(1, 3, &request(77, text)), application(1, 77, text)));
    let about = "the number of an application's error may be 0, its text empty";
    list.push(one("application-0", about, plain(1, 3, &request(0, "")), application(1, 0, "")));
    let about = "all ones as the number";
    list.push(one("application-max", about, plain(1, 3, &request(u32::MAX, "x")), application(1, u32::MAX, "x")));

    let sum = words(&[crc32fast::hash(&body)]);
    let about = "a method that was registered by name, called by its number";
    list.push(one("by-name", about, plain(1, method_id(SUM), &body), reply(1, 0, &sum)));
    for (number, about) in [
        (0, "method 0"),
        (99, "a method that nobody registered"),
        (0xFFFE_FFFF, "the last number of the application's"),
        (0xFFFF_0002, "a number of Ramway's own that means nothing"),
        (u32::MAX, "all ones"),
    ] {
        let reply = failed(1, NO_SUCH_METHOD);
        list.push(one(&format!("no-method-{number:x}"), about, plain(1, number, &body), reply));
    }
    list.push(one("ping", "the server is there and reads", plain(1, PING, &[]), reply(1, 0, &[])));
    let sum = (method_id(SUM), format!("{} {SUM}\n", method_id(SUM)));
    let mut lines: Vec<_> = (1..=7).map(|number| (number, format!("{number}\n"))).chain([sum]).collect();
    lines.sort_unstable();
    let lines: String = lines.into_iter().map(|(_, line)| line).collect();
    let about = "its methods, in the order of the numbers";
    list.push(one("describe", about, plain(1, DESCRIBE, &[]), reply(1, 0, lines.as_bytes())));

    let fails = Expected { any_text: true, ..expected(failed(1, HANDLER_FAILED)) };
    let after = payload(1, 4);
    let steps = vec![
        send(&[plain(1, 6, &[])]),
        Step::Receive(fails),
        send(&[plain(2, 1, &after)]),
        receive(reply(2, 0, &after)),
    ];
    list.push(good("handler-fails", "a handler that fails ends its own call and nothing else", steps));
}

fn sizes(list: &mut Vec<Exchange>) {
    let longest = (CAPACITY - 16 - 16) as u32;
    let make = |len: u32| plain(1, 2, &words(&[0, len]));
    let about = "the longest reply that the ring can hold";
    list.push(one("longest-reply", about, make(longest), reply(1, 0, &payload(0, u64::from(longest)))));
    for (len, about) in [(longest + 1, "a reply of one byte more"), (1 << 20, "a reply of 1 MiB")] {
        let one = one(&format!("reply-too-large-{len}"), about, make(len), failed(1, REPLY_TOO_LARGE));
        list.push(one);
    }
    let body = payload(0, u64::from(longest));
    list.push(one("longest-request", "a ring full of one request", plain(1, 1, &body), reply(1, 0, &body)));

    let about = "100 calls in one publication: more than a server takes in one round";
    let many: Vec<_> = (1..=100).map(|id| plain(id, 1, &[])).collect();
    let mut steps = vec![send(&many)];
    steps.push(Step::ReceiveAll((1..=100).map(|id| expected(reply(id, 0, &[]))).collect()));
    list.push(Exchange { max_in_flight: 128, ..good("many", about, steps) });

    let about = "two replies of which the ring holds only one: the other waits for room";
    let big = |id| plain(id, 2, &words(&[id as u32, 3000]));
    let answers = [1, 2].map(|id| expected(reply(id, 0, &payload(id, 3000))));
    let steps = vec![send(&[big(1), big(2)]), Step::ReceiveAll(answers.to_vec())];
    list.push(good("parked", about, steps));
}

fn streams(list: &mut Vec<Exchange>) {
    let open = |id, window, count, code| call(id, 4, window, &[], &stream_request(count, 8, code, 0));
    let el = |id, k| receive(element(id, &stream_element(0, k, 8)));
    let done = |id| receive(reply(id, 0, &[]));
    let about = "a stream within its window";
    let steps = vec![send(&[open(1, 16, 3, 0)]), el(1, 0), el(1, 1), el(1, 2), done(1)];
    list.push(good("stream", about, steps));
    list.push(good("stream-of-nothing", "a stream without an element", vec![send(&[open(1, 1, 0, 0)]), done(1)]));
    let about = "a stream that ends with an error of the application, after its elements";
    let steps = vec![send(&[open(1, 16, 2, 9)]), el(1, 0), el(1, 1), receive(application(1, 9, "after 2"))];
    list.push(good("stream-fails", about, steps));
    let about = "a window of 1: each element waits for the credit of the one before; the final REPLY may come before the last credit";
    let steps = vec![
        send(&[open(1, 1, 3, 0)]),
        el(1, 0),
        Step::Quiet(30),
        send(&[credit(1, 1)]),
        el(1, 1),
        Step::Quiet(30),
        send(&[credit(1, 1)]),
        el(1, 2),
        send(&[credit(1, 1)]),
        done(1),
    ];
    list.push(good("stream-window-1", about, steps));
    let about =
        "as many elements as the window; the credit for them may come after the final REPLY, and is dropped then";
    let steps = vec![send(&[open(1, 2, 2, 0)]), el(1, 0), el(1, 1), send(&[credit(1, 2)]), done(1)];
    list.push(good("stream-whole-window", about, steps));
    let about = "a stream that waits for credit stops no other call, and no other stream";
    let steps = vec![
        send(&[open(1, 1, 2, 0)]),
        el(1, 0),
        send(&[plain(2, PING, &[])]),
        done(2),
        send(&[open(3, 2, 2, 0)]),
        el(3, 0),
        el(3, 1),
        send(&[credit(3, 1)]),
        done(3),
        send(&[credit(1, 5)]),
        el(1, 1),
        done(1),
    ];
    list.push(good("stream-waits-alone", about, steps));
    let about = "more credit than a number can hold: the sum is 2^32 − 1";
    let steps = vec![
        send(&[open(1, 1, 3, 0)]),
        el(1, 0),
        send(&[credit(1, u32::MAX), credit(1, u32::MAX)]),
        el(1, 1),
        el(1, 2),
        done(1),
    ];
    list.push(good("credit-saturates", about, steps));
    let about = "a window of 2^32 − 1";
    let steps = vec![send(&[open(1, u32::MAX, 2, 0)]), el(1, 0), el(1, 1), done(1)];
    list.push(good("stream-window-max", about, steps));
    let about = "credit for a stream that is complete is dropped";
    let steps = vec![send(&[open(1, 4, 1, 0)]), el(1, 0), done(1), send(&[credit(1, 3), plain(2, PING, &[])]), done(2)];
    list.push(good("credit-late", about, steps));
}

fn cancelled(list: &mut Vec<Exchange>) {
    let hold = |id| plain(id, HOLD, &[]);
    let end = |id| receive(failed(id, CANCELLED));
    let alive = |id| [send(&[plain(id, PING, &[])]), receive(reply(id, 0, &[]))];
    let steps = [vec![send(&[hold(1)]), Step::Quiet(30), send(&[cancel(1)]), end(1)], alive(2).to_vec()].concat();
    list.push(good("cancel", "a running call is cancelled", steps));
    let about = "CALL and CANCEL in one publication: the call is run or not, its status is the same";
    let steps = [vec![send(&[hold(1), cancel(1)]), end(1)], alive(2).to_vec()].concat();
    list.push(good("cancel-at-once", about, steps));
    let about = "a second CANCEL is dropped";
    let steps = [vec![send(&[hold(1), cancel(1), cancel(1)]), end(1)], alive(2).to_vec()].concat();
    list.push(good("cancel-twice", about, steps));
    let about = "CANCEL for a call that has its REPLY is dropped";
    let steps = vec![
        send(&[plain(1, PING, &[])]),
        receive(reply(1, 0, &[])),
        send(&[cancel(1), plain(2, PING, &[])]),
        receive(reply(2, 0, &[])),
    ];
    list.push(good("cancel-late", about, steps));
    let about = "a stream that waits for credit is cancelled: its final REPLY comes without its waiting element";
    let stream = call(1, 4, 1, &[], &stream_request(5, 8, 0, 0));
    let steps = vec![
        send(&[stream]),
        receive(element(1, &stream_element(0, 0, 8))),
        Step::Quiet(30),
        send(&[cancel(1)]),
        end(1),
    ];
    list.push(good("cancel-stream", about, [steps, alive(2).to_vec()].concat()));
    let about = "credit for a stream that was cancelled brings no element any more";
    let stream = call(1, 4, 1, &[], &stream_request(5, 8, 0, 0));
    let steps = vec![
        send(&[stream]),
        receive(element(1, &stream_element(0, 0, 8))),
        Step::Quiet(30),
        send(&[cancel(1), credit(1, 9)]),
        end(1),
    ];
    list.push(good("cancel-then-credit", about, [steps, alive(2).to_vec()].concat()));

    let about = "a time limit of 1 ms: it is over before the call was begun, or while it ran";
    let or = Some(failed(1, TIMED_OUT).hex);
    let over = Expected { or, ..expected(failed(1, CANCELLED)) };
    let call = frame(CALL, 1, &call_payload(1000, HOLD, 0, &[], &[]));
    let steps = [vec![send(&[call]), Step::Receive(over)], alive(2).to_vec()].concat();
    list.push(good("time-out", about, steps));
    let about = "the longest time limit";
    let call = frame(CALL, 1, &call_payload(u32::MAX, 1, 0, &[], &[7]));
    list.push(one("time-limit-max", about, call, reply(1, 0, &[7])));
    let about = "a call that waits, and is let go";
    let body = payload(0, 9);
    let steps = vec![send(&[plain(1, HOLD, &body)]), Step::Quiet(30), Step::Gate, receive(reply(1, 0, &body))];
    list.push(good("gate", about, steps));
}

fn limits(list: &mut Vec<Exchange>) {
    let hold = |id| plain(id, HOLD, &[]);
    let ping = |id| [send(&[plain(id, PING, &[])]), receive(reply(id, 0, &[]))];
    let about = "one call more than may be in flight is refused; a place is free once a final REPLY is published";
    let mut steps = vec![send(&[hold(1), hold(2), hold(3), hold(4), plain(5, 1, &[])]), receive(failed(5, OVERLOADED))];
    steps.extend([send(&[cancel(2)]), receive(failed(2, CANCELLED))]);
    steps.extend(ping(6));
    list.push(Exchange { max_in_flight: 4, ..good("in-flight", about, steps) });
    let about = "Ramway's own methods count as calls in flight";
    let steps = vec![send(&[hold(1), plain(2, PING, &[])]), receive(failed(2, OVERLOADED))];
    list.push(Exchange { max_in_flight: 1, ..good("in-flight-ping", about, steps) });
    let about =
        "a copy of a request that exceeds max_bytes is refused, and its bytes are free once the other call has ended";
    let hold = |id| plain(id, HOLD, &payload(0, 900));
    let mut steps = vec![send(&[hold(1), hold(2)]), receive(failed(2, OVERLOADED))];
    steps.extend([send(&[cancel(1)]), receive(failed(1, CANCELLED))]);
    steps.extend([send(&[hold(3)]), Step::Quiet(30), send(&[cancel(3)]), receive(failed(3, CANCELLED))]);
    list.push(Exchange { max_bytes: Some(1500), ..good("bytes", about, steps) });

    let about = "far more calls than may be in flight, from a client that does not read: it gets an answer to each once it reads";
    let flood = |from: u64, to: u64| (from..=to).map(|id| plain(id, 1, &[])).collect::<Vec<_>>();
    let holds: Vec<_> = (1..=4).map(|id| plain(id, HOLD, &[])).collect();
    let refused = (5..=244).map(|id| expected(failed(id, OVERLOADED))).collect();
    let steps = vec![send(&holds), send(&flood(5, 124)), send(&flood(125, 244)), Step::ReceiveAll(refused)];
    list.push(Exchange { max_in_flight: 4, ..good("flood", about, steps) });
    let about = "while replies wait for room the server takes what comes: the second of these requests fits only once the first was taken";
    let big = |id| plain(id, 2, &words(&[id as u32, 2500]));
    let hold = |id| plain(id, HOLD, &payload(0, 4000));
    let mut replies: Vec<_> = (1..=3).map(|id| expected(reply(id, 0, &payload(id, 2500)))).collect();
    replies.extend([4, 5].map(|id| expected(failed(id, CANCELLED))));
    let steps = vec![
        send(&[big(1), big(2), big(3)]),
        send(&[hold(4)]),
        send(&[hold(5)]),
        send(&[cancel(4), cancel(5)]),
        Step::ReceiveAll(replies),
    ];
    list.push(good("reads-on", about, steps));
}

fn ends(list: &mut Vec<Exchange>) {
    let hold = || send(&[plain(1, HOLD, &[])]);
    let gone = |name: &str, about: &str, how: Step| {
        exchange(Class::Good, name, about, vec![hold(), Step::Quiet(30), how], End::PeerDead)
    };
    list.push(gone(
        "client-dies",
        "a client that is gone: its call is cancelled, the next client is served",
        Step::HangUp,
    ));
    list.push(gone("client-closes", "a client that closes with a call in flight", Step::Close));
    let about = "while the server drains, new calls are refused, Ramway's own are answered, a running one goes on; then it closes";
    // The server has taken the first call once it answers the second: what it takes after it begins to drain is refused.
    let steps = vec![
        hold(),
        send(&[plain(2, PING, &[])]),
        receive(reply(2, 0, &[])),
        Step::Shutdown(20_000),
        Step::UntilDraining(3),
        Step::Gate,
        receive(reply(1, 0, &[])),
    ];
    list.push(exchange(Class::Good, "drain", about, steps, End::Closed));
    let about = "a shutdown without a call";
    list.push(exchange(Class::Good, "shutdown", about, vec![Step::Shutdown(20_000)], End::Closed));
}

fn hostile(name: &str, about: &str, before: &[Frame], wrong: Frame) -> Exchange {
    let frames: Vec<_> = before.iter().cloned().chain([wrong]).collect();
    exchange(Class::Hostile, name, about, vec![send(&frames)], End::Corrupt)
}

fn hostile_calls(list: &mut Vec<Exchange>) {
    let ping = |id| plain(id, PING, &[]);
    for (name, about, before, id) in [
        ("id-0", "the first call's id is 0", 0, 0),
        ("id-2", "the first call's id is 2", 0, 2),
        ("id-max", "the first call's id is 2^64 − 1", 0, u64::MAX),
        ("id-again", "an id twice", 1, 1),
        ("id-skipped", "an id is left out", 1, 3),
        ("id-in-32-bits", "the id that comes next, plus 2^32", 1, 2 + (1 << 32)),
        ("id-back", "an id that is long over", 3, 2),
    ] {
        let before: Vec<_> = (1..=before).map(ping).collect();
        list.push(hostile(name, about, &before, ping(id)));
    }
    let whole = call_payload(0, 1, 0, &[], &[]);
    for len in [0, 4, 15] {
        let about = format!("a CALL of {len} bytes");
        list.push(hostile(&format!("call-len-{len}"), &about, &[], frame(CALL, 1, &whole[..len])));
    }
    let with = |meta_len: u32, rest: &[u8]| frame(CALL, 1, &framed([0, meta_len, 1, 0], &[], rest));
    for (name, about, meta_len, rest) in [
        ("meta-1", "metadata of 1 byte in a payload of 16", 1, 0),
        ("meta-unpadded", "metadata of 1 byte in a payload of 17: the room up to the body is missing", 1, 1),
        ("meta-beyond", "metadata of 17 bytes in a payload of 32", 17, 16),
        ("meta-max", "metadata of 2^32 − 1 bytes, 2^32 when rounded up", u32::MAX, 64),
        ("meta-wraps", "metadata of 2^32 − 15 bytes, 0 when rounded up in 32 bits", u32::MAX - 14, 64),
        ("meta-negative", "metadata of 2^31 bytes", 1 << 31, 64),
    ] {
        list.push(hostile(name, about, &[], with(meta_len, &vec![0; rest])));
    }
}

fn hostile_others(list: &mut Vec<Exchange>) {
    for (name, about, type_id) in [
        ("type-0", "a message of type 0", 0),
        ("type-user", "a message of the user's", 7),
        ("type-reply", "a REPLY from a client", REPLY),
        ("type-before", "the type id before CALL", CALL - 1),
        ("type-after", "the type id after CREDIT", CREDIT + 1),
        ("type-max", "all ones", u32::MAX),
    ] {
        list.push(hostile(name, about, &[], frame(type_id, 1, &call_payload(0, PING, 0, &[], &[]))));
    }
    let stream = || call(1, 4, 1, &[], &stream_request(5, 8, 0, 0));
    let hold = || plain(1, HOLD, &[]);
    let ping = || plain(1, PING, &[]);
    let all: [(&str, &str, Vec<Frame>, Frame); 14] = [
        ("cancel-id-0", "CANCEL with id 0", vec![hold()], cancel(0)),
        ("cancel-unknown", "CANCEL for a call that is still to come", vec![hold()], cancel(2)),
        ("cancel-first", "CANCEL before any CALL", vec![], cancel(1)),
        ("cancel-max", "CANCEL with id 2^64 − 1", vec![hold()], cancel(u64::MAX)),
        ("cancel-payload", "CANCEL with a payload", vec![hold()], frame(CANCEL, 1, &[0])),
        ("credit-id-0", "CREDIT with id 0", vec![stream()], credit(0, 1)),
        ("credit-unknown", "CREDIT for a call that is still to come", vec![stream()], credit(2, 1)),
        ("credit-0", "CREDIT of 0", vec![stream()], credit(1, 0)),
        ("credit-0-late", "CREDIT of 0 for a call that has ended", vec![ping()], credit(1, 0)),
        ("credit-no-stream", "CREDIT for a running call without a window", vec![hold()], credit(1, 1)),
        ("credit-len-0", "CREDIT without a payload", vec![stream()], frame(CREDIT, 1, &[])),
        ("credit-len-3", "CREDIT of 3 bytes", vec![stream()], frame(CREDIT, 1, &[1, 0, 0])),
        ("credit-len-8", "CREDIT of 8 bytes", vec![stream()], frame(CREDIT, 1, &[1, 0, 0, 0, 0, 0, 0, 0])),
        ("credit-len-late", "a CREDIT of 5 bytes for a call that has ended", vec![ping()], frame(CREDIT, 1, &[1; 5])),
    ];
    for (name, about, before, wrong) in all {
        list.push(hostile(name, about, &before, wrong));
    }
}
