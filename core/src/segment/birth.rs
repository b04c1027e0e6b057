//! How a named segment comes into being: whole, or not at all.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::file::{FileId, check_file_system, dup, leads_to, open_regular, os, read_page};
use super::format::{format, validate};
use super::name::{Name, socket_of};
use super::named::{BYTE_IN_USE, Named, NamedLink, NamedOptions, Step, lock_description, retry};
use super::{HeaderMap, undelivered};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{HEADER_SIZE, Kind};
use crate::sys::fork::Entry;
use crate::sys::fs;
use crate::sys::lock::{self, Mode};
use crate::sys::mem::Access;
use crate::sys::placement::{self, PlacementOptions};
use crate::sys::socket;

/// A segment that is whole and locked but has no name yet.
pub(super) struct Unborn {
    named: Named,
    /// Where the file system knows no files without a name: what it is called meanwhile.
    dot_name: Option<DotName>,
}

pub(super) fn create_once(name: &Name, options: &NamedOptions<'_>, unborn: &mut Option<Box<Unborn>>) -> Result<Step> {
    check_file_system(name.dir(), options.allow_disk)?;
    if let Some(step) = make_way(name, options)? {
        return Ok(step);
    }
    let ready = match unborn.take() {
        Some(ready) => ready,
        None => match Unborn::build(name, options, true)? {
            Some(ready) => Box::new(ready),
            None => return Ok(retry("the new segment vanished before it had its name")),
        },
    };
    match ready.give_name(name) {
        Ok(named) => Ok(Step::Done(Box::new(named))),
        Err((Errno::EXIST, back)) => {
            *unborn = Some(back);
            Ok(retry("somebody else created the same name"))
        }
        // `clean` took the dot-name for a dead one's; or the directory is gone.
        Err((Errno::NOENT, _)) => Ok(retry("the new segment vanished before it had its name")),
        Err((e, _)) => Err(os(e, "giving the segment its name")),
    }
}

/// Removes a dead, empty segment that has the name. `None`: the name is free, as far as one can see.
fn make_way(name: &Name, options: &NamedOptions<'_>) -> Result<Option<Step>> {
    // Whatever is there and is not a dead segment takes the name, so here that is AlreadyExists.
    let taken = |e: Error| match e.kind() {
        ErrorKind::InvalidArgument | ErrorKind::AbiMismatch | ErrorKind::Corrupt => {
            Error::new(ErrorKind::AlreadyExists, format!("the name is taken: {e}"))
        }
        _ => e,
    };
    let Some((file, stat)) = open_regular(name.dir(), name.file(), Access::ReadWrite).map_err(taken)? else {
        return Ok(None);
    };
    let (page, size) = read_page(file.as_fd())?;
    let valid = validate(&page, size).map_err(taken)?;
    // A description of its own, so that a fork's child cannot keep the exclusive lock.
    let Some(entry) = lock_description(name, &stat, Access::ReadWrite)? else {
        return Ok(Some(retry("the name changed hands while it was looked at")));
    };
    if !lock::try_lock(entry.fd(0), BYTE_IN_USE, Mode::Exclusive)? {
        return match lock::held_by_another(entry.fd(0), BYTE_IN_USE)? {
            Some(Mode::Shared) => Err(Error::new(
                ErrorKind::AlreadyExists,
                match valid.header.kind {
                    Kind::Listener => "a live listener has this name; connect to it, or pick another name".into(),
                    kind => format!("a live {} has this name; open it, or pick another name", kind.name()),
                },
            )),
            _ => Ok(Some(retry("somebody was removing the segment"))),
        };
    }
    if !leads_to(name.dir(), name.file(), FileId::of(&stat)) {
        return Ok(Some(retry("the name changed hands while it was looked at")));
    }
    if !valid.header.is_of_another_boot()
        && !options.discard
        && let Some(reason) = undelivered::reason_to_keep(file.as_fd(), &valid)?
    {
        let advice = if reason.damaged { "nobody can resume it" } else { "open_or_create resumes it" };
        let text = format!("{}; {advice}, discard starts anew", reason.text);
        return Err(Error::new(ErrorKind::AlreadyExists, text));
    }
    remove(name, valid.header.kind).map_err(|e| os(e, "removing the dead segment"))?;
    Ok(None)
}

/// Unlinks a segment's name, and a dead listener's socket with it: one where nobody listens. The caller holds byte 0
/// exclusively.
pub(crate) fn remove(name: &Name, kind: Kind) -> Result<(), Errno> {
    if kind == Kind::Listener {
        let dir_path = name.path().parent().unwrap_or(Path::new("."));
        // What stays is not ours, and no reason to keep the segment.
        let _ = socket::remove_dead(name.dir(), dir_path.as_os_str(), &socket_of(name.file()));
    }
    unlink(name.dir(), name.file())
}

/// Unlinks a segment's name; that it is gone already is fine.
pub(super) fn unlink(dir: BorrowedFd<'_>, file: &OsStr) -> Result<(), Errno> {
    match fs::unlink(dir, file) {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}

/// How a segment is called while it is being made where every file needs a name: `.ramway-<16 hex digits>.new`.
pub(crate) fn is_dot_name(name: &OsStr) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let middle = name.as_bytes().strip_prefix(b".ramway-").and_then(|rest| rest.strip_suffix(b".new"));
    middle.is_some_and(|hex| hex.len() == 16 && hex.iter().all(u8::is_ascii_hexdigit))
}

impl Unborn {
    fn build(name: &Name, options: &NamedOptions<'_>, may_be_unnamed: bool) -> Result<Option<Self>> {
        let spec = options.spec.as_ref().expect("whoever may create says what");
        // Without /proc or the file system's help a file cannot be opened twice, or named, but by a name.
        let unnamed = fs::create_unnamed(name.dir()).ok().filter(|f| may_be_unnamed && fs::reopen(f.as_fd()).is_ok());
        let (file, dot_name) = match unnamed {
            Some(file) => (file, None),
            None => {
                let dir = dup(name.dir())?;
                let dot_name = OsString::from(format!(".ramway-{:016x}.new", fs::random()));
                let file = fs::create_new(name.dir(), &dot_name).map_err(|e| os(e, "making a file"))?;
                (file, Some(DotName { dot_name, dir: Some(dir) }))
            }
        };
        let stat = fs::stat(&file).map_err(|e| os(e, "looking at the new file"))?;
        let mut vanished = false;
        let entry = Entry::open(|| {
            let lock = match &dot_name {
                Some(guard) => fs::open_at(name.dir(), &guard.dot_name, Access::ReadWrite),
                None => fs::reopen(file.as_fd()),
            };
            vanished = matches!(lock, Err(Errno::NOENT));
            Ok(if vanished {
                Vec::new()
            } else {
                vec![lock.map_err(|e| os(e, "opening the new file a second time"))?, dup(name.dir())?]
            })
        })?;
        // Locked before it is filled in. `clean`, which takes away what has a dot-name and no lock, may be faster.
        if vanished || !lock::try_lock(entry.fd(0), BYTE_IN_USE, Mode::Shared)? {
            return Ok(None);
        }
        let mut link = NamedLink::new(entry.clone(), name, &stat);
        if let Some(byte) = options.role_byte {
            link.take_role(byte, options.kind)?;
        }
        fs::chmod(file.as_fd(), options.mode).map_err(|e| os(e, "setting the file's mode"))?;
        placement::allocate(file.as_fd(), 0, HEADER_SIZE as u64, &PlacementOptions::default())?;
        for geometry in spec.blocks.iter().flatten() {
            placement::allocate(file.as_fd(), geometry.data_offset, geometry.capacity, &options.placement)?;
        }
        rustix::fs::ftruncate(&file, spec.size).map_err(|e| os(e, "sizing the file"))?;
        let page = format(spec);
        fs::write_at(file.as_fd(), 0, &page.0[..]).map_err(|e| os(e, "writing the header page"))?;
        let valid = validate(&page, spec.size)?;
        let header = Arc::new(HeaderMap::map(file.as_fd(), Access::ReadWrite)?);
        Ok(Some(Self { named: Named { file, header, valid, link, entry }, dot_name }))
    }

    /// Makes the segment appear under its name, or hands it back.
    fn give_name(mut self, name: &Name) -> std::result::Result<Named, (Errno, Box<Self>)> {
        let done = match &self.dot_name {
            None => fs::link_unnamed(self.named.file.as_fd(), name.dir(), name.file()),
            Some(guard) => fs::rename_new(name.dir(), &guard.dot_name, name.file()),
        };
        match done {
            Ok(()) => {
                if let Some(guard) = &mut self.dot_name {
                    guard.dir = None;
                }
                Ok(self.named)
            }
            Err(e) => Err((e, Box::new(self))),
        }
    }
}

/// Removes the interim name unless the segment has got its own (then `dir` is `None`).
struct DotName {
    dot_name: OsString,
    dir: Option<OwnedFd>,
}

impl Drop for DotName {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            let _ = fs::unlink(dir.as_fd(), &self.dot_name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::format::Spec;
    use crate::segment::named::{BYTE_LISTENER, BYTE_PRODUCER, Intent, named};
    use crate::segment::survey::{CleanOptions, Outcome, clean};
    use crate::sys::mem::page_size;

    struct Dir(std::path::PathBuf);

    impl Dir {
        fn new(name: &str) -> Self {
            let path = std::path::PathBuf::from(format!("/dev/shm/ramway-unit-{}-{name}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<OsString> {
            std::fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name()).collect()
        }

        fn cleaned(&self) -> Vec<Outcome> {
            clean(&self.0, &CleanOptions::default()).unwrap().into_iter().map(|(_, o)| o.unwrap()).collect()
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn options() -> NamedOptions<'static> {
        NamedOptions {
            intent: Intent::Create,
            kind: Kind::Ring,
            spec: Some(Spec::ring(4096, 16, page_size()).unwrap().named()),
            check: &|_| Ok(()),
            role_byte: Some(BYTE_PRODUCER),
            access: Access::ReadWrite,
            discard: false,
            mode: 0o600,
            timeout: std::time::Duration::ZERO,
            go_on: &|| true,
            allow_disk: false,
            placement: PlacementOptions::default(),
        }
    }

    /// Where every file needs a name: the same life under a dot-name that nobody takes for a segment.
    #[test]
    fn born_under_a_dot_name() {
        let dir = Dir::new("dot");
        let name = Name::resolve(dir.0.join("ring").as_os_str(), true).unwrap();
        let unborn = Unborn::build(&name, &options(), false).unwrap().unwrap();
        assert!(dir.names().len() == 1 && is_dot_name(&dir.names()[0]));
        assert_eq!(dir.cleaned(), [Outcome::Kept("in use".into())], "a creator that lives");
        let Ok(named) = unborn.give_name(&name) else { panic!("the name is free") };
        assert_eq!(dir.names(), ["ring"]);
        let second = Unborn::build(&name, &options(), false).unwrap().unwrap();
        let Err((Errno::EXIST, second)) = second.give_name(&name) else { panic!("the name is taken") };
        drop(second);
        assert_eq!(dir.names(), ["ring"]);
        drop(named);
        assert!(dir.names().is_empty());
    }

    #[test]
    fn clean_takes_what_a_killed_creator_left_and_no_other_dot_file() {
        let dir = Dir::new("left");
        let page = format(options().spec.as_ref().unwrap());
        std::fs::write(dir.0.join(".ramway-0123456789abcdef.new"), b"").unwrap();
        std::fs::write(dir.0.join(".ramway-1123456789abcdef.new"), [0; 5000]).unwrap();
        std::fs::write(dir.0.join(".ramway-2123456789abcdef.new"), &page.0[..]).unwrap();
        std::fs::write(dir.0.join(".ramway-3123456789abcdef.new"), b"not ours").unwrap();
        std::fs::write(dir.0.join(".ramway-3123456789abcde.new"), b"").unwrap();
        std::fs::write(dir.0.join(".hidden"), b"").unwrap();
        assert_eq!(dir.cleaned(), [Outcome::Removed, Outcome::Removed, Outcome::Removed, Outcome::NotRamway]);
        assert_eq!(dir.names().len(), 3);
    }

    /// `clean` is faster than the creator: it starts over instead of publishing a file that is gone.
    #[test]
    fn a_dot_name_that_vanishes_is_made_again() {
        let dir = Dir::new("vanish");
        let name = Name::resolve(dir.0.join("ring").as_os_str(), true).unwrap();
        let unborn = Unborn::build(&name, &options(), false).unwrap().unwrap();
        std::fs::remove_file(dir.0.join(&dir.names()[0])).unwrap();
        assert!(matches!(unborn.give_name(&name), Err((Errno::NOENT, _))));
        named(dir.0.join("ring").as_os_str(), &options()).unwrap();
    }

    #[test]
    fn a_dead_listener_goes_with_its_socket_and_with_nothing_else() {
        let dir = Dir::new("listener");
        let at = |name: &str| dir.0.join(name);
        let listener = || {
            let spec = Spec::listener().named();
            let o =
                NamedOptions { kind: Kind::Listener, spec: Some(spec), role_byte: Some(BYTE_LISTENER), ..options() };
            named(at("bell").as_os_str(), &o).unwrap()
        };
        // As a listener that was killed leaves it: the last one out of a living one removes the segment alone.
        let dead = || {
            let living = listener();
            std::fs::rename(at("bell"), at("away")).unwrap();
            drop(living);
            std::fs::rename(at("away"), at("bell")).unwrap();
        };
        // A process that another test starts meanwhile may have the socket open a little longer.
        let close = |socket: std::os::unix::net::UnixListener| {
            drop(socket);
            while std::os::unix::net::UnixStream::connect(at("bell.sock")).is_ok() {
                std::thread::yield_now();
            }
        };
        let living = listener();
        close(std::os::unix::net::UnixListener::bind(at("bell.sock")).unwrap());
        assert_eq!(dir.cleaned(), [Outcome::Kept("in use".into())]);
        drop(living);
        assert_eq!(dir.names(), ["bell.sock"]);
        dead();
        assert_eq!(dir.cleaned(), [Outcome::Removed]);
        assert!(dir.names().is_empty());
        // Somebody listens there, or it is no socket at all.
        let other = std::os::unix::net::UnixListener::bind(at("bell.sock")).unwrap();
        dead();
        assert_eq!(dir.cleaned(), [Outcome::Removed]);
        assert_eq!(dir.names(), ["bell.sock"]);
        close(other);
        std::fs::remove_file(at("bell.sock")).unwrap();
        std::fs::write(at("bell.sock"), b"a file of somebody's").unwrap();
        dead();
        assert_eq!(dir.cleaned(), [Outcome::Removed, Outcome::NotRamway]);
        assert_eq!(dir.names(), ["bell.sock"]);
    }
}
