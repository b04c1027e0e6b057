//! Commands as lines: `word key=value key=value ...`.

use std::collections::HashMap;
use std::io::BufRead;
use std::str::FromStr;
use std::time::{Duration, Instant};

use ramway::{ErrorKind, Result, WaitPolicy};

use crate::Stop;

/// A command. What a command does not take out of it is refused.
pub(crate) struct Line {
    pub(crate) word: String,
    fields: HashMap<String, String>,
}

impl Line {
    /// The next line of standard input; `None` when that ends.
    pub(crate) fn next() -> Option<Self> {
        let mut text = String::new();
        // An input that cannot be read is one that has ended.
        std::io::stdin().lock().read_line(&mut text).ok().filter(|&len| len > 0)?;
        let mut words = text.split_whitespace();
        let word = words.next().unwrap_or_default().to_owned();
        let field = |field: &str| {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            (key.to_owned(), value.to_owned())
        };
        Some(Self { word, fields: words.map(field).collect() })
    }

    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        self.fields.remove(key)
    }

    /// A value that is parsed.
    pub(crate) fn maybe<T: FromStr>(&mut self, key: &str) -> std::result::Result<Option<T>, Stop> {
        let parse = |text: String| text.parse().map_err(|_| Stop::Refused(format!("{key}={text}")));
        self.text(key).map(parse).transpose()
    }

    pub(crate) fn get<T: FromStr>(&mut self, key: &str, otherwise: T) -> std::result::Result<T, Stop> {
        Ok(self.maybe(key)?.unwrap_or(otherwise))
    }

    pub(crate) fn need<T: FromStr>(&mut self, key: &str) -> std::result::Result<T, Stop> {
        self.maybe(key)?.ok_or_else(|| Stop::Refused(format!("{key} is missing")))
    }

    pub(crate) fn yes(&mut self, key: &str) -> bool {
        self.text(key).is_some_and(|value| value == "yes")
    }

    pub(crate) fn wait(&mut self) -> std::result::Result<WaitPolicy, Stop> {
        match self.text("wait").as_deref() {
            None | Some("hybrid") => Ok(WaitPolicy::Hybrid),
            Some("spin") => Ok(WaitPolicy::Spin),
            Some("block") => Ok(WaitPolicy::Block),
            Some(other) => Err(Stop::Refused(format!("wait={other}"))),
        }
    }

    /// `timeout` and `poll`.
    pub(crate) fn limits(&mut self) -> std::result::Result<Limits, Stop> {
        let whole = Some(self.get("timeout", 20_000)?).filter(|&ms| ms > 0).map(Duration::from_millis);
        Ok(Limits { whole, poll: self.maybe("poll")?.map(Duration::from_micros) })
    }

    /// Nothing else was said.
    pub(crate) fn end(self) -> std::result::Result<(), Stop> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(key) => Err(Stop::Refused(format!("{} does not know {key}", self.word))),
        }
    }
}

/// How long a wait may last.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// `None` is without a limit.
    pub(crate) whole: Option<Duration>,
    /// A wait is a loop of calls with this time-out.
    pub(crate) poll: Option<Duration>,
}

impl Limits {
    /// The time-out of one call.
    pub(crate) fn call(self) -> Option<Duration> {
        self.poll.or(self.whole)
    }

    /// A call, with `poll` again and again for as long as a wait may last.
    pub(crate) fn wait<T>(self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        let began = Instant::now();
        loop {
            let outcome = call();
            let again = matches!(&outcome, Err(cause) if cause.kind() == ErrorKind::TimedOut)
                && self.poll.is_some()
                && self.whole.is_none_or(|whole| began.elapsed() < whole);
            if !again {
                return outcome;
            }
        }
    }
}
