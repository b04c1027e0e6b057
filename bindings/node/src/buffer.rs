//! ArrayBuffers over memory that this process has mapped.

use crate::error::refuse;
use napi::bindgen_prelude::*;
use napi::{check_status, sys};
use ramway::ErrorKind;
use std::any::Any;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// What keeps mapped memory mapped.
pub(crate) type Owner = Arc<dyn Any + Send + Sync>;

/// An ArrayBuffer of the runtime's.
pub struct Buffer(sys::napi_value);

impl ToNapiValue for Buffer {
    unsafe fn to_napi_value(_: sys::napi_env, value: Self) -> Result<sys::napi_value> {
        Ok(value.0)
    }
}

impl TypeName for Buffer {
    fn type_name() -> &'static str {
        "ArrayBuffer"
    }

    fn value_type() -> ValueType {
        ValueType::Object
    }
}

/// An ArrayBuffer over `len` bytes at `start`, which stay mapped as long as `owner` lives: until the buffer is
/// collected, or some time after it was detached, also where it was transferred to another thread.
///
/// # Safety
/// The bytes are mapped and stay so while `owner` lives: for writing, unless JavaScript only reads them.
pub(crate) unsafe fn over<T: Send + 'static>(env: &Env, start: *mut u8, len: usize, owner: T) -> Result<Buffer> {
    unsafe extern "C" fn drop_owner<T>(_: sys::napi_env, _: *mut c_void, hint: *mut c_void) {
        // SAFETY: `hint` is the box made below, and a finalizer runs once.
        drop(unsafe { Box::from_raw(hint.cast::<T>()) });
    }
    let hint = Box::into_raw(Box::new(owner)).cast();
    let mut value = ptr::null_mut();
    // SAFETY: the environment is the one that called us; the memory is the caller's promise.
    let status = unsafe {
        sys::napi_create_external_arraybuffer(env.raw(), start.cast(), len, Some(drop_owner::<T>), hint, &mut value)
    };
    if status != sys::Status::napi_ok {
        // SAFETY: a call that failed keeps nothing.
        drop(unsafe { Box::from_raw(hint.cast::<T>()) });
    }
    if status == sys::Status::napi_no_external_buffers_allowed {
        return Err(refuse(
            ErrorKind::Unsupported,
            "this runtime allows no ArrayBuffers over outside memory (Electron, for one): Ramway cannot work in it",
        ));
    }
    check_status!(status, "an ArrayBuffer over {len} mapped bytes")?;
    Ok(Buffer(value))
}

/// Detaches a buffer that is not detached yet: it and its views have length 0 from now on.
#[napi_derive::napi(ts_args_type = "buffer: ArrayBuffer")]
pub fn detach(env: Env, buffer: Unknown<'_>) -> Result<()> {
    // SAFETY: the environment is the one that called us, and checks what the value is.
    check_status!(unsafe { sys::napi_detach_arraybuffer(env.raw(), buffer.raw()) }, "detaching a buffer")
}
