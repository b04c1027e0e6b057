//! Status numbers, the last error of each thread, and the wall that no panic passes.

use ramway_core::{Error, ErrorKind};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use crate::facts::ramway_status;
use ramway_status::*;

/// Why a call fails, before it is turned into a status and a message.
#[derive(Debug)]
pub(crate) enum Failure {
    Core(Error),
    Own(ramway_status, String),
    /// Without a text of its own: for what a hot loop meets.
    Plain(ramway_status),
    /// Likewise, with the number of lost messages.
    Lagged(u64),
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<ErrorKind> for Failure {
    fn from(kind: ErrorKind) -> Self {
        Self::Plain(kind.into())
    }
}

pub(crate) fn invalid(text: impl Into<String>) -> Failure {
    Failure::Own(RAMWAY_INVALID_ARGUMENT, text.into())
}

/// The failure of a pointer that is null and may not be.
#[cold]
pub(crate) fn null(what: &str) -> Failure {
    invalid(format!("{what} is a null pointer"))
}

thread_local! {
    // Without a destructor, so that reading and writing them can neither allocate nor fail.
    static STATUS: Cell<c_int> = const { Cell::new(0) };
    static ERRNO: Cell<c_int> = const { Cell::new(0) };
    static LOST: Cell<u64> = const { Cell::new(0) };
    static HAS_TEXT: Cell<bool> = const { Cell::new(false) };
    static TEXT: RefCell<CString> = RefCell::new(CString::default());
}

fn remember(failure: Failure) -> ramway_status {
    LOST.set(match &failure {
        Failure::Lagged(lost) => *lost,
        Failure::Core(error) => error.lost().unwrap_or(0),
        Failure::Own(..) | Failure::Plain(_) => 0,
    });
    let (status, errno, text) = match failure {
        Failure::Lagged(_) => (RAMWAY_LAGGED, 0, None),
        Failure::Plain(status) => (status, 0, None),
        Failure::Own(status, text) => (status, 0, Some(text)),
        Failure::Core(error) => (error.kind().into(), error.raw_os_error().unwrap_or(0), Some(error.to_string())),
    };
    STATUS.set(status as c_int);
    ERRNO.set(errno);
    // A thread that is ending may have destroyed its text: then the status's own text has to do.
    let kept = text.is_some_and(|text| {
        let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
        TEXT.try_with(|slot| *slot.borrow_mut() = text).is_ok()
    });
    HAS_TEXT.set(kept);
    status
}

fn panicked(cause: Box<dyn std::any::Any + Send>) -> ramway_status {
    let text = cause
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| cause.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    // Dropping a panic's payload may panic itself.
    std::mem::forget(cause);
    remember(Failure::Own(
        RAMWAY_OS,
        format!("a bug in Ramway, please report it; do not use this handle again: {text}"),
    ))
}

/// Runs a call: its failure becomes a status and this thread's last error, and so does a panic.
pub(crate) fn guard(call: impl FnOnce() -> Outcome) -> ramway_status {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => RAMWAY_OK,
        Ok(Err(failure)) => remember(failure),
        Err(cause) => panicked(cause),
    }
}

/// [`guard`] for calls that a loop makes again and again: the outcomes that such a loop meets get no text, and so
/// no allocation. (The core gives them none there either.)
#[inline]
pub(crate) fn guard_hot(call: impl FnOnce() -> Outcome) -> ramway_status {
    guard(|| {
        call().map_err(|failure| match failure {
            Failure::Core(error)
                if matches!(error.kind(), ErrorKind::Full | ErrorKind::Empty | ErrorKind::TimedOut) =>
            {
                error.kind().into()
            }
            Failure::Core(error) if error.lost().is_some() => Failure::Lagged(error.lost().unwrap_or(0)),
            other => other,
        })
    })
}

/// [`guard`] for calls that give a number: `otherwise` if they fail.
pub(crate) fn guard_value<T: Copy>(otherwise: T, call: impl FnOnce() -> Outcome<T>) -> T {
    let mut value = otherwise;
    guard(|| {
        value = call()?;
        Ok(())
    });
    value
}

/// Puts what `make` gives into `*out`, which is null before, and stays so if it fails.
///
/// # Safety
/// `out` is null, which is a failure, or writable.
pub(crate) unsafe fn give<T>(out: *mut *mut T, make: impl FnOnce() -> Outcome<*mut T>) -> Outcome {
    // SAFETY: the caller's.
    let out = unsafe { out.as_mut() }.ok_or_else(|| null("out"))?;
    *out = std::ptr::null_mut();
    *out = make()?;
    Ok(())
}

/// One sentence for a status number, in English, forever valid. Never null: an unknown number says that it is one.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_strerror(status: c_int) -> *const c_char {
    strings_of(status).1.as_ptr()
}

/// The name of a status number as the documentation spells it, `"PeerDead"` for example, forever valid. Never null.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_status_name(status: c_int) -> *const c_char {
    strings_of(status).0.as_ptr()
}

/// What the last failed call of the calling thread has to say: what was tried, on which name, what was expected and
/// what to do. Never null. Valid until the next call that fails in this thread. Calls that succeed leave it alone, so
/// read it only after a failure.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_last_error() -> *const c_char {
    if HAS_TEXT.get()
        && let Ok(text) = TEXT.try_with(|text| text.borrow().as_ptr())
    {
        return text;
    }
    strings_of(STATUS.get()).1.as_ptr()
}

/// The status of the last failed call of the calling thread, for calls that return something else; `RAMWAY_OK` if
/// none has failed.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_last_status() -> ramway_status {
    match ErrorKind::from_code(STATUS.get()) {
        Some(kind) => kind.into(),
        None => RAMWAY_OK,
    }
}

/// The operating system's `errno` behind the last failed call of the calling thread, 0 if it had no part in it.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_last_errno() -> c_int {
    ERRNO.get()
}

/// How many messages were lost, where the last failed call of the calling thread was `RAMWAY_LAGGED`; else 0.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_last_lost() -> u64 {
    LOST.get()
}

/// The name and the text of a status number.
const fn strings_of(status: c_int) -> (&'static CStr, &'static CStr) {
    match ErrorKind::from_code(status) {
        Some(kind) => kind.c_strings(),
        None if status == 0 => (c"Ok", c"success"),
        None => (c"Unknown", c"a status number that this version of Ramway does not know"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn str(text: *const c_char) -> &'static str {
        // SAFETY: the texts read here are constants.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap()
    }

    #[test]
    fn names_texts_and_numbers_are_the_cores() {
        for code in 1.. {
            let Some(kind) = ErrorKind::from_code(code) else {
                assert!(code > 19);
                break;
            };
            assert_eq!(ramway_status::from(kind) as c_int, code);
            assert_eq!(str(ramway_status_name(code)), kind.name());
            assert_eq!(str(ramway_strerror(code)), kind.to_string());
        }
        assert_eq!(str(ramway_status_name(-1)), "Unknown");
        assert!(str(ramway_strerror(c_int::MAX)).contains("does not know"));
        assert_eq!(str(ramway_strerror(0)), "success");
    }

    #[test]
    fn a_panic_becomes_a_status() {
        std::panic::set_hook(Box::new(|_| {}));
        let status = guard(|| panic!("seen {}", 1 + 1));
        let _ = std::panic::take_hook();
        assert_eq!(status, RAMWAY_OS);
        // SAFETY: valid until this thread's next failure.
        let text = unsafe { CStr::from_ptr(ramway_last_error()) }.to_str().unwrap();
        assert!(text.contains("seen 2"), "{text}");
        assert_eq!(ramway_last_status(), RAMWAY_OS);
    }

    #[test]
    fn the_last_error_is_each_threads_own_and_outlives_successes() {
        assert_eq!(guard(|| Err(invalid("this one"))), RAMWAY_INVALID_ARGUMENT);
        assert_eq!(guard(|| Ok(())), RAMWAY_OK);
        std::thread::spawn(|| assert_eq!(ramway_last_status(), RAMWAY_OK)).join().unwrap();
        // SAFETY: valid until this thread's next failure.
        assert_eq!(unsafe { CStr::from_ptr(ramway_last_error()) }, c"this one");
        assert_eq!(guard_hot(|| Err(ErrorKind::Full.into())), RAMWAY_FULL);
        assert_eq!(str(ramway_last_error()), "there is no room for this message now");
    }
}
