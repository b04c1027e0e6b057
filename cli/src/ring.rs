//! What `send` and `recv` both ask about the ring between them.

use std::path::PathBuf;

use ramway::{Ring, RingBuilder};

use crate::units::parse_some_size;

/// Which ring.
#[derive(clap::Args)]
pub struct RingArgs {
    /// The ring's name (letters, digits, `.`, `_`, `-`), or a path to it with a `/`
    pub name: PathBuf,
    /// The ring's capacity if it is made, and what it has to be if it is there; rounded up to a power of two [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = parse_some_size)]
    pub capacity: Option<u64>,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

impl RingArgs {
    /// Opens or makes it: either side may come first.
    pub fn builder(&self) -> RingBuilder {
        let ring = Ring::open_or_create(&self.name);
        match self.capacity {
            Some(capacity) => ring.capacity(capacity),
            None => ring,
        }
    }
}
