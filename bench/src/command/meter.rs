//! How far a measurement has come.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ramway_bench::Progress;

/// A bar on stderr, where that is a terminal. Drawn only when it is told something, which is between two bursts: it has
/// no thread of its own that would wake up in the middle of one.
pub struct Meter(ProgressBar);

impl Meter {
    /// Shows nothing yet.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent:>3} %  ETA {eta}  {msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows this.
    pub fn show(&self, progress: &Progress) {
        self.0.set_length(progress.total);
        self.0.set_message(progress.label.clone());
        self.0.set_position(progress.done.min(progress.total));
    }

    /// Takes it away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
