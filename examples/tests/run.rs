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
    for program in [LOG_TAIL, FRAMES, KEY_VALUE, CONFIG, SUPERVISE, MARKET, WAVES, ORDERS, ROBOT, SETTINGS, METERS] {
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

const ROBOT: &str = env!("CARGO_BIN_EXE_robot");

/// What a child prints, as a file that can be read while it runs.
fn start_into(place: &Place, file: &str, program: &str, arguments: &[&str]) -> Running {
    let file = fs::File::create(place.0.join(file)).unwrap();
    Running(Some(place.command(program, arguments).stdout(file).stderr(Stdio::piped()).spawn().unwrap()))
}

/// The numbers in a text, in their order.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn a_viewer_that_is_stopped_holds_up_neither_the_camera_nor_the_controller() {
    use rustix::process::{Pid, Signal, kill_process};
    const RECORD: u64 = 8 + 64 * 64;
    /// More than the topic holds.
    const A_LAP: u64 = (1 << 20) / RECORD + 1;
    let place = Place::new("robot");
    let record = place.0.join("record");
    let recorder = ["recorder", "pictures", record.to_str().unwrap()];
    let recorded = || fs::metadata(&record).map_or(0, |file| file.len() / RECORD);
    let shown = |file: &str| fs::read_to_string(place.0.join(file)).unwrap();
    let start_camera = || {
        let mut command = place.command(ROBOT, &["camera", "pictures", "200"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().unwrap()))
    };

    let mut viewer = start_into(&place, "viewer", ROBOT, &["viewer", "pictures"]);
    let controller = place.start(ROBOT, &["controller", "pictures"]);
    let mut first_recorder = place.start(ROBOT, &recorder);
    let mut first_camera = start_camera();
    until("the viewer shows a picture", || shown("viewer").contains("first picture"));

    // The viewer is stopped, for at least three laps of the log. All that time the others go on.
    let pid = Pid::from_child(viewer.0.as_ref().unwrap());
    kill_process(pid, Signal::STOP).unwrap();
    let (begin, before) = (Instant::now(), recorded());
    until("the recorder goes on", || recorded() > before + 3 * A_LAP && begin.elapsed() > Duration::from_secs(1));

    // The recorder is killed and started again: the topic has kept for it what it had not released.
    first_recorder.kill();
    let second_recorder = place.start(ROBOT, &recorder);
    let before = recorded();
    until("the second recorder goes on", || recorded() > before + A_LAP);
    kill_process(pid, Signal::CONT).unwrap();
    until("the viewer says what it has missed", || shown("viewer").contains("missed"));

    // So is the camera. The second one goes on in the same topic, and closes when its standard input ends.
    first_camera.kill();
    let before = recorded();
    let mut second_camera = start_camera();
    until("the second camera's pictures come", || recorded() > before + 100);
    drop(second_camera.0.as_mut().unwrap().stdin.take());
    let drawn = second_camera.text();
    let drawn = numbers(&drawn)[0];

    let controlled = controller.text();
    assert!(controlled.starts_with(&format!("{drawn} pictures, 0 missed, ")), "{drawn} drawn: {controlled}");
    second_recorder.text();
    let record = fs::read(&record).unwrap();
    let written = record.chunks(RECORD as usize).map(|record| u64::from_le_bytes(record[..8].try_into().unwrap()));
    assert!(written.eq(1..=drawn), "each picture once, in its order");

    let end = viewer.0.take().unwrap().wait_with_output().unwrap();
    assert!(end.status.success(), "{}", String::from_utf8_lossy(&end.stderr));
    let told = shown("viewer");
    let last_line = told.lines().last().unwrap();
    let &[shown, missed, first, last] = numbers(last_line).as_slice() else { panic!("{last_line}") };
    let gaps: u64 = told.lines().filter(|line| line.starts_with("missed")).map(|line| numbers(line)[0]).sum();
    assert!(missed > 2 * A_LAP && missed == gaps, "{told}");
    assert_eq!((shown + missed, last), (last - first + 1, drawn), "{told}");
    assert_eq!(place.names(), ["record", "viewer"]);
}

const SETTINGS: &str = env!("CARGO_BIN_EXE_settings");

#[test]
fn eight_processes_read_the_newest_settings_while_a_writer_is_killed() {
    let place = Place::new("settings");
    let names: Vec<_> = (0..8).map(|number| format!("worker-{number}")).collect();
    let work = ["work", "settings", "stop"];
    let workers: Vec<_> = names.iter().map(|name| start_into(&place, name, SETTINGS, &work)).collect();
    let told = |name: &String| fs::read_to_string(place.0.join(name)).unwrap();
    let newest = || numbers(&place.start(SETTINGS, &["show", "settings"]).text())[0];
    for _ in 0..3 {
        let mut writer = place.start(SETTINGS, &["change", "settings", "1000000000"]);
        until("all eight read", || names.iter().all(|name| told(name).starts_with("begins with number ")));
        let before = newest();
        until("the settings change", || newest() > before);
        // At whatever instruction: nobody reads half of a change.
        writer.kill();
    }
    place.start(SETTINGS, &["set", "settings", "stop"]).text();
    for (name, worker) in names.iter().zip(workers) {
        worker.text();
        let told = told(name);
        assert!(told.ends_with(", each by whole settings\n"), "{told}");
        fs::remove_file(place.0.join(name)).unwrap();
    }
    // The newest ones stay when nobody runs.
    assert!(place.start(SETTINGS, &["show", "settings"]).text().ends_with(": stop\n"));
    assert_eq!(place.names(), ["settings"]);
}

const METERS: &str = env!("CARGO_BIN_EXE_meters");

#[test]
fn of_ten_meters_one_is_killed_and_nothing_that_was_sent_is_lost() {
    let place = Place::new("meters");
    let collector = place.start(METERS, &["collect", "meters", "10"]);
    let meters: Vec<_> = (0..9).map(|_| place.start(METERS, &["send", "meters", "20000"])).collect();
    let mut killed = start_into(&place, "killed", METERS, &["send", "meters", "1000000000"]);
    let sent = || numbers(&fs::read_to_string(place.0.join("killed")).unwrap()).last().copied().unwrap_or(0);
    until("the tenth meter has sent something", || sent() >= 3000);
    let pid = |meter: &Running| meter.0.as_ref().unwrap().id();
    let killed_pid = pid(&killed);
    killed.kill();
    let mut whole: Vec<_> =
        meters.iter().map(|meter| format!("process {}: 20000 readings, then it closed", pid(meter))).collect();
    for meter in meters {
        meter.text();
    }
    let told = collector.text();
    let prefix = format!("process {killed_pid}: ");
    let (of_killed, mut others): (Vec<_>, Vec<_>) = told.lines().partition(|line| line.starts_with(&prefix));
    let &[of_killed] = of_killed.as_slice() else { panic!("{told}") };
    assert!(of_killed.ends_with(" readings, then it was killed"), "{told}");
    assert!(numbers(of_killed)[1] >= sent(), "{} were sent: {told}", sent());
    whole.sort();
    others.sort_unstable();
    assert_eq!(others, whole);
    assert_eq!(place.names(), ["killed"]);
}

const RECONNECT: &str = env!("CARGO_BIN_EXE_reconnect");

#[test]
fn a_client_that_connects_again_books_nothing_twice_and_says_what_it_does_not_know() {
    let place = Place::new("reconnect");
    let till = place.0.join("booked");
    let in_the_till = || fs::metadata(&till).map_or(0, |metadata| metadata.len());
    let serve = || place.start(RECONNECT, &["serve", "till", till.to_str().unwrap()]);
    let mut server = serve();
    let client = place.start(RECONNECT, &["call", "till", "10000"]);
    for round in 1..=5 {
        until("the till is filled", || in_the_till() >= 1000 * round);
        server.kill();
        server = serve();
    }
    let said = client.text();
    let (booked, unknown) = said.trim_end().strip_suffix(" perhaps").unwrap().split_once(" booked, ").unwrap();
    let (booked, unknown): (u64, u64) = (booked.parse().unwrap(), unknown.parse().unwrap());
    assert_eq!(booked, 10_000);
    // One call is under way at a time: no more than one for each kill.
    assert!(unknown <= 5, "{said}");
    assert!((booked..=booked + unknown).contains(&in_the_till()), "{said}, and {} are in the till", in_the_till());
}

#[test]
fn the_guides_show_the_programs_that_are_tested() {
    let integration = ("docs/INTEGRATION.md", include_str!("../../docs/INTEGRATION.md"));
    let one_to_many = ("docs/guides/one-to-many.md", include_str!("../../docs/guides/one-to-many.md"));
    let rpc = ("docs/guides/rpc.md", include_str!("../../docs/guides/rpc.md"));
    let encodings = ("docs/guides/rpc-encodings.md", include_str!("../../docs/guides/rpc-encodings.md"));
    for ((page, text), program, source, count) in [
        (integration, "orders", include_str!("../src/bin/orders.rs"), 2),
        (one_to_many, "robot", include_str!("../src/bin/robot.rs"), 6),
        (one_to_many, "settings", include_str!("../src/bin/settings.rs"), 1),
        (one_to_many, "meters", include_str!("../src/bin/meters.rs"), 2),
        (rpc, "stock", include_str!("../rpc/stock.rs"), 1),
        (rpc, "reconnect", include_str!("../rpc/reconnect.rs"), 1),
        (encodings, "plain", include_str!("../rpc/distance/plain.rs"), 1),
        (encodings, "own", include_str!("../rpc/distance/own.rs"), 1),
        (encodings, "proto", include_str!("../rpc/distance/proto.rs"), 1),
        (encodings, "flat", include_str!("../rpc/distance/flat.rs"), 1),
    ] {
        let blocks: Vec<_> = source.split("// guide: ").skip(1).filter(|block| !block.starts_with("end\n")).collect();
        assert_eq!(blocks.len(), count, "{program}");
        for block in blocks {
            let (name, shown) = block.split_once('\n').unwrap();
            // Up to the line of the end.
            let shown = shown.trim_end();
            assert!(text.contains(shown), "{name} of {program}.rs is not what {page} shows");
        }
    }
}
