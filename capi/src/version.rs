//! Which library this is.

use std::ffi::c_char;

/// The library's version, `"0.2.0"` for example, forever valid.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
