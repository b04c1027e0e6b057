use crate::endpoint::Gil;
use crate::errors::error;
use crate::ring::hot;
use crate::ring::receiver::Receiver;
use crate::tensor::dlpack::copy_bytes;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use ramway::ErrorKind;
use ramway::ring::consumer::Frame;
use std::mem::MaybeUninit;

/// A received message: a read-only view of the shared memory.
///
/// Anything that takes a buffer takes a message: bytes(msg), memoryview(msg), struct.unpack_from(fmt, msg),
/// np.frombuffer(msg, dtype). Its place in the ring is given back when the message and all views of it are gone, or by
/// release(); in a `with` block at its end.
#[pyclass(frozen, subclass, module = "ramway")]
pub(crate) struct Message {
    receiver: Py<Receiver>,
    frame: Frame,
    /// Its number in the receiver's `held`.
    number: u64,
    state: Gil<State>,
    /// Where the payload is once it was moved out of the ring.
    private: Gil<Option<Private>>,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// Buffers that are exported.
    views: u32,
    /// Give it back when the last view goes.
    put_off: bool,
    released: bool,
    /// The payload is in private memory, and its place in the ring was given back.
    moved: bool,
}

/// A copy of a payload, at an address as aligned as the payload's own.
struct Private {
    pages: Box<[MaybeUninit<Page>]>,
    /// The payload's address within its page.
    offset: usize,
}

/// As much as any ring aligns its payloads to.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

impl Private {
    /// # Safety
    /// The frame's bytes are readable.
    unsafe fn of(frame: &Frame) -> Self {
        let offset = frame.data.addr() % size_of::<Page>();
        let mut pages = Box::new_uninit_slice((offset + frame.len).div_ceil(size_of::<Page>()));
        let start = pages.as_mut_ptr().cast::<u8>();
        // SAFETY: readable as the caller says; the pages hold `offset + len` bytes and are nobody else's.
        unsafe { start.add(offset).copy_from_nonoverlapping(frame.data, frame.len) };
        Self { pages, offset }
    }

    fn data(&self) -> *const u8 {
        self.pages.as_ptr().cast::<u8>().wrapping_add(self.offset)
    }
}

// SAFETY: `frame.data` leads into a mapping that stays until the message is given back.
unsafe impl Send for Message {}
// SAFETY: as above; the rest is behind `Gil`.
unsafe impl Sync for Message {}

impl Message {
    #[inline]
    pub(crate) fn make(receiver: &Bound<'_, Receiver>, frame: Frame, number: u64) -> PyResult<Py<Self>> {
        hot::make(receiver, frame, number)
    }

    /// The value of a new message, which owns the reference to its receiver.
    ///
    /// # Safety
    /// With the interpreter attached; `receiver` is a `Receiver`.
    #[inline(always)]
    pub(crate) unsafe fn of(receiver: *mut ffi::PyObject, frame: Frame, number: u64) -> Self {
        // SAFETY: as the caller says; a `Py` is that pointer.
        let receiver = unsafe { std::mem::transmute::<*mut ffi::PyObject, Py<Receiver>>(receiver) };
        Self { receiver, frame, number, state: Gil::default(), private: Gil::default() }
    }

    /// Tells the receiver which message this is, once it is where it stays.
    #[inline(always)]
    pub(crate) fn note(&self) {
        self.receiver.get().held.with(|held| held.belongs_to(self.number, self));
    }

    #[inline(always)]
    pub(crate) fn receiver_ptr(&self) -> *mut ffi::PyObject {
        self.receiver.as_ptr()
    }

    /// Counts one more view; `None` if it was given back. Gives the payload and whether views are read-only.
    #[inline(always)]
    pub(crate) fn export(&self) -> Option<(Frame, bool)> {
        let state = self.state.get();
        if state.released {
            return None;
        }
        self.state.with(|state| state.views += 1);
        let frame = if state.moved { self.moved_frame() } else { self.frame };
        Some((frame, !self.is_writable()))
    }

    /// Copies the payload to private memory, so that its place in the ring can be given back by the caller; `false` if
    /// there are views, which cannot follow.
    pub(crate) fn move_out(&self) -> bool {
        if self.state.get().views != 0 {
            return false;
        }
        // SAFETY: not given back, as its receiver knows, so readable.
        self.private.set(Some(unsafe { Private::of(&self.frame) }));
        self.state.with(|state| state.moved = true);
        true
    }

    /// The payload, unless it was given back. Stays valid while the caller keeps a view or the message.
    pub(crate) fn frame(&self, py: Python<'_>) -> PyResult<Frame> {
        let state = self.state.get();
        if state.released {
            return Err(released(py));
        }
        if state.moved { Ok(self.moved_frame()) } else { Ok(self.frame) }
    }

    /// Whether views may write.
    pub(crate) fn is_writable(&self) -> bool {
        self.receiver.get().writable_views
    }

    /// Counts one more view: until [`unview`](Self::unview) the memory stays.
    pub(crate) fn view(&self, py: Python<'_>) -> PyResult<Frame> {
        self.export().map(|(frame, _)| frame).ok_or_else(|| released(py))
    }

    /// One view less, with the interpreter attached.
    pub(crate) fn unview(&self) {
        let last = self.state.with(|state| {
            state.views -= 1;
            state.views == 0 && state.put_off && !state.released
        });
        if last {
            self.give_back();
        }
    }

    /// Gives it back now, or when the last view goes.
    pub(crate) fn release_later(&self) {
        if self.state.get().views == 0 {
            self.give_back();
        } else {
            self.state.with(|state| state.put_off = true);
        }
    }

    #[cold]
    fn moved_frame(&self) -> Frame {
        let data = self.private.with(|private| private.as_ref().map(Private::data));
        Frame { data: data.expect("was moved and is not released"), ..self.frame }
    }

    #[inline]
    pub(crate) fn give_back(&self) {
        let before = self.state.with(|state| std::mem::replace(state, State { released: true, ..*state }));
        if before.moved {
            self.private.set(None);
        } else if !before.released {
            self.receiver.get().give_back(self.number);
        }
    }
}

/// A frame's payload as bytes.
///
/// # Errors
/// `MemoryError`, which a message of any length can lead to: then nothing of Python's ran.
///
/// # Safety
/// The frame is readable until this returns, whatever other threads do.
pub(crate) unsafe fn copy_of<'py>(py: Python<'py>, frame: &Frame) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: attached. What it gives is bytes that nobody else knows of, or null with an exception.
    let (bytes, to) = unsafe {
        let bytes = ffi::PyBytes_FromStringAndSize(std::ptr::null(), frame.len as isize);
        let bytes = Bound::from_owned_ptr_or_err(py, bytes)?.cast_into_unchecked::<PyBytes>();
        let to = ffi::PyBytes_AsString(bytes.as_ptr());
        (bytes, to)
    };
    // Readable, as the caller says; the bytes have as many.
    copy_bytes(py, frame.data, to.cast(), frame.len);
    Ok(bytes)
}

#[cold]
pub(crate) fn released(py: Python<'_>) -> PyErr {
    error(py, ErrorKind::Detached, "this message was released")
}

impl Drop for Message {
    #[inline]
    fn drop(&mut self) {
        // Views hold a reference to the message, so there are none.
        self.give_back();
    }
}

#[pymethods]
impl Message {
    /// What the sender said the payload is; below 0xFFFF0000 for an application's own.
    #[getter]
    pub(crate) fn type_id(&self) -> u32 {
        self.frame.type_id
    }

    /// The sender's tag, 0 if it gave none.
    #[getter]
    fn tag(&self) -> u64 {
        self.frame.tag
    }

    /// Whether the message was given back.
    #[getter]
    fn released(&self) -> bool {
        self.state.get().released
    }

    /// Gives the message's place in the ring back. Raises BufferError while views of it are alive.
    pub(crate) fn release(&self) -> PyResult<()> {
        let state = self.state.get();
        if state.views != 0 {
            let text =
                format!("{} views of this message are alive (memoryview, NumPy, DLPack): drop them first", state.views);
            return Err(PyBufferError::new_err(text));
        }
        self.give_back();
        Ok(())
    }

    /// A copy of the payload.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let frame = self.view(py)?;
        // SAFETY: a view of it, counted here, keeps it readable.
        let copy = unsafe { copy_of(py, &frame) };
        self.unview();
        copy
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.tobytes(py)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.frame(py)?.len)
    }

    /// True: also a message of length 0 is one, for `while message := rx.try_recv()`.
    fn __bool__(&self) -> bool {
        true
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(slf)?.get_item(key)
    }

    fn __eq__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(slf)?.rich_compare(other, pyo3::basic::CompareOp::Eq)
    }

    fn __ne__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(slf)?.rich_compare(other, pyo3::basic::CompareOp::Ne)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Releases, or puts it off until the last view has gone.
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyAny>) {
        self.release_later();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.receiver)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a Message cannot be pickled: send bytes(msg)"))
    }

    fn __repr__(&self) -> String {
        let released = if self.state.get().released { ", released" } else { "" };
        let Frame { len, type_id, tag, .. } = self.frame;
        format!("<ramway.Message of {len} bytes, type_id={type_id:#x}, tag={tag}{released}>")
    }
}
