//! What `send` and `recv` both ask about the ring between them.

use std::path::PathBuf;

use ramway::{Ring, RingBuilder};

use crate::failure::{Failure, Outcome};
use crate::units::parse_some_size;

/// Which ring.
#[derive(clap::Args)]
pub struct RingArgs {
    /// The ring's name (letters, digits, `.`, `_`, `-`), or a path to it with a `/`
    pub name: PathBuf,
    /// The ring's capacity if it is made, and what it has to be if it is there, such as 64K or 1.5MiB; rounded up to a
    /// power of two [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = parse_some_size)]
    pub capacity: Option<u64>,
    /// Take a ring on a disk's file system too, whose pages are written back
    #[arg(long)]
    pub allow_disk: bool,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

impl RingArgs {
    /// Opens or makes it and takes a role: either side may come first.
    pub fn open<T>(&self, role: impl FnOnce(RingBuilder) -> ramway::Result<T>) -> Outcome<T> {
        let mut ring = Ring::open_or_create(&self.name);
        if self.allow_disk {
            ring = ring.allow_disk(true);
        }
        if let Some(capacity) = self.capacity {
            ring = ring.capacity(capacity);
        }
        role(ring).map_err(|error| Failure::of_options(&error, &["allow_disk"]))
    }
}
