//! What is sent: a file or standard input, and where messages end in it.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::OFlags;

use crate::failure::{Failure, Outcome};
use crate::interrupt::{Interrupt, SLICE};
use crate::standard;

/// How often an idle sender checks that its receiver still lives.
const PEER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Where the bytes come from.
pub struct Input {
    file: File,
    /// Its path, or `standard input`.
    pub name: String,
    /// A regular file's length.
    pub length: Option<u64>,
    /// A progress bar would get between the lines that are typed.
    pub terminal: bool,
}

impl Input {
    /// Standard input for `-`.
    pub fn open(path: &Path) -> Outcome<Self> {
        if path.as_os_str() == "-" {
            standard::input()?;
            let fd = io::stdin().as_fd().try_clone_to_owned();
            let file: File = fd.map_err(|error| Failure::io(&error, "cannot read standard input"))?.into();
            let terminal = file.is_terminal();
            return Ok(Self { length: regular(&file), file, name: "standard input".into(), terminal });
        }
        standard::input_at(path)?;
        let name = path.display().to_string();
        // A FIFO that nobody writes yet is open at once like this: it is waited for where bytes are, with an eye on
        // signals.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path)
            .and_then(|file| {
                rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
                Ok(file)
            })
            .map_err(|error| Failure::io(&error, format!("cannot open {name}")))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(Failure::error(format!(
                "{name} is a directory: name a file, or pipe `tar c {name}` into this command"
            )));
        }
        Ok(Self { length: regular(&file), file, name, terminal: false })
    }

    /// Reads what there is, at least one byte unless the input has ended.
    pub fn read(&mut self, into: &mut [u8]) -> Outcome<usize> {
        loop {
            match self.file.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::io(&error, format!("cannot read {}", self.name))),
                Ok(count) => return Ok(count),
            }
        }
    }

    /// Waits until `read` would not block. A signal or a failure of `idle`, called about once a second, ends it.
    pub fn wait(&self, interrupt: &Interrupt, mut idle: impl FnMut() -> Outcome) -> Outcome {
        if self.length.is_some() {
            return interrupt.check();
        }
        let mut checked = Instant::now();
        loop {
            interrupt.check()?;
            match interrupt.ready(self.file.as_fd(), PollFlags::IN, SLICE) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => return Err(Failure::io(&error, format!("cannot wait for {}", self.name))),
            }
            if checked.elapsed() >= PEER_CHECK_INTERVAL {
                idle()?;
                checked = Instant::now();
            }
        }
    }
}

fn regular(file: &File) -> Option<u64> {
    file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len())
}

/// Where a message ends.
#[derive(Clone, Copy)]
pub enum Cut {
    /// After each newline.
    Lines,
    /// After this many bytes.
    Frames(usize),
}

impl Cut {
    /// The length of the first message in `bytes`, of which the first `searched` hold no line's end.
    pub fn first(self, bytes: &[u8], searched: usize) -> Option<usize> {
        match self {
            Self::Lines => memchr::memchr(b'\n', &bytes[searched..]).map(|at| searched + at + 1),
            Self::Frames(len) => (bytes.len() >= len).then_some(len),
        }
    }
}
