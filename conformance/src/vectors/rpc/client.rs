//! What a client must send, and make of what a server sends.

use super::super::image::{hex, payload};
use super::super::model::Class;
use super::{
    CALL, CANCEL, CREDIT, Call, ELEMENT, End, Exchange, Expected, Frame, Outcome, REPLY, Step, Take, call,
    call_payload, cancel, credit, element, frame, framed, metadata, receive, reply, reply_payload, send,
    stream_element, stream_request,
};

const IN_FLIGHT: u32 = 16;

pub fn all() -> Vec<Exchange> {
    let mut list = Vec::new();
    replies(&mut list);
    buffered(&mut list);
    streams(&mut list);
    cancelled(&mut list);
    ends(&mut list);
    hostile_replies(&mut list);
    hostile_streams(&mut list);
    list
}

fn exchange(class: Class, name: &str, about: &str, steps: Vec<Step>, end: End) -> Exchange {
    let (name, about) = (format!("client-{name}"), about.into());
    Exchange { name, about, class, max_in_flight: IN_FLIGHT, max_bytes: None, max_buffered: None, steps, end }
}

fn good(name: &str, about: &str, steps: Vec<Step>) -> Exchange {
    exchange(Class::Good, name, about, steps, End::Open)
}

/// The length of the body of a call that is no stream.
const LEN: u64 = 5;

fn body(seq: u32) -> Vec<u8> {
    payload(u64::from(seq), LEN)
}

/// The program calls method 1: the call, and the CALL that it gives as number `id`.
fn start(id: u64, seq: u32) -> [Step; 2] {
    [calls(seq, 0), receive(call(id, 1, 0, &[], &body(seq)))]
}

/// The program calls method 1, with a time limit.
fn calls(seq: u32, timeout_us: u32) -> Step {
    Step::Call(Call { method: 1, seq, meta: String::new(), body: hex(&body(seq)), window: 0, timeout_us })
}

/// The CALL of that, with a time limit.
fn limited(id: u64, seq: u32, timeout_us: u32) -> Step {
    let hex = hex(&call_payload(0, 1, 0, &[], &body(seq)));
    let (tag, timeout_at_most) = (id.to_string(), Some(timeout_us));
    Step::Receive(Expected { type_id: CALL, tag, hex, or: None, any_text: false, timeout_at_most })
}

/// The program opens a stream of 8 byte elements.
fn open(window: u32, count: u32, code: u32) -> [Step; 2] {
    let body = stream_request(count, 8, code, 0);
    let call_of = Call { method: 4, seq: 0, meta: String::new(), body: hex(&body), window, timeout_us: 0 };
    [Step::Call(call_of), receive(call(1, 4, window, &[], &body))]
}

fn outcome(call: u32, name: &str) -> Outcome {
    let name = name.into();
    Outcome { call, name, code: None, text: None, may_have_run: None, meta: None, body: None, elements: None }
}

fn ok(call: u32, seq: u32) -> Step {
    Step::Outcome(Outcome { meta: Some(String::new()), body: Some(hex(&body(seq))), ..outcome(call, "Ok") })
}

fn fails(call: u32, name: &str, may_have_run: bool) -> Step {
    Step::Outcome(Outcome { may_have_run: Some(may_have_run), ..outcome(call, name) })
}

fn complete(elements: &[u32]) -> Step {
    let elements = elements.iter().map(|&k| hex(&stream_element(0, k, 8))).collect();
    Step::Outcome(Outcome { elements: Some(elements), ..outcome(1, "Ok") })
}

fn el(k: u32) -> Frame {
    element(1, &stream_element(0, k, 8))
}

/// A call that works, as the exchange's number `place`.
fn works(place: u32, id: u64) -> Vec<Step> {
    let seq = place;
    [start(id, seq).to_vec(), vec![send(&[reply(id, 0, &body(seq))]), ok(place, seq)]].concat()
}

fn replies(list: &mut Vec<Exchange>) {
    let answered = |answer: Frame, outcome: Step| [start(1, 0).to_vec(), vec![send(&[answer]), outcome]].concat();
    list.push(good("echo", "a call and its reply", answered(reply(1, 0, &body(0)), ok(1, 0))));
    let empty = Call { method: 1, seq: 0, meta: String::new(), body: String::new(), window: 0, timeout_us: 0 };
    let steps = vec![
        Step::Call(empty),
        receive(call(1, 1, 0, &[], &[])),
        send(&[reply(1, 0, &[])]),
        Step::Outcome(Outcome { meta: Some(String::new()), body: Some(String::new()), ..outcome(1, "Ok") }),
    ];
    list.push(good("empty", "a body of no bytes", steps));
    for len in [1, 16, 17] {
        let meta = metadata(0, len);
        let call_of = Call { method: 1, seq: 0, meta: hex(&meta), body: hex(&body(0)), window: 0, timeout_us: 0 };
        let steps = vec![
            Step::Call(call_of),
            receive(call(1, 1, 0, &meta, &body(0))),
            send(&[frame(REPLY, 1, &reply_payload(0, 0, 0, &meta, &body(0)))]),
            Step::Outcome(Outcome { meta: Some(hex(&meta)), body: Some(hex(&body(0))), ..outcome(1, "Ok") }),
        ];
        list.push(good(&format!("metadata-{len}"), &format!("{len} bytes of metadata both ways"), steps));
    }
    let application = |code: u32, text: &[u8]| frame(REPLY, 1, &reply_payload(1, 0, code, &[], text));
    for (name, about, code, text, shown) in [
        ("application", "an error of the application", 77, "grüße".as_bytes(), "grüße"),
        ("application-0", "the number 0 and no text", 0, b"", ""),
        (
            "application-text",
            "a text that is not UTF-8 is shown with replacement characters",
            1,
            b"a\xFFb",
            "a\u{FFFD}b",
        ),
    ] {
        let failed = Outcome {
            code: Some(code),
            text: Some(shown.into()),
            may_have_run: Some(true),
            ..outcome(1, "Application")
        };
        list.push(good(name, about, answered(application(code, text), Step::Outcome(failed))));
    }
    for (status, name, run) in [
        (2, "NoSuchMethod", false),
        (3, "TimedOut", false),
        (4, "Cancelled", true),
        (5, "Overloaded", false),
        (6, "ReplyTooLarge", true),
        (7, "Draining", false),
    ] {
        let steps = [answered(reply(1, status, &[]), fails(1, name, run)), works(2, 2)].concat();
        list.push(good(&format!("status-{status}"), &format!("status {status}; the next call works"), steps));
    }
    let failed = Outcome { text: Some("boom".into()), may_have_run: Some(true), ..outcome(1, "HandlerFailed") };
    let steps = answered(reply(1, 8, b"boom"), Step::Outcome(failed));
    list.push(good("status-8", "status 8, with a text", steps));

    let steps = [
        start(1, 0).to_vec(),
        start(2, 1).to_vec(),
        vec![send(&[reply(2, 0, &body(1)), reply(1, 0, &body(0))]), ok(1, 0), ok(2, 1)],
    ];
    list.push(good("out-of-order", "two replies in the other order", steps.concat()));

    let about = "one call may be in flight: the second one is sent when the first has its final REPLY";
    let steps = [
        start(1, 0).to_vec(),
        vec![calls(1, 0), Step::Quiet(30), send(&[reply(1, 0, &body(0))]), ok(1, 0)],
        vec![receive(call(2, 1, 0, &[], &body(1))), send(&[reply(2, 0, &body(1))]), ok(2, 1)],
    ];
    list.push(Exchange { max_in_flight: 1, ..good("queue", about, steps.concat()) });
}

fn buffered(list: &mut Vec<Exchange>) {
    let about = "a reply of more bytes than the client holds: its call fails, the next one works";
    let steps =
        [start(1, 0).to_vec(), vec![send(&[reply(1, 0, &payload(0, 3000))]), fails(1, "TooLarge", true)], works(2, 2)];
    list.push(Exchange { max_buffered: Some(1000), ..good("buffered", about, steps.concat()) });
}

fn streams(list: &mut Vec<Exchange>) {
    let steps = [open(16, 2, 0).to_vec(), vec![send(&[el(0), el(1), reply(1, 0, &[])]), complete(&[0, 1])]];
    list.push(good("stream", "a stream and its end", steps.concat()));
    let steps = [open(16, 0, 0).to_vec(), vec![send(&[reply(1, 0, &[])]), complete(&[])]];
    list.push(good("stream-of-nothing", "a stream without an element", steps.concat()));
    let about = "a stream that ends with an error of the application, after its elements";
    let application = frame(REPLY, 1, &reply_payload(1, 0, 9, &[], b"after 1"));
    let failed = Outcome {
        code: Some(9),
        text: Some("after 1".into()),
        may_have_run: Some(true),
        elements: Some(vec![hex(&stream_element(0, 0, 8))]),
        ..outcome(1, "Application")
    };
    let steps = [open(16, 1, 9).to_vec(), vec![send(&[el(0), application]), Step::Outcome(failed)]];
    list.push(good("stream-fails", about, steps.concat()));
    let about = "a window of 1: CREDIT for each element once it is taken, and not before";
    let take = |k| Step::Take(Take { call: 1, elements: vec![hex(&stream_element(0, k, 8))] });
    let steps = [
        open(1, 3, 0).to_vec(),
        vec![send(&[el(0)]), Step::Quiet(30), take(0), receive(credit(1, 1))],
        vec![send(&[el(1)]), take(1), receive(credit(1, 1)), send(&[el(2), reply(1, 0, &[])]), complete(&[2])],
    ];
    list.push(good("stream-window-1", about, steps.concat()));
}

fn cancelled(list: &mut Vec<Exchange>) {
    let cancel = |id| [Step::Cancel(1), receive(cancel(id))];
    let steps = [start(1, 0).to_vec(), cancel(1).to_vec(), vec![send(&[reply(1, 4, &[])])], works(2, 2)];
    list.push(good("cancel", "a call is cancelled, and the next one works", steps.concat()));
    let about = "a REPLY that was faster than CANCEL is dropped";
    let steps = [start(1, 0).to_vec(), cancel(1).to_vec(), vec![send(&[reply(1, 0, &body(0))])], works(2, 2)];
    list.push(good("cancel-late", about, steps.concat()));
    let about = "elements that come after CANCEL are dropped";
    let steps =
        [open(2, 5, 0).to_vec(), cancel(1).to_vec(), vec![send(&[el(0), el(1), reply(1, 4, &[])])], works(2, 2)];
    list.push(good("cancel-stream", about, steps.concat()));
    let about = "a cancelled call keeps its place until its final REPLY: no other is sent before";
    let steps = [
        start(1, 0).to_vec(),
        cancel(1).to_vec(),
        vec![calls(1, 0), Step::Quiet(30), send(&[reply(1, 4, &[])])],
        vec![receive(call(2, 1, 0, &[], &body(1))), send(&[reply(2, 0, &body(1))]), ok(2, 1)],
    ];
    list.push(Exchange { max_in_flight: 1, ..good("cancel-keeps-place", about, steps.concat()) });
    let limit = 50_000;
    let about = "a call's time is over at the client: CANCEL is sent, a late REPLY dropped, the next call works";
    let steps = [
        vec![calls(0, limit), limited(1, 0, limit), fails(1, "TimedOut", true), receive(super::cancel(1))],
        vec![send(&[reply(1, 0, &body(0))])],
        works(2, 2),
    ];
    list.push(good("time-out", about, steps.concat()));
    let about = "a call whose time is over before it could be sent is withdrawn: it was not run, and takes no id";
    let steps = [
        start(1, 0).to_vec(),
        vec![Step::Cancel(1), receive(super::cancel(1)), calls(1, limit), fails(2, "TimedOut", false)],
        vec![send(&[reply(1, 4, &[])])],
        works(3, 2),
    ];
    list.push(Exchange { max_in_flight: 1, ..good("withdrawn", about, steps.concat()) });
    let about = "a time limit that the answer keeps";
    let steps = vec![calls(0, 20_000_000), limited(1, 0, 20_000_000), send(&[reply(1, 0, &body(0))]), ok(1, 0)];
    list.push(good("time-limit", about, steps));
}

fn ends(list: &mut Vec<Exchange>) {
    let ended = |name: &str, about: &str, steps: Vec<Step>, end: End| exchange(Class::Good, name, about, steps, end);
    let two = || [start(1, 0).to_vec(), start(2, 1).to_vec()].concat();
    let first = || send(&[reply(1, 0, &body(0))]);
    let about = "the server closes: what has its REPLY has it, what has none was not run";
    let steps = [two(), vec![first(), Step::Close, ok(1, 0), fails(2, "Closed", false)]].concat();
    list.push(ended("closed", about, steps, End::Closed));
    let about = "the server is gone: what has its REPLY has it, what has none may have run";
    let steps = [two(), vec![first(), Step::HangUp, ok(1, 0), fails(2, "PeerDead", true)]].concat();
    list.push(ended("peer-dead", about, steps, End::PeerDead));
    let about = "the server is gone while a stream has elements that were not taken: they are received first";
    let failed = Outcome {
        may_have_run: Some(true),
        elements: Some(vec![hex(&stream_element(0, 0, 8))]),
        ..outcome(1, "PeerDead")
    };
    let steps = [open(2, 5, 0).to_vec(), vec![send(&[el(0)]), Step::HangUp, Step::Outcome(failed)]].concat();
    list.push(ended("stream-peer-dead", about, steps, End::PeerDead));
}

/// A call is in flight, and what comes ends the connection.
fn hostile(name: &str, about: &str, frames: &[Frame]) -> Exchange {
    let steps = [start(1, 0).to_vec(), vec![send(frames), fails(1, "Corrupt", true)]].concat();
    exchange(Class::Hostile, name, about, steps, End::Corrupt)
}

fn hostile_replies(list: &mut Vec<Exchange>) {
    for (name, about, id) in [
        ("id-0", "a REPLY with id 0", 0),
        ("id-2", "a REPLY to a call that is still to come", 2),
        ("id-max", "a REPLY with id 2^64 − 1", u64::MAX),
        ("id-in-32-bits", "a REPLY with the call's id plus 2^32", 1 + (1 << 32)),
    ] {
        list.push(hostile(name, about, &[reply(id, 0, &body(0))]));
    }
    let about = "two final REPLYs to one call";
    let twice = reply(1, 0, &body(0));
    let steps = [
        start(1, 0).to_vec(),
        start(2, 1).to_vec(),
        vec![send(&[twice.clone(), twice]), ok(1, 0), fails(2, "Corrupt", true)],
    ];
    list.push(exchange(Class::Hostile, "again", about, steps.concat(), End::Corrupt));
    let with = |words: [u32; 4]| frame(REPLY, 1, &framed(words, &[], &body(0)));
    for (name, about, words) in [
        ("status-9", "an unknown status", [9, 0, 0, 0]),
        ("status-max", "a status of all ones", [u32::MAX, 0, 0, 0]),
        ("code-ok", "a number of the application's with status 0", [0, 0, 1, 0]),
        ("code-failed", "a number of the application's with status 8", [8, 0, 1, 0]),
        ("flags-1", "an unknown flag", [0, 2, 0, 0]),
        ("flags-31", "the last flag", [0, 1 << 31, 0, 0]),
        ("element", "an element for a call without a window", [0, ELEMENT, 0, 0]),
        ("meta", "metadata beyond the payload", [0, 0, 0, 6]),
        ("meta-max", "metadata of 2^32 − 1 bytes", [0, 0, 0, u32::MAX]),
        ("meta-wraps", "metadata of 2^32 − 15 bytes, 0 when rounded up in 32 bits", [0, 0, 0, u32::MAX - 14]),
    ] {
        list.push(hostile(name, about, &[with(words)]));
    }
    let whole = reply_payload(0, 0, 0, &[], &[]);
    for len in [0, 4, 15] {
        let about = format!("a REPLY of {len} bytes");
        list.push(hostile(&format!("reply-len-{len}"), &about, &[frame(REPLY, 1, &whole[..len])]));
    }
    for (name, about, type_id) in [
        ("type-0", "a message of type 0", 0),
        ("type-user", "a message of the user's", 7),
        ("type-call", "a CALL from a server", CALL),
        ("type-cancel", "a CANCEL from a server", CANCEL),
        ("type-credit", "a CREDIT from a server", CREDIT),
        ("type-after", "the type id after CREDIT", CREDIT + 1),
    ] {
        list.push(hostile(name, about, &[frame(type_id, 1, &whole)]));
    }
}

fn hostile_streams(list: &mut Vec<Exchange>) {
    let mut stream = |name: &str, about: &str, frames: &[Frame]| {
        let steps = [open(2, 5, 0).to_vec(), vec![send(frames), fails(1, "Corrupt", true)]].concat();
        list.push(exchange(Class::Hostile, name, about, steps, End::Corrupt));
    };
    let with = |words: [u32; 4]| frame(REPLY, 1, &framed(words, &[], &stream_element(0, 0, 8)));
    stream("element-status", "an element with status 4", &[with([4, ELEMENT, 0, 0])]);
    stream("element-application", "an element with status 1", &[with([1, ELEMENT, 0, 0])]);
    stream("element-code", "an element with a number of the application's", &[with([0, ELEMENT, 1, 0])]);
    let about = "three elements where two may be under way, while the program waits for another call and takes none";
    let steps =
        [open(2, 5, 0).to_vec(), start(2, 1).to_vec(), vec![send(&[el(0), el(1), el(2)]), fails(2, "Corrupt", true)]];
    list.push(exchange(Class::Hostile, "beyond-credit", about, steps.concat(), End::Corrupt));
    let about = "an element for a call without a window that was cancelled";
    let steps = [
        start(1, 0).to_vec(),
        vec![
            Step::Cancel(1),
            receive(cancel(1)),
            calls(1, 0),
            receive(call(2, 1, 0, &[], &body(1))),
            send(&[el(0)]),
            fails(2, "Corrupt", true),
        ],
    ];
    list.push(exchange(Class::Hostile, "element-after-cancel", about, steps.concat(), End::Corrupt));
    let about = "a second final REPLY to a call that was cancelled";
    let steps = [
        start(1, 0).to_vec(),
        vec![
            Step::Cancel(1),
            receive(cancel(1)),
            calls(1, 0),
            receive(call(2, 1, 0, &[], &body(1))),
            send(&[reply(1, 4, &[]), reply(1, 4, &[])]),
            fails(2, "Corrupt", true),
        ],
    ];
    list.push(exchange(Class::Hostile, "again-after-cancel", about, steps.concat(), End::Corrupt));
}
