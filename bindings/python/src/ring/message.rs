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
    /// It was received as a copy, which is the caller's to change.
    own: bool,
}

impl State {
    /// It is given back; gives how it was.
    #[inline(always)]
    fn end(&mut self) -> Self {
        std::mem::replace(self, Self { released: true, ..*self })
    }
}

/// Memory for a copy of a payload, at an address as aligned as the payload's own.
pub(crate) struct Private {
    memory: Vec<u8>,
    /// Where the payload begins in it.
    offset: usize,
}

/// A tensor's elements begin on a multiple of this many bytes, wherever its message begins.
const TENSOR_ALIGN: usize = 64;

impl Private {
    /// For a copy of the `len` bytes at `from`, in a log that aligns payloads to `align`; `None` if there is no memory.
    pub(crate) fn like(from: *const u8, len: usize, align: usize) -> Option<Self> {
        let align = align.max(TENSOR_ALIGN);
        let mut memory = Vec::<u8>::new();
        memory.try_reserve_exact(len + align).ok()?;
        let offset = from.addr().wrapping_sub(memory.as_ptr().addr()) % align;
        Some(Self { memory, offset })
    }

    /// Where the copy goes.
    pub(crate) fn data(&self) -> *mut u8 {
        self.memory.as_ptr().cast_mut().wrapping_add(self.offset)
    }
}

// SAFETY: `frame.data` leads into a mapping that stays until the message is given back.
unsafe impl Send for Message {}
// SAFETY: as above; the rest is behind `Gil`.
unsafe impl Sync for Message {}

impl Message {
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

    /// [`of`](Self::of) for a message that came as a copy.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn own(receiver: *mut ffi::PyObject, frame: Frame, private: Private) -> Self {
        let state = State { moved: true, own: true, ..State::default() };
        // SAFETY: the caller's. The number is nobody's.
        let new = unsafe { Self::of(receiver, frame, u64::MAX) };
        new.state.set(state);
        new.private.set(Some(private));
        new
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
        let state = self.state.with(|state| {
            state.views += u32::from(!state.released);
            *state
        });
        if state.released {
            return None;
        }
        // While it has a view it is not moved.
        let frame = if state.moved { self.moved_frame() } else { self.frame };
        Some((frame, !(self.receiver.get().writable_views || state.own)))
    }

    /// Copies the payload to private memory, so that its place in the ring can be given back by the caller; `false` if
    /// there are views, which cannot follow, or no memory, or it is being given back. `align` is the log's.
    pub(crate) fn move_out(&self, align: usize) -> bool {
        // Nobody may begin a view meanwhile.
        self.state.with(|state| {
            if state.views != 0 || state.released {
                return false;
            }
            let Frame { data, len, .. } = self.frame;
            let Some(private) = Private::like(data, len, align) else { return false };
            // SAFETY: not given back, as its receiver knows, so readable; and there is room for as many bytes.
            unsafe { private.data().copy_from_nonoverlapping(data, len) };
            self.private.set(Some(private));
            state.moved = true;
            true
        })
    }

    /// Bytes of the payload, unless it was given back.
    pub(crate) fn payload_len(&self, py: Python<'_>) -> PyResult<usize> {
        if self.state.get().released { Err(released(py)) } else { Ok(self.frame.len) }
    }

    /// Whether views may write.
    pub(crate) fn is_writable(&self) -> bool {
        self.receiver.get().writable_views || self.state.get().own
    }

    /// Counts one more view: until [`unview`](Self::unview) the memory stays.
    pub(crate) fn view(&self, py: Python<'_>) -> PyResult<Frame> {
        self.export().map(|(frame, _)| frame).ok_or_else(|| released(py))
    }

    /// One view less, with the interpreter attached.
    pub(crate) fn unview(&self) {
        let ended = self.state.with(|state| {
            state.views -= 1;
            (state.views == 0 && state.put_off).then(|| state.end())
        });
        if let Some(before) = ended {
            self.ended(before);
        }
    }

    /// Gives it back now, or when the last view goes.
    pub(crate) fn release_later(&self) {
        let ended = self.state.with(|state| {
            state.put_off = true;
            (state.views == 0).then(|| state.end())
        });
        if let Some(before) = ended {
            self.ended(before);
        }
    }

    #[cold]
    fn moved_frame(&self) -> Frame {
        let data = self.private.with(|private| private.as_ref().map(Private::data));
        Frame { data: data.expect("was moved and is not released").cast_const(), ..self.frame }
    }

    #[inline]
    pub(crate) fn give_back(&self) {
        let before = self.state.with(State::end);
        self.ended(before);
    }

    /// What is due once it has ended; `before`: how it was until then.
    #[inline(always)]
    fn ended(&self, before: State) {
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
    let (bytes, to) = new_bytes(py, frame.len)?;
    // Readable, as the caller says; the bytes have as many.
    copy_bytes(py, frame.data, to, frame.len);
    Ok(bytes)
}

/// Bytes that are still to be filled in by the caller, who alone knows of them.
///
/// # Errors
/// `MemoryError`.
pub(crate) fn new_bytes(py: Python<'_>, len: usize) -> PyResult<(Bound<'_, PyBytes>, *mut u8)> {
    // SAFETY: attached. What it gives is bytes that nobody else knows of, or null with an exception.
    unsafe {
        let bytes = ffi::PyBytes_FromStringAndSize(std::ptr::null(), len as isize);
        let bytes = Bound::from_owned_ptr_or_err(py, bytes)?.cast_into_unchecked::<PyBytes>();
        let to = ffi::PyBytes_AsString(bytes.as_ptr());
        Ok((bytes, to.cast()))
    }
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
        let ended = self.state.with(|state| if state.views == 0 { Ok(state.end()) } else { Err(state.views) });
        match ended {
            Ok(before) => {
                self.ended(before);
                Ok(())
            }
            Err(views) => {
                let text =
                    format!("{views} views of this message are alive (memoryview, NumPy, DLPack): drop them first");
                Err(PyBufferError::new_err(text))
            }
        }
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
        self.payload_len(py)
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

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let this = slf.get();
        let released = if this.state.get().released { ", released" } else { "" };
        let Frame { len, type_id, tag, .. } = this.frame;
        let (class, seq) = match hot::stamp(slf) {
            Some(stamp) => ("TopicMessage", format!(", seq={}", stamp.seq)),
            None => ("Message", String::new()),
        };
        format!("<ramway.{class} of {len} bytes, type_id={type_id:#x}, tag={tag}{seq}{released}>")
    }
}
