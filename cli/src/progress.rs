//! A progress bar on stderr, where that is a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::units::size;

/// Counts bytes and messages, and shows them where somebody looks.
pub struct Progress {
    bar: ProgressBar,
    begun: Instant,
    bytes: u64,
    messages: u64,
}

impl Progress {
    /// With a bar if the total is known. `hidden`: only counts.
    pub fn new(total: Option<u64>, hidden: bool) -> Self {
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(total, target);
        let template = match total {
            Some(_) => "{wide_bar} {bytes}/{total_bytes}  {binary_bytes_per_sec}  ETA {eta}",
            None => "{spinner} {bytes}  {binary_bytes_per_sec}  {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, begun: Instant::now(), bytes: 0, messages: 0 }
    }

    /// Adds what has just gone through.
    pub fn add(&mut self, bytes: u64, messages: u64) {
        if self.messages == 0 {
            // The rate is that of the stream, not of the wait for the other side.
            self.begun = Instant::now();
            self.bar.reset_elapsed();
        }
        self.bytes += bytes;
        self.messages += messages;
        self.bar.set_position(self.bytes);
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Messages so far.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Replaces the bar with one line that says what was done.
    pub fn finish(&self, done: &str) {
        let elapsed = self.begun.elapsed().max(Duration::from_micros(1));
        let rate = (self.bytes as f64 / elapsed.as_secs_f64()) as u64;
        if !self.bar.is_hidden() {
            self.bar.finish_and_clear();
            let line = format!(
                "{done} {} in {} message(s), {:.2} s, {}/s",
                size(self.bytes),
                self.messages,
                elapsed.as_secs_f64(),
                size(rate)
            );
            crate::output::note(&line);
        }
    }
}
