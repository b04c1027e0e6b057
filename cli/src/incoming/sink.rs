//! Where received bytes go: straight from the ring to a descriptor.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, IsTerminal, Write};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::fs::OFlags;

use crate::failure::{ERROR, Failure, Outcome};
use crate::interrupt::{Interrupt, SLICE};
use crate::output;
use crate::standard;

/// No more slices than this go into one call (the kernel's limit).
const SLICES: usize = 1024;

/// A descriptor, and the place that it takes in the end.
pub struct Sink {
    file: File,
    name: String,
    /// The file that is written and the one that it replaces.
    replaces: Option<(PathBuf, PathBuf)>,
    /// A write may block for long: a pipe, a terminal, a device.
    may_block: bool,
}

impl Sink {
    /// Standard output for `-`, a new `PATH.part` where PATH is a regular file or nothing, else PATH itself.
    pub fn open(path: &Path, interrupt: &Interrupt) -> Outcome<Self> {
        if path.as_os_str() == "-" {
            standard::output()?;
            let fd = io::stdout().as_fd().try_clone_to_owned();
            let file: File = fd.map_err(|error| Failure::io(&error, "cannot write to standard output"))?.into();
            let may_block = !file.metadata().is_ok_and(|metadata| metadata.is_file());
            let file = without_blocking(file);
            return Ok(Self { file, name: "standard output".into(), replaces: None, may_block });
        }
        standard::output_at(path)?;
        let name = path.display().to_string();
        let cannot = |error: io::Error| Failure::io(&error, format!("cannot write {name}"));
        // A link is followed: what it leads to is replaced, not the link.
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
            Err(error) => return Err(cannot(error)),
        };
        match fs::metadata(&target) {
            Ok(metadata) if metadata.is_dir() => Err(Failure::error(format!("cannot write {name}: it is a directory"))),
            Ok(metadata) if !metadata.is_file() => {
                let file = open_special(&target, metadata.file_type().is_fifo(), interrupt, cannot)?;
                Ok(Self { file, name, replaces: None, may_block: true })
            }
            existing => {
                let (file, part) = part(&target).map_err(cannot)?;
                if let Ok(metadata) = existing {
                    // The new file is as readable as the old one; where that is refused it stays as umask made it.
                    let _ = file.set_permissions(metadata.permissions());
                }
                Ok(Self { file, name, replaces: Some((part, target)), may_block: false })
            }
        }
    }

    /// Whether a progress bar would get between the bytes.
    pub fn is_terminal(&self) -> bool {
        self.file.is_terminal()
    }

    /// Writes all of the messages. Gives how many bytes and messages they were.
    pub fn write<M: Deref<Target = [u8]>>(
        &mut self,
        interrupt: &Interrupt,
        messages: impl Iterator<Item = M>,
    ) -> Outcome<(u64, u64)> {
        let (mut bytes, mut count) = (0, 0);
        let mut held: Vec<M> = Vec::with_capacity(SLICES);
        let mut messages = messages.peekable();
        while messages.peek().is_some() {
            held.clear();
            held.extend(messages.by_ref().take(SLICES));
            let mut slices: Vec<IoSlice<'_>> = held.iter().map(|message| IoSlice::new(message)).collect();
            count += held.len() as u64;
            bytes += slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
            self.write_slices(interrupt, &mut slices)?;
        }
        Ok((bytes, count))
    }

    fn write_slices(&mut self, interrupt: &Interrupt, mut slices: &mut [IoSlice<'_>]) -> Outcome {
        // Slices of length 0 at the front would make a write of 0 bytes, which looks like an error.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            if self.may_block {
                interrupt.check()?;
                match interrupt.ready(self.file.as_fd(), PollFlags::OUT, SLICE) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => return Err(self.failure(&error)),
                }
            }
            match self.file.write_vectored(slices) {
                Ok(0) => return Err(self.failure(&io::ErrorKind::WriteZero.into())),
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
                Err(error) => return Err(self.failure(&error)),
            }
        }
        Ok(())
    }

    fn failure(&self, error: &io::Error) -> Failure {
        match error.kind() {
            // The reader has gone, which it will have told its user; the exit code tells ours.
            io::ErrorKind::BrokenPipe => Failure::new(ERROR, format!("{} was closed by its reader", self.name)),
            _ => Failure::io(error, format!("cannot write {}", self.name)),
        }
    }

    /// Everything has been written: the file takes its place.
    pub fn keep(&mut self) -> Outcome {
        if let Some((part, target)) = &self.replaces {
            let moved = fs::rename(part, target);
            moved.map_err(|error| Failure::io(&error, format!("cannot rename {} to {}", part.display(), self.name)))?;
            self.replaces = None;
        }
        Ok(())
    }

    /// The stream broke off: an empty file goes, another one is named.
    pub fn leave(&mut self, bytes: u64) {
        if let Some((part, _)) = self.replaces.take() {
            if bytes == 0 && self.file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
                let _ = fs::remove_file(&part);
            } else {
                output::note(&format!("what came so far is in {}", part.display()));
            }
        }
    }
}

/// How often a FIFO is tried that nobody reads yet.
const TRY: Duration = Duration::from_millis(20);

/// Opens what is no regular file so that no call on it blocks: a signal ends every wait. A FIFO is waited for until
/// somebody reads it.
fn open_special(
    path: &Path,
    is_fifo: bool,
    interrupt: &Interrupt,
    cannot: impl Fn(io::Error) -> Failure,
) -> Outcome<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    loop {
        interrupt.check()?;
        match OpenOptions::new().write(true).custom_flags(flags.bits() as i32).open(path) {
            Err(error) if is_fifo && error.raw_os_error() == Some(libc::ENXIO) => std::thread::sleep(TRY),
            opened => return opened.map_err(&cannot),
        }
    }
}

/// A pipe or terminal as standard output once more, opened so that a write does not block where it is full. The descriptor
/// that this process got is not changed: others share it. What cannot be opened again stays as it is.
fn without_blocking(file: File) -> File {
    if !file.is_terminal() && !file.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        return file;
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let again = OpenOptions::new().write(true).custom_flags(flags.bits() as i32).open("/dev/fd/1");
    match (again.and_then(|again| Ok((again.metadata()?, again))), file.metadata()) {
        (Ok((new, again)), Ok(old)) if same(&new, &old) => again,
        _ => file,
    }
}

fn same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// A new file beside `target` that no earlier receiver has left: `target.part`, else `target.part2` and so on.
fn part(target: &Path) -> io::Result<(File, PathBuf)> {
    for number in 1.. {
        let mut name = target.as_os_str().to_owned();
        name.push(if number == 1 { ".part".to_owned() } else { format!(".part{number}") });
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {}
            opened => return Ok((opened?, name.into())),
        }
    }
    unreachable!("the loop has no end")
}
