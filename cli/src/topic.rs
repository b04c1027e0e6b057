//! What `pub` and `sub` both ask about the topic between them.

use std::path::PathBuf;

use ramway::layout::Kind;
use ramway::{Topic, TopicBuilder, survey};

use crate::failure::{self, Failure, Outcome};
use crate::units::{parse_mode, parse_some_size};

/// The library's names of the options that its errors speak of.
const OPTIONS: [&str; 5] = ["allow_disk", "lossy_only", "may_eject", "eject_after", "read_only"];

/// Either side may be the one that makes the topic.
const GEOMETRY: &str = "What the topic is if it is made, and has to be if it is there";

/// Which topic.
#[derive(clap::Args)]
pub struct TopicArgs {
    /// The topic's name (letters, digits, `.`, `_`, `-`), or a path to it with a `/`
    pub name: PathBuf,
    /// Bytes of the log, such as 64K or 1.5MiB, rounded up to a power of two; a message takes at most half of it
    /// [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = parse_some_size, help_heading = GEOMETRY)]
    capacity: Option<u64>,
    /// How many reliable subscribers there can be at a time, 1 to 1024 [default: 32]
    #[arg(long, value_name = "N", help_heading = GEOMETRY)]
    slots: Option<u32>,
    /// What each payload's address is a multiple of, in bytes: a power of two, 32 to 4096 [default: 32]
    #[arg(long, value_name = "BYTES", value_parser = parse_align, help_heading = GEOMETRY)]
    align: Option<u32>,
    /// It takes no reliable subscribers, so its publisher never waits
    #[arg(long, help_heading = GEOMETRY)]
    pub lossy_only: bool,
    /// Its publishers may eject reliable subscribers (--eject-after of `ramway pub`)
    #[arg(long, conflicts_with = "lossy_only", help_heading = GEOMETRY)]
    may_eject: bool,
    /// It stays, with its history, when its last user goes; `ramway unlink` removes it
    #[arg(long, help_heading = GEOMETRY)]
    persistent: bool,
    /// The permissions of its file in octal, such as 644; not compared if it is there [default: 600]
    #[arg(long, value_name = "MODE", value_parser = parse_mode, help_heading = GEOMETRY)]
    mode: Option<u32>,
    /// Take a topic on a disk's file system too, whose pages are written back
    #[arg(long)]
    allow_disk: bool,
    /// No progress bar, and nothing about lost messages
    #[arg(long, short)]
    pub quiet: bool,
}

impl TopicArgs {
    /// Opens or makes it, with `existing` only opens it, and takes a role: either side may come first.
    pub fn open<T>(&self, existing: bool, role: impl FnOnce(TopicBuilder) -> ramway::Result<T>) -> Outcome<T> {
        self.check_persistent()?;
        let mut topic = if existing { Topic::open(&self.name) } else { Topic::open_or_create(&self.name) };
        topic = topic.allow_disk(self.allow_disk).lossy_only(self.lossy_only).may_eject(self.may_eject);
        topic = topic.persistent(self.persistent);
        if let Some(capacity) = self.capacity {
            topic = topic.capacity(capacity);
        }
        if let Some(slots) = self.slots {
            topic = topic.slots(slots);
        }
        if let Some(align) = self.align {
            topic = topic.align(align);
        }
        if let Some(mode) = self.mode {
            topic = topic.mode(mode);
        }
        role(topic).map_err(|error| Failure::of_options(&error, &OPTIONS))
    }

    /// Fails if the topic is there and would go with its last user although it is to stay: the library compares that with
    /// nothing. Before it is opened: a publisher that comes and goes again would end its subscribers' stream.
    fn check_persistent(&self) -> Outcome {
        match survey::inspect(&self.name) {
            Ok(found)
                if self.persistent && !found.persistent && !found.of_another_boot && found.kind == Kind::Topic =>
            {
                let text = format!(
                    "the topic `{}` exists, and goes with its last user: --persistent is decided when a topic is made; leave it \
                     out to take what is there",
                    self.shown()
                );
                Err(Failure::new(failure::USAGE, text))
            }
            _ => Ok(()),
        }
    }

    /// The name as it was given, for messages.
    pub fn shown(&self) -> String {
        self.name.display().to_string()
    }
}

fn parse_align(text: &str) -> Result<u32, String> {
    u32::try_from(parse_some_size(text)?).map_err(|_| format!("`{text}` is too large"))
}
