//! How a named segment is made: staged without its name until it is whole, and then named at once, or not at all.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::HeaderMap;
use super::file::{Found, check_file_system, dup};
use super::format::{Spec, format, validate};
use super::name::{self, Name};
use super::named::{Named, NamedLink, Request, Step, contended, moved, retry};
use super::stale::{Claim, Unused};
use crate::error::{Error, ErrorKind, Result};
use crate::facts::BYTE_IN_USE;
use crate::layout::{HEADER_SIZE, Kind};
use crate::sys::fork::Entry;
use crate::sys::fs::{self, FileId};
use crate::sys::lock::{self, Mode};
use crate::sys::mem::Access;
use crate::sys::os;
use crate::sys::placement::{self, PlacementOptions};

/// A segment that is whole and locked but has no name yet.
pub(super) struct Staged {
    named: Named,
    /// Where the file system knows no files without a name: what it is called meanwhile.
    interim: Option<InterimName>,
}

/// Makes `file` the segment that `spec` describes: takes its space, sizes it, writes the header page. The options are
/// about the data; the header page and a topic's subscribers' area are ordinary memory.
pub(super) fn fill(file: BorrowedFd<'_>, spec: &Spec, placement: &PlacementOptions) -> Result<()> {
    let ordinary = PlacementOptions::default();
    placement::allocate(file, 0, HEADER_SIZE as u64, &ordinary)?;
    if let Some(topic) = &spec.topic {
        placement::allocate(file, topic.subs_offset, topic.subs_len(), &ordinary)?;
        placement::allocate(file, topic.data_offset, topic.capacity, placement)?;
    }
    for geometry in spec.blocks.iter().flatten() {
        placement::allocate(file, geometry.data_offset, geometry.capacity, placement)?;
    }
    rustix::fs::ftruncate(file, spec.size).map_err(os("sizing the segment"))?;
    fs::write_at(file, 0, &format(spec).0[..]).map_err(os("writing the header page"))
}

/// Removes a stale segment that has the name. `None`: the name is free, as far as one can see.
fn make_way(name: &Name, request: &Request<'_>) -> Result<Option<Step>> {
    let exists = |text| Err(Error::new(ErrorKind::AlreadyExists, text));
    // What is there and is no stale segment takes the name, so here that is AlreadyExists.
    let taken = |e: Error| match e.kind() {
        ErrorKind::InvalidArgument | ErrorKind::AbiMismatch | ErrorKind::Corrupt => {
            Error::new(ErrorKind::AlreadyExists, format!("the name is taken: {e}"))
        }
        _ => e,
    };
    let Some(found) = Found::at(name, Access::ReadWrite).map_err(taken)? else { return Ok(None) };
    let (page, size) = found.read_page()?;
    let kind = validate(&page, size).map_err(taken)?.header.kind;
    let unused = match Unused::claim(name, &found)? {
        Claim::Unused(unused) => unused,
        Claim::Moved => return Ok(Some(moved())),
        Claim::Contended => return Ok(Some(contended())),
        Claim::InUse => {
            return exists(match kind {
                Kind::Listener => "a live listener has this name; connect to it, or pick another name".into(),
                kind => format!("a live {} has this name; open it, or pick another name", kind.name()),
            });
        }
    };
    if !request.options.discard
        && let Some(reason) = unused.reason_to_keep()?
    {
        let (text, resumable) = reason.describe(found.file.as_fd())?;
        let advice = if resumable { "open_or_create resumes it" } else { "nobody can resume it" };
        return exists(format!("{text}; {advice}, discard starts anew"));
    }
    unused.remove_with_socket(name, kind)?;
    Ok(None)
}

impl Staged {
    /// Makes a segment and names it. `staged` keeps it from one attempt to the next, while the name is taken.
    pub(super) fn create_once(name: &Name, request: &Request<'_>, staged: &mut Option<Box<Self>>) -> Result<Step> {
        check_file_system(name.dir(), request.options.allow_disk)?;
        if let Some(step) = make_way(name, request)? {
            return Ok(step);
        }
        let vanished = || retry("the new segment was removed before it had its name");
        let ready = match staged.take() {
            Some(ready) => ready,
            None => match Self::build(name, request, true)? {
                Some(ready) => Box::new(ready),
                None => return Ok(vanished()),
            },
        };
        match ready.give_name(name) {
            Ok(named) => Ok(Step::Done(Box::new(named))),
            Err((Errno::EXIST, back)) => {
                *staged = Some(back);
                Ok(retry("another process created the same name"))
            }
            // `clean` took the interim name for a dead one's; or the directory is gone.
            Err((Errno::NOENT, _)) => Ok(vanished()),
            Err((e, _)) => Err(os("giving the segment its name")(e)),
        }
    }

    /// `None`: `clean` was faster, and took the interim name away.
    fn build(name: &Name, request: &Request<'_>, may_be_unnamed: bool) -> Result<Option<Self>> {
        let spec = request.spec.as_ref().expect("a request that may create has a specification");
        // Without /proc or the file system's help a file cannot be opened twice, or named, but by a name.
        let unnamed = fs::create_unnamed(name.dir()).ok().filter(|f| may_be_unnamed && fs::reopen(f.as_fd()).is_ok());
        let (file, interim) = match unnamed {
            Some(file) => (file, None),
            None => {
                let dir = dup(name.dir())?;
                let name_meanwhile = name::new_staged();
                let file = fs::create_new(name.dir(), &name_meanwhile).map_err(os("making a file"))?;
                (file, Some(InterimName { name: name_meanwhile, dir: Some(dir) }))
            }
        };
        let stat = fs::stat(&file).map_err(os("checking the new file (fstat)"))?;
        let mut vanished = false;
        let entry = Entry::open(|| {
            let lock = match &interim {
                Some(interim) => fs::open_at(name.dir(), &interim.name, Access::ReadWrite),
                None => fs::reopen(file.as_fd()),
            };
            vanished = matches!(lock, Err(Errno::NOENT));
            Ok(if vanished {
                Vec::new()
            } else {
                vec![lock.map_err(os("opening the new file a second time, for its locks"))?, dup(name.dir())?]
            })
        })?;
        // Locked before it is filled in: `clean` takes away what has an interim name and no lock.
        if vanished || !lock::try_lock(entry.fd(0), BYTE_IN_USE, Mode::Shared)? {
            return Ok(None);
        }
        let mut link = NamedLink::new(entry, name, FileId::of(&stat));
        if let Some(byte) = request.role_byte {
            link.take_role(byte, request.kind)?;
        }
        fs::chmod(file.as_fd(), request.options.mode).map_err(os("setting the file's mode"))?;
        fill(file.as_fd(), spec, &request.options.placement)?;
        let valid = validate(&format(spec), spec.size)?;
        let header = Arc::new(HeaderMap::map(file.as_fd(), request.header_access())?);
        Ok(Some(Self { named: Named { file, header, valid, link }, interim }))
    }

    /// Makes the segment appear under its name, or hands it back.
    fn give_name(mut self, name: &Name) -> std::result::Result<Named, (Errno, Box<Self>)> {
        let done = match &self.interim {
            None => fs::link_unnamed(self.named.file.as_fd(), name.dir(), name.file()),
            Some(interim) => fs::rename_new(name.dir(), &interim.name, name.file()),
        };
        match done {
            Ok(()) => {
                if let Some(interim) = &mut self.interim {
                    interim.dir = None;
                }
                Ok(self.named)
            }
            Err(e) => Err((e, Box::new(self))),
        }
    }
}

/// Removes the interim name unless the segment has got its own (then `dir` is `None`).
struct InterimName {
    name: OsString,
    dir: Option<OwnedFd>,
}

impl Drop for InterimName {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            let _ = fs::unlink(dir.as_fd(), &self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{BYTE_LISTENER, BYTE_PRODUCER};
    use crate::segment::format::Spec;
    use crate::segment::named::named;
    use crate::segment::options::{Intent, SegmentOptions};
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

    fn with_request<R>(kind: Kind, run: impl FnOnce(&Request<'_>) -> R) -> R {
        let (spec, byte) = match kind {
            Kind::Listener => (Spec::listener(), BYTE_LISTENER),
            _ => (Spec::ring(4096, 16, page_size()).unwrap(), BYTE_PRODUCER),
        };
        run(&Request {
            intent: Intent::Create,
            kind,
            spec: Some(spec.named()),
            check: &|_| Ok(()),
            role_byte: Some(byte),
            access: Access::ReadWrite,
            options: &SegmentOptions::default(),
            go_on: &|| true,
        })
    }

    /// A segment with an interim name.
    fn staged(name: &Name) -> Staged {
        with_request(Kind::Ring, |request| Staged::build(name, request, false)).unwrap().unwrap()
    }

    fn create(path: std::path::PathBuf, kind: Kind) -> Named {
        with_request(kind, |request| named(path.as_os_str(), request)).unwrap()
    }

    /// Where every file needs a name: the same life under an interim name that nobody takes for a segment.
    #[test]
    fn staged_under_an_interim_name() {
        let dir = Dir::new("dot");
        let name = Name::resolve(dir.0.join("ring").as_os_str(), true).unwrap();
        let first = staged(&name);
        assert!(dir.names().len() == 1 && name::is_staged(&dir.names()[0]));
        assert_eq!(dir.cleaned(), [Outcome::Kept("in use".into())], "a creator that lives");
        let Ok(named) = first.give_name(&name) else { panic!("the name is free") };
        assert_eq!(dir.names(), ["ring"]);
        let second = staged(&name);
        let Err((Errno::EXIST, second)) = second.give_name(&name) else { panic!("the name is taken") };
        drop(second);
        assert_eq!(dir.names(), ["ring"]);
        drop(named);
        assert!(dir.names().is_empty());
    }

    #[test]
    fn clean_takes_what_a_killed_creator_left_and_no_other_dot_file() {
        let dir = Dir::new("left");
        let page = with_request(Kind::Ring, |request| format(request.spec.as_ref().unwrap()));
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
    fn an_interim_name_that_vanishes_is_made_again() {
        let dir = Dir::new("vanish");
        let name = Name::resolve(dir.0.join("ring").as_os_str(), true).unwrap();
        let lost = staged(&name);
        std::fs::remove_file(dir.0.join(&dir.names()[0])).unwrap();
        assert!(matches!(lost.give_name(&name), Err((Errno::NOENT, _))));
        create(dir.0.join("ring"), Kind::Ring);
    }

    #[test]
    fn a_dead_listener_goes_with_its_socket_and_with_nothing_else() {
        let dir = Dir::new("listener");
        let at = |name: &str| dir.0.join(name);
        let listener = || create(at("echo"), Kind::Listener);
        // As a listener that was killed leaves it: the last user of a living one removes the segment alone.
        let dead = || {
            let living = listener();
            std::fs::rename(at("echo"), at("away")).unwrap();
            drop(living);
            std::fs::rename(at("away"), at("echo")).unwrap();
        };
        // A process that another test starts meanwhile may have the socket open a little longer.
        let close = |socket: std::os::unix::net::UnixListener| {
            drop(socket);
            while std::os::unix::net::UnixStream::connect(at("echo.sock")).is_ok() {
                std::thread::yield_now();
            }
        };
        let living = listener();
        close(std::os::unix::net::UnixListener::bind(at("echo.sock")).unwrap());
        assert_eq!(dir.cleaned(), [Outcome::Kept("in use".into())]);
        drop(living);
        assert_eq!(dir.names(), ["echo.sock"]);
        dead();
        assert_eq!(dir.cleaned(), [Outcome::Removed]);
        assert!(dir.names().is_empty());
        // Somebody listens there, or it is no socket at all.
        let other = std::os::unix::net::UnixListener::bind(at("echo.sock")).unwrap();
        dead();
        assert_eq!(dir.cleaned(), [Outcome::Removed]);
        assert_eq!(dir.names(), ["echo.sock"]);
        close(other);
        std::fs::remove_file(at("echo.sock")).unwrap();
        std::fs::write(at("echo.sock"), b"a file of somebody's").unwrap();
        dead();
        assert_eq!(dir.cleaned(), [Outcome::Removed, Outcome::NotRamway]);
        assert_eq!(dir.names(), ["echo.sock"]);
    }
}
