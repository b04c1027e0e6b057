//! Every example is run, as the separate processes that it is about.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A directory for one test's segments and files, removed with what is in it.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/ramway-examples-{test}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("RAMWAY_DIR", &self.0).stdin(Stdio::null());
        command
    }

    fn start(&self, program: &str, arguments: &[&str]) -> Running {
        let child = self.command(program, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running(Some(child))
    }

    /// No segment may be left when everybody has gone.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A child that does not outlive its test.
struct Running(Option<Child>);

impl Running {
    fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }

    /// Standard output of a child that must succeed.
    fn text(self) -> String {
        let output = self.output();
        assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn kill(&mut self) {
        let child = self.0.as_mut().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited for a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn append(path: &Path, lines: std::ops::Range<u32>) -> String {
    let text: String = lines.map(|n| format!("line {n} of the log\n")).collect();
    OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    text
}

const LOG_TAIL: &str = env!("CARGO_BIN_EXE_log-tail");

#[test]
fn log_tail_loses_and_doubles_no_line_when_the_follower_is_killed() {
    let place = Place::new("log");
    let log = place.0.join("app.log");
    let printed = place.0.join("printed");
    let (log_path, printed_file) = (log.to_str().unwrap(), fs::File::create(&printed).unwrap());
    let printed_len = || fs::metadata(&printed).unwrap().len();

    let mut expected = append(&log, 0..5_000);
    let printer = place.command(LOG_TAIL, &["print", "log"]).stdout(printed_file).spawn().unwrap();
    let printer = Running(Some(printer));
    for round in 1..4 {
        // Before the start: the follower may be through before this process runs again.
        let before = printed_len();
        let mut follower = place.start(LOG_TAIL, &["follow", "log", log_path]);
        // Killed at whatever point of its work it is at then.
        until("the printer prints", || printed_len() > before);
        follower.kill();
        expected += &append(&log, round * 5_000..(round + 1) * 5_000);
    }
    place.start(LOG_TAIL, &["follow", "log", log_path, "--once"]).text();
    printer.text();
    assert!(fs::read_to_string(&printed).unwrap() == expected, "the printed lines differ from the log");
    // The ring is persistent: who follows or prints next goes on.
    let again = append(&log, 20_000..20_100);
    let printer = place.start(LOG_TAIL, &["print", "log"]);
    place.start(LOG_TAIL, &["follow", "log", log_path, "--once"]).text();
    assert!(printer.text() == again, "lines were printed again");
    assert_eq!(place.names(), ["app.log", "log", "printed"]);
}

const FRAMES: &str = env!("CARGO_BIN_EXE_frames");

#[test]
fn frames_arrive_whole_and_in_order_whichever_side_starts_first() {
    let place = Place::new("frames");
    for first in ["produce", "consume"] {
        let mut both: Vec<Running> = Vec::new();
        let mut order = [("produce", vec!["produce", "video", "40"]), ("consume", vec!["consume", "video"])];
        order.sort_by_key(|(name, _)| *name != first);
        for (_, arguments) in order {
            both.push(place.start(FRAMES, &arguments));
            std::thread::sleep(Duration::from_millis(50));
        }
        let texts: Vec<String> = both.into_iter().map(Running::text).collect();
        assert!(texts[0].starts_with("40 frames, brightness "), "{}", texts[0]);
        assert_eq!(texts[0], texts[1]);
    }
    assert_eq!(place.names(), [""; 0]);
}

const KEY_VALUE: &str = env!("CARGO_BIN_EXE_key-value");

#[test]
fn key_value_answers_each_client_and_survives_a_killed_one() {
    let place = Place::new("kv");
    // The client may be first: it waits for the listener.
    let mut doomed = place.command(KEY_VALUE, &["client", "kv"]);
    let doomed = doomed.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut doomed = Running(Some(doomed));
    let server = place.start(KEY_VALUE, &["serve", "kv", "3"]);
    // More than it sends ahead, so that it prints a reply and goes on waiting for commands.
    let child = doomed.0.as_mut().unwrap();
    child.stdin.as_mut().unwrap().write_all("get nothing\n".repeat(40).as_bytes()).unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 9]).unwrap();
    let ask = |text: String| {
        let mut client = place
            .command(KEY_VALUE, &["client", "kv"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        client.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Running(Some(client)).text()
    };
    let sets: String = (0..500).map(|n| format!("set key{n} value {n}\n")).collect();
    assert_eq!(ask(sets), (0..500).map(|n| format!("value {n}\n")).collect::<String>());
    doomed.kill();
    assert_eq!(ask("get key499\nget nothing\nset a b\nget a\n".to_owned()), "value 499\n(missing)\nb\nb\n");
    server.text();
    assert_eq!(place.names(), [""; 0]);
}

const CONFIG: &str = env!("CARGO_BIN_EXE_config");

#[test]
fn config_wakes_its_readers_and_outlives_its_writers() {
    let place = Place::new("config");
    place.start(CONFIG, &["set", "app", "colour = red"]).text();
    assert_eq!(place.start(CONFIG, &["show", "app"]).text(), "1: colour = red\n");

    let mut watchers = Vec::new();
    for _ in 0..3 {
        let mut child =
            place.command(CONFIG, &["watch", "app", "colour = blue"]).stdout(Stdio::piped()).spawn().unwrap();
        // Its first line says that it is watching.
        let mut first = [0; 16];
        child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        assert_eq!(&first, b"1: colour = red\n");
        watchers.push(Running(Some(child)));
    }
    place.start(CONFIG, &["set", "app", "colour = blue"]).text();
    for watcher in watchers {
        assert_eq!(watcher.text(), "2: colour = blue\n");
    }
    assert_eq!(place.names(), ["app"]);
}

const SUPERVISE: &str = env!("CARGO_BIN_EXE_supervise");

#[test]
fn supervised_worker_sends_everything_exactly_once() {
    let place = Place::new("supervise");
    let text = place.start(SUPERVISE, &["run", "numbers", "2000000", "5"]).text();
    assert!(text.starts_with("2000000 messages, "), "{text}");
    assert!(text.ends_with(" restarts, none lost, none twice\n"), "{text}");
    assert_eq!(place.names(), [""; 0]);
}

const MARKET: &str = env!("CARGO_BIN_EXE_market");
const WAVES: &str = env!("CARGO_BIN_EXE_waves");

#[test]
fn market_ticks_arrive_whole_and_once() {
    let place = Place::new("market");
    let consumer = place.start(MARKET, &["consume", "market"]);
    let sent = place.start(MARKET, &["produce", "market", "100500", "1000000"]).text();
    let received = consumer.text();
    assert!(sent.starts_with("sent 100500 ticks"), "{sent}");
    assert!(received.starts_with("received 100500 ticks"), "{received}");
    assert_eq!(sent.lines().last(), received.lines().last());
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn wrong_arguments_are_answered_with_the_usage() {
    let place = Place::new("usage");
    for program in [LOG_TAIL, FRAMES, KEY_VALUE, CONFIG, SUPERVISE, MARKET, WAVES, ORDERS] {
        let output = place.start(program, &["no-such-thing"]).output();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stderr).unwrap().contains("usage: "));
    }
}

const TICKS: &str = env!("CARGO_BIN_EXE_ticks");

#[test]
fn ticks_are_numbered_on_by_a_restarted_producer() {
    let place = Place::new("ticks");
    // The ring holds 65536 / 48 of them; the others are left out.
    let sent = place.start(TICKS, &["send", "ticks", "0", "2000"]).text();
    assert_eq!(sent, "1365 ticks, 635 left out\n");
    let shown = place.start(TICKS, &["show", "ticks", "1000"]).text();
    let numbers: Vec<u64> = shown.lines().map(|line| line.split(':').next().unwrap().parse().unwrap()).collect();
    assert_eq!(numbers, (1..=1000).collect::<Vec<_>>());
    place.start(TICKS, &["send", "ticks", "0", "1"]).text();
    let rest = place.start(TICKS, &["show", "ticks", "366"]).text();
    assert!(rest.lines().last().unwrap().starts_with("1366:"), "{rest}");
}

const ORDERS: &str = env!("CARGO_BIN_EXE_orders");

/// The tags that `book` has written down, in their order.
fn booked(file: &Path) -> Vec<u64> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

/// Keeps a service running, as `Restart=always` does, until it is told to stop; kills it `kills` times at whatever
/// instruction it is at.
fn always(place: &Place, arguments: &[&str], mut kills: u32, stop: &std::sync::atomic::AtomicBool) {
    use std::sync::atomic::Ordering;
    while !stop.load(Ordering::Relaxed) {
        let mut service = place.start(ORDERS, arguments);
        let end = Instant::now() + Duration::from_millis(7 + u64::from(kills % 5) * 6);
        loop {
            let child = service.0.as_mut().unwrap();
            if child.try_wait().unwrap().is_some() {
                break;
            }
            if stop.load(Ordering::Relaxed) || (kills > 0 && Instant::now() > end) {
                kills = kills.saturating_sub(1);
                child.kill().unwrap();
                child.wait().unwrap();
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn the_guide_s_feed_sends_nothing_twice_whatever_is_restarted() {
    use std::sync::atomic::{AtomicBool, Ordering};
    const COUNT: usize = 150_000;
    let count = COUNT.to_string();
    // An orderly restart of both, after all was delivered: nobody uses the ring then, and nothing is in it.
    let place = Place::new("orders");
    let file = place.0.join("book");
    let book = ["book", file.to_str().unwrap()];
    for upto in ["100", "100", "250", "250"] {
        let receiver = place.start(ORDERS, &book);
        place.start(ORDERS, &["feed", upto]).text();
        receiver.text();
    }
    assert_eq!(booked(&file), (1..=250).collect::<Vec<_>>(), "an orderly restart of both");
    drop(place);

    // The feed is killed again and again; the book ends with each of them, and is started again.
    // Then the book is killed too: what it had not given back comes again, so it is told by its tag.
    for book_kills in [0, 10] {
        let place = Place::new("orders-killed");
        let file = place.0.join("book");
        let book = ["book", file.to_str().unwrap()];
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (place, stop) = (&place, &stop);
            scope.spawn(|| always(place, &["feed", &count], 10, stop));
            scope.spawn(|| always(place, &book, book_kills, stop));
            let deadline = Instant::now() + Duration::from_secs(120);
            while booked(&file).last() != Some(&(COUNT as u64)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
            // More restarts of a feed that has nothing left to send.
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
        });
        let mut numbers = booked(&file);
        if book_kills == 0 {
            assert_eq!(numbers.len(), COUNT, "sent twice, or lost");
        }
        numbers.dedup();
        assert!(numbers == (1..=COUNT as u64).collect::<Vec<_>>(), "out of order, lost, or sent again");
        assert_eq!(place.names(), ["book", "orders"], "the ring is persistent");
    }
}

#[test]
fn an_order_that_is_not_written_down_comes_again() {
    let place = Place::new("orders-full");
    place.start(ORDERS, &["feed", "3"]).text();
    let full = place.start(ORDERS, &["book", "/dev/full"]).output();
    assert_eq!(full.status.code(), Some(1));
    let said = String::from_utf8(full.stderr).unwrap();
    assert_eq!(said, "orders: order 1 was not written: No space left on device (os error 28)\n");
    let file = place.0.join("book");
    place.start(ORDERS, &["book", file.to_str().unwrap()]).text();
    assert_eq!(booked(&file), [1, 2, 3]);
}

#[test]
fn the_guide_shows_the_programs_that_are_tested() {
    let guide = include_str!("../../docs/INTEGRATION.md");
    let source = include_str!("../src/bin/orders.rs");
    for name in ["feed", "book"] {
        let begin = format!("// guide: {name}\n");
        let block = source.split(&begin).nth(1).unwrap().split("// guide: end").next().unwrap();
        assert!(guide.contains(block), "{name} of examples/src/bin/orders.rs is not what docs/INTEGRATION.md shows");
    }
}
