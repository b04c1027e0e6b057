use crate::args::assign;
use crate::endpoint::{Flag, Gil, Owner};
use crate::errors::{OrRaise, error};
use crate::ring::sender::Sender;
use crate::tensor::dlpack::{Addresses, LARGE};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use ramway::ErrorKind;
use ramway::ring::window::Window;
use std::ffi::c_int;
use std::sync::Arc;

/// Reserved room in the ring, writable in place until it is committed or aborted.
///
/// Anything that writes into a buffer writes into a slot: slot[:n] = data, struct.pack_into, file.readinto(slot),
/// np.frombuffer(slot, dtype)[:] = values. A view that is still alive at the commit is cut off: it keeps a private copy
/// of the bytes and no longer leads into the ring (which costs a copy and a few page faults; del it before to save them).
#[pyclass(frozen, module = "ramway")]
pub(crate) struct Slot {
    sender: Py<Sender>,
    state: Arc<SlotState>,
    type_id: Gil<u32>,
    tag: Gil<u64>,
}

/// What the sender knows of its open slot.
pub(crate) struct SlotState {
    /// In the sender's mapping.
    data: *mut u8,
    len: usize,
    /// Neither committed nor aborted. Changes with `views` alone.
    open: Flag,
    views: Gil<Views>,
    /// Its object went while another thread was in a call of the sender.
    pub(crate) left_behind: Flag,
}

/// Buffers that are exported.
#[derive(Default)]
struct Views {
    count: u32,
    /// What they lead into; none: the slot itself.
    window: Option<Arc<Window>>,
}

// SAFETY: an address in the sender's mapping, used while the slot is open, which ends before the mapping does.
unsafe impl Send for SlotState {}
// SAFETY: as above; what changes is behind `Gil` and `Flag`.
unsafe impl Sync for SlotState {}

impl SlotState {
    pub(crate) fn new(data: *mut u8, len: usize) -> Self {
        let new = Self { data, len, open: Flag::default(), views: Gil::default(), left_behind: Flag::default() };
        new.open.set(true);
        new
    }

    /// Ends the slot for its views: those that are alive lead into private memory from now on. BufferError, and the slot
    /// stays open, where that cannot be done. The caller has entered the sender.
    pub(crate) fn cut_off(&self, py: Python<'_>, sender: &Sender) -> PyResult<()> {
        let led_into = self.views.with(|views| {
            if views.count != 0 {
                return Some(views.window.clone());
            }
            self.open.set(false);
            None
        });
        if let Some(window) = led_into {
            let Some(window) = window else {
                let text = "views of this slot are alive (memoryview, NumPy, DLPack), and its memory cannot be mapped a \
                            second time to cut them off: drop them first";
                return Err(PyBufferError::new_err(text));
            };
            let (ends, len, window) = (Addresses(self.data, self.data), self.len, &*window);
            let cut = move || {
                let Addresses(data, _) = { ends };
                // SAFETY: the slot is open, so the sender's mapping is alive and the bytes are nobody else's: the caller
                // has entered the sender, and nobody can end the slot meanwhile.
                unsafe { window.cut(data, len) }
            };
            let done = if len >= LARGE { py.detach(cut) } else { cut() };
            done.or_raise(py)?;
            // First, and with the views: a new one would lead into the ring.
            self.views.with(|_| self.open.set(false));
            sender.window.set(None);
        }
        Ok(())
    }
}

impl Slot {
    pub(crate) fn new(sender: Py<Sender>, state: Arc<SlotState>, type_id: u32, tag: u64) -> Self {
        Self { sender, state, type_id: Gil::new(type_id), tag: Gil::new(tag) }
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.state.open.get() {
            return Ok(());
        }
        Err(ended(py))
    }

    /// Where views of the slot lead: into a window of the sender's, or, where the memory cannot be mapped again
    /// (hugetlbfs), to the slot itself.
    fn view(&self, py: Python<'_>) -> PyResult<*mut u8> {
        self.check(py)?;
        let is_first = self.state.views.with(|views| views.count == 0);
        let window = if is_first { Some(self.sender.get().window(py)?) } else { None };
        let address = self.state.views.with(|views| {
            // Another thread may have ended the slot, or begun a view.
            if !self.state.open.get() {
                return None;
            }
            if views.count == 0
                && let Some(window) = window
            {
                views.window = window;
            }
            views.count += 1;
            Some(views.window.as_ref().map_or(self.state.data, |window| window.at(self.state.data)))
        });
        address.ok_or_else(|| ended(py))
    }

    /// A view has gone.
    fn unview(&self) {
        self.state.views.with(|views| views.count -= 1);
    }

    /// Ends the slot as a message of `len` bytes with whatever type id.
    pub(crate) fn commit_as(&self, py: Python<'_>, len: usize, type_id: u32, flush: bool) -> PyResult<()> {
        self.check(py)?;
        let sender = self.sender.get();
        let mut core = sender.enter(py)?;
        // Another thread may have ended it, and this may be another slot's turn.
        #[cfg(Py_GIL_DISABLED)]
        self.check(py)?;
        if len > self.state.len {
            let text = format!("commit({len}): this slot has {} bytes", self.state.len);
            return Err(error(py, ErrorKind::InvalidArgument, text));
        }
        self.state.cut_off(py, sender)?;
        sender.slot_done();
        core.commit(len, type_id, self.tag.get(), flush).or_raise(py)
    }

    /// The reserved bytes in the sender's own mapping.
    pub(crate) fn data(&self, py: Python<'_>) -> PyResult<(*mut u8, usize)> {
        self.check(py)?;
        Ok((self.state.data, self.state.len))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Views hold a reference to the slot, so there are none.
        if self.state.open.get() {
            let sender = self.sender.get();
            // For the next call that needs a slot, if a thread is in one now.
            self.state.left_behind.set(true);
            if let Some(mut core) = sender.endpoint.try_enter_briefly()
                && self.state.open.replace(false)
            {
                sender.slot_done();
                core.abort();
            }
            if sender.endpoint.is_shut() {
                sender.left();
            }
        }
    }
}

#[cold]
fn ended(py: Python<'_>) -> PyErr {
    error(py, ErrorKind::Detached, "this slot was committed or aborted")
}

#[pymethods]
impl Slot {
    /// The type id that the receiver gets; below 0xFFFF0000. May be set.
    #[getter]
    fn get_type_id(&self) -> u32 {
        self.type_id.get()
    }

    #[setter]
    fn set_type_id(&self, py: Python<'_>, #[pyo3(from_py_with = crate::args::type_id)] type_id: u32) -> PyResult<()> {
        crate::ring::sender::check_type_id(py, type_id)?;
        self.type_id.set(type_id);
        Ok(())
    }

    /// The message's tag. May be set.
    #[getter]
    fn get_tag(&self) -> u64 {
        self.tag.get()
    }

    #[setter]
    fn set_tag(&self, #[pyo3(from_py_with = crate::args::tag)] tag: u64) {
        self.tag.set(tag);
    }

    /// Whether it was neither committed nor aborted.
    #[getter]
    fn open(&self) -> bool {
        self.state.open.get()
    }

    /// Makes the first `n` bytes (without it, all) a message, visible at once, or with flush=False at the next flush,
    /// send or commit.
    #[pyo3(signature = (n = None, *, flush = true))]
    fn commit(&self, py: Python<'_>, n: Option<usize>, flush: bool) -> PyResult<()> {
        self.commit_as(py, n.unwrap_or(self.state.len), self.type_id.get(), flush)
    }

    /// Gives the room back; nothing is sent. Does nothing after a commit or abort.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        if !self.state.open.get() {
            return Ok(());
        }
        let sender = self.sender.get();
        let mut core = sender.enter(py)?;
        // Another thread may have ended it, and this may be another slot's turn.
        if cfg!(Py_GIL_DISABLED) && !self.state.open.get() {
            return Ok(());
        }
        self.state.cut_off(py, sender)?;
        sender.slot_done();
        core.abort();
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.state.len
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(slf)?.get_item(key)
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(slf, key, value)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Commits all of it, unless that was decided before or the block raised: then it aborts.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !self.state.open.get() {
            return Ok(());
        }
        if kind.is_none() { self.commit(py, None, true) } else { self.abort(py) }
    }

    /// # Safety
    /// Called by the interpreter, with a `view` to fill in.
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        let address = this.view(slf.py())?;
        // SAFETY: `view` is the interpreter's; the bytes stay as long as the window, which the slot keeps.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address.cast(), this.state.len as isize, 0, flags) };
        if filled != 0 {
            this.unview();
            return Err(PyErr::fetch(slf.py()));
        }
        Ok(())
    }

    /// # Safety
    /// Called by the interpreter, once for each view.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.unview();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.sender)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a Slot cannot be pickled"))
    }

    fn __repr__(&self) -> String {
        format!("<ramway.Slot of {} bytes{}>", self.state.len, if self.state.open.get() { "" } else { ", closed" })
    }
}
