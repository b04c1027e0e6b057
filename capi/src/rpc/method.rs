//! Methods by name.

use crate::status::{Outcome, guard_value, invalid, null};
use ramway_core::rpc::method_id;
use std::ffi::{CStr, c_char};

/// The number of a method's name, UTF-8: FNV-1a of 32 bits, kept below `RAMWAY_METHOD_RESERVED`. The same in every language.
/// `UINT32_MAX`, which is no application's method, for a null pointer.
///
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_method_id(name: *const c_char) -> u32 {
    guard_value(u32::MAX, || {
        if name.is_null() {
            return Err(null("the name"));
        }
        // SAFETY: the caller's: a string that ends in a NUL.
        let name = unsafe { CStr::from_ptr(name) };
        Ok(method_id(text(name)?))
    })
}

/// The text of a string that has to be UTF-8.
pub(crate) fn text(from: &CStr) -> Outcome<&str> {
    from.to_str().map_err(|_| invalid(format!("the method name '{}': expected UTF-8", from.to_string_lossy())))
}
