//! What every message of a `for` loop goes through, as the interpreter calls it: making a message, its buffer, its end, and
//! the next step of the loop. The layers that pyo3 puts around a slot (a panic is caught, attachments are counted in
//! thread-local memory, objects come from the general allocator) cost more than the slots themselves.
//!
//! [`Message`] is pyo3's; what Python sees as `ramway.Message` is a type below it, with these slots instead, and
//! `ramway.TopicMessage` one below that, whose objects say after the message what only a topic's says. Nothing here drops a `Py`,
//! because without an attachment that pyo3 knows of, it would put that off.

use crate::ring::fetch::Form;
use crate::ring::message::{Message, Private};
use crate::ring::receiver::Receiver;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use ramway::Topic;
use ramway::ring::consumer::Frame;
use ramway::ring::log::Ring;
use ramway::topic::subscriber::Stamp;
use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A type that is set when the module is made, and kept for the life of the process.
struct Class(AtomicPtr<ffi::PyTypeObject>);

impl Class {
    const fn unset() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline(always)]
    fn get(&self) -> *mut ffi::PyTypeObject {
        // Relaxed: the import of the module comes before all that uses it.
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, class: *mut ffi::PyTypeObject) {
        // Relaxed: as above.
        self.0.store(class, Ordering::Relaxed);
    }
}

/// The messages of rings, and those of topics.
static CLASSES: [Class; 2] = [const { Class::unset() }; 2];
const OF_RING: usize = 0;
const OF_TOPIC: usize = 1;

/// The type of what a loop asks for the next message.
static MESSAGES: Class = Class::unset();

/// Message objects that are kept to be used again, as many as a loop that holds a few messages. Not on a free-threaded
/// interpreter, where an object is of the thread that it was allocated by.
#[cfg(not(Py_GIL_DISABLED))]
mod spares {
    use crate::endpoint::Gil;
    use pyo3::ffi;
    use std::ptr;

    const MAX: usize = 32;

    struct Spares {
        objects: [*mut ffi::PyObject; MAX],
        count: usize,
    }

    // SAFETY: objects without another reference; used under the interpreter lock.
    unsafe impl Send for Spares {}

    /// By kind of message.
    static SPARES: [Gil<Spares>; 2] = [const { Gil::new(Spares { objects: [ptr::null_mut(); MAX], count: 0 }) }; 2];

    #[inline(always)]
    pub(super) fn take<const KIND: usize>() -> Option<*mut ffi::PyObject> {
        SPARES[KIND].with(|spares| {
            let last = spares.count.checked_sub(1)?;
            spares.count = last;
            Some(spares.objects[last])
        })
    }

    /// False if there are enough.
    #[inline(always)]
    pub(super) fn keep<const KIND: usize>(object: *mut ffi::PyObject) -> bool {
        SPARES[KIND].with(|spares| {
            let room = spares.count < MAX;
            if room {
                spares.objects[spares.count] = object;
                spares.count += 1;
            }
            room
        })
    }
}

#[cfg(Py_GIL_DISABLED)]
mod spares {
    use pyo3::ffi;

    pub(super) fn take<const KIND: usize>() -> Option<*mut ffi::PyObject> {
        None
    }

    pub(super) fn keep<const KIND: usize>(_object: *mut ffi::PyObject) -> bool {
        false
    }
}

/// Bytes from an object's begin to the value in it: as pyo3 lays out a class without a dictionary and without a base.
const VALUE: usize = size_of::<ffi::PyObject>().next_multiple_of(align_of::<Message>());
/// The same of what only a topic's message says.
const STAMP: usize = (VALUE + size_of::<Message>()).next_multiple_of(align_of::<Stamp>());

/// What pyo3's class of messages has in common with the type here.
#[inline(always)]
unsafe fn message<'a>(object: *mut ffi::PyObject) -> &'a Message {
    // SAFETY: the slots are called with messages, whose value lies there.
    unsafe { &*object.cast::<u8>().add(VALUE).cast::<Message>() }
}

/// A new message of a ring, held under this number.
#[inline]
pub(crate) fn in_ring(receiver: &Bound<'_, Receiver>, frame: Frame, number: u64) -> PyResult<Py<Message>> {
    // SAFETY: attached; a reference that the message owns.
    unsafe { owned(receiver, make_raw(receiver.as_ptr(), frame, number)) }
}

/// A new message of a topic, held under this number.
#[inline]
pub(crate) fn in_topic(receiver: &Bound<'_, Receiver>, frame: Frame<Topic>, number: u64) -> PyResult<Py<Message>> {
    let raw = receiver.as_ptr();
    // SAFETY: attached; a reference that the message owns.
    unsafe { owned(receiver, of_topic(raw, frame, |message, frame| held(message, raw, frame, number))) }
}

/// A new message of a topic, whose payload is in `private`.
pub(crate) fn own(receiver: &Bound<'_, Receiver>, frame: Frame<Topic>, private: Private) -> PyResult<Py<Message>> {
    let raw = receiver.as_ptr();
    // SAFETY: attached; a reference that the message owns.
    unsafe { owned(receiver, of_topic(raw, frame, |message, frame| message.write(Message::own(raw, frame, private)))) }
}

/// A new message of a topic, which `write` writes: where it stays, with a reference to the receiver that it owns.
#[inline(always)]
unsafe fn of_topic(
    receiver: *mut ffi::PyObject,
    frame: Frame<Topic>,
    write: impl FnOnce(*mut Message, Frame),
) -> *mut ffi::PyObject {
    let Frame { data, len, type_id, tag, stamp } = frame;
    // SAFETY: the caller's; the type has room for a stamp behind the message.
    unsafe {
        new_raw::<OF_TOPIC>(receiver, |message| {
            message.cast::<u8>().add(STAMP - VALUE).cast::<Stamp>().write(stamp);
            write(message, Frame { data, len, type_id, tag, stamp: () });
        })
    }
}

/// # Safety
/// A new reference to an object of a type below `Message`, or null with an exception.
#[inline(always)]
unsafe fn owned(receiver: &Bound<'_, Receiver>, object: *mut ffi::PyObject) -> PyResult<Py<Message>> {
    // SAFETY: the caller's.
    unsafe { Ok(Bound::from_owned_ptr_or_err(receiver.py(), object)?.cast_into_unchecked::<Message>().unbind()) }
}

/// What only a topic's message says.
pub(crate) fn stamp(message: &Bound<'_, Message>) -> Option<Stamp> {
    let class = CLASSES[OF_TOPIC].get();
    // SAFETY: of this type, so with a stamp there.
    (message.get_type_ptr() == class)
        .then(|| unsafe { message.as_ptr().cast::<u8>().add(STAMP).cast::<Stamp>().read() })
}

/// A new message of a ring.
#[inline(always)]
unsafe fn make_raw(receiver: *mut ffi::PyObject, frame: Frame, number: u64) -> *mut ffi::PyObject {
    // SAFETY: the caller's.
    unsafe { new_raw::<OF_RING>(receiver, |message| held(message, receiver, frame, number)) }
}

/// Writes a message that is held in the log.
#[inline(always)]
unsafe fn held(message: *mut Message, receiver: *mut ffi::PyObject, frame: Frame, number: u64) {
    // SAFETY: a place for a message that stays there; the rest as the caller says.
    unsafe {
        message.write(Message::of(receiver, frame, number));
        (*message).note();
    }
}

/// A new object of one of the types, whose value `write` writes.
#[inline(always)]
unsafe fn new_raw<const KIND: usize>(
    receiver: *mut ffi::PyObject,
    write: impl FnOnce(*mut Message),
) -> *mut ffi::PyObject {
    let (spare, class) = (spares::take::<KIND>(), CLASSES[KIND].get());
    // SAFETY: attached; an object of that type which nobody has, its header that of an untracked one, or a new one, which
    // is tracked without a value: until it has one nothing happens that the collector could be run by, or that another thread's
    // collection could stop this thread at.
    unsafe {
        let object = match spare {
            Some(spare) => ffi::PyObject_Init(spare, class),
            None => ffi::PyType_GenericAlloc(class, 0),
        };
        if object.is_null() {
            return object;
        }
        ffi::Py_INCREF(receiver);
        write(object.cast::<u8>().add(VALUE).cast::<Message>());
        if spare.is_some() {
            ffi::PyObject_GC_Track(object.cast());
        }
        object
    }
}

unsafe extern "C" fn dealloc<const KIND: usize>(object: *mut ffi::PyObject) {
    // SAFETY: called attached, once, by the owner of the last reference.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        let this = message(object);
        this.give_back();
        ffi::Py_DECREF(this.receiver_ptr());
        let class = ffi::Py_TYPE(object);
        if !spares::keep::<KIND>(object) {
            ffi::PyObject_GC_Del(object.cast());
        }
        // An object holds its type; `PyObject_Init` takes it again.
        ffi::Py_DECREF(class.cast());
    }
}

unsafe extern "C" fn traverse(object: *mut ffi::PyObject, visit: ffi::visitproc, data: *mut c_void) -> c_int {
    // SAFETY: called by the garbage collector for a message, which has its value from when it is tracked.
    unsafe {
        match visit(ffi::Py_TYPE(object).cast(), data) {
            0 => visit(message(object).receiver_ptr(), data),
            stop => stop,
        }
    }
}

unsafe extern "C" fn getbuffer(object: *mut ffi::PyObject, view: *mut ffi::Py_buffer, flags: c_int) -> c_int {
    // SAFETY: called attached, with a message, and a view to fill in.
    unsafe {
        let this = message(object);
        let Some((frame, readonly)) = this.export() else {
            (*view).obj = ptr::null_mut();
            Python::attach(|py| crate::ring::message::released(py).restore(py));
            return -1;
        };
        let data = frame.data.cast_mut().cast::<c_void>();
        let filled = ffi::PyBuffer_FillInfo(view, object, data, frame.len as isize, readonly.into(), flags);
        if filled != 0 {
            this.unview();
        }
        filled
    }
}

unsafe extern "C" fn releasebuffer(object: *mut ffi::PyObject, _view: *mut ffi::Py_buffer) {
    // SAFETY: called attached, once for each view.
    unsafe { message(object) }.unview();
}

/// `iter(receiver)`.
#[repr(C)]
struct Messages {
    head: ffi::PyObject,
    receiver: *mut ffi::PyObject,
}

pub(crate) fn messages(receiver: &Bound<'_, Receiver>) -> PyResult<Py<PyAny>> {
    let class = MESSAGES.get();
    // SAFETY: attached; the type's own allocation, then its one field.
    unsafe {
        let object = ffi::PyType_GenericAlloc(class, 0);
        let new = Bound::from_owned_ptr_or_err(receiver.py(), object)?;
        (*object.cast::<Messages>()).receiver = receiver.clone().into_ptr();
        Ok(new.unbind())
    }
}

unsafe extern "C" fn next(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: called attached, with an object of this type, whose receiver is set when it is made.
    unsafe {
        let receiver = (*object.cast::<Messages>()).receiver;
        let py = Python::assume_attached();
        let this = Borrowed::from_ptr(py, receiver).cast_unchecked::<Receiver>();
        match this.get().at_once::<Ring>() {
            Some((frame, number)) => make_raw(receiver, frame, number),
            None => next_or_wait(receiver),
        }
    }
}

/// What is a topic's message, or not there yet, or an error.
#[inline(never)]
unsafe fn next_or_wait(receiver: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as in `next`.
    unsafe {
        let this = Borrowed::from_ptr(Python::assume_attached(), receiver).cast_unchecked::<Receiver>();
        if this.get().form == Form::InTopic
            && let Some((frame, number)) = this.get().at_once::<Topic>()
        {
            return of_topic(receiver, frame, |message, frame| held(message, receiver, frame, number));
        }
        wait(receiver)
    }
}

/// What is not there yet, or an error.
#[cold]
#[inline(never)]
unsafe fn wait(receiver: *mut ffi::PyObject) -> *mut ffi::PyObject {
    Python::attach(|py| {
        // SAFETY: a receiver, which the caller keeps.
        let receiver = unsafe { Borrowed::from_ptr(py, receiver).cast_unchecked::<Receiver>() };
        match Receiver::next(&receiver) {
            Ok(Some(message)) => message.into_ptr(),
            Ok(None) => ptr::null_mut(),
            Err(error) => {
                error.restore(py);
                ptr::null_mut()
            }
        }
    })
}

unsafe extern "C" fn messages_dealloc(object: *mut ffi::PyObject) {
    // SAFETY: as in `dealloc`; the receiver may be unset if making it failed.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        let class = ffi::Py_TYPE(object);
        ffi::Py_XDECREF((*object.cast::<Messages>()).receiver);
        ffi::PyObject_GC_Del(object.cast());
        ffi::Py_DECREF(class.cast());
    }
}

unsafe extern "C" fn messages_traverse(object: *mut ffi::PyObject, visit: ffi::visitproc, data: *mut c_void) -> c_int {
    // SAFETY: as in `traverse`; the receiver is null until it is set.
    unsafe {
        let receiver = (*object.cast::<Messages>()).receiver;
        match visit(ffi::Py_TYPE(object).cast(), data) {
            0 if !receiver.is_null() => visit(receiver, data),
            stop => stop,
        }
    }
}

unsafe extern "C" fn itself(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a new reference to the caller's.
    unsafe { ffi::Py_NewRef(object) }
}

fn slot(slot: c_int, function: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc: function }
}

/// A type with these slots, `size` bytes an object, below `base` (null: `object`).
fn make_type<'py>(
    py: Python<'py>,
    name: &'static CStr,
    size: usize,
    slots: &mut [ffi::PyType_Slot],
    base: *mut ffi::PyObject,
    flags: std::ffi::c_ulong,
) -> PyResult<Bound<'py, PyType>> {
    let known = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_GC | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: size as c_int,
        itemsize: 0,
        flags: (known | flags) as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: attached; a specification that the call copies, whose slots end with a 0.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpecWithBases(&mut spec, base))? };
    Ok(class.cast_into::<PyType>()?)
}

/// What a topic's message says besides what a ring's does, as attributes.
fn members() -> [ffi::PyMemberDef; 4] {
    let member = |name: &'static CStr, at: usize, doc: &'static CStr| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_ULONGLONG,
        offset: (STAMP + at) as ffi::Py_ssize_t,
        flags: ffi::Py_READONLY,
        doc: doc.as_ptr(),
    };
    [
        member(c"seq", offset_of!(Stamp, seq), c"The message's number: the topic's first one has 1."),
        member(
            c"time",
            offset_of!(Stamp, time),
            c"When it was sent: nanoseconds since 1970 by the publisher's wall clock; 0 if the publisher gives no times.",
        ),
        member(c"lost", offset_of!(Stamp, lost), c"How many messages were lost right before this one."),
        ffi::PyMemberDef {
            name: ptr::null(),
            type_code: 0,
            offset: 0,
            flags: 0,
            doc: ptr::null(),
        },
    ]
}

const TOPIC_MESSAGE: &CStr = c"A received message of a topic: a `Message` that also has `seq`, `time` and `lost`.

Of a reliable subscriber it is a read-only view of the shared memory, which the publisher waits for. Of a lossy or latest one,
and of a topic whose publisher may eject subscribers, it is a copy: memory of its own, which may be written and kept.";

/// The types of this file; the results are what Python knows as `Message` and `TopicMessage`.
pub(crate) fn types(py: Python<'_>) -> PyResult<[Bound<'_, PyType>; 2]> {
    static TYPES: PyOnceLock<[Py<PyType>; 2]> = PyOnceLock::new();
    let classes = TYPES.get_or_try_init(py, || {
        let base = py.get_type::<Message>();
        let size: usize = base.getattr("__basicsize__")?.extract()?;
        assert_eq!(size, VALUE + size_of::<Message>(), "pyo3 lays objects out as `VALUE` says");
        let doc = CString::new(base.getattr("__doc__")?.extract::<String>()?)?;
        let slots = |doc: &CStr, dealloc: *mut c_void| {
            [
                slot(ffi::Py_tp_doc, doc.as_ptr().cast_mut().cast()),
                slot(ffi::Py_tp_dealloc, dealloc),
                slot(ffi::Py_tp_traverse, traverse as *mut c_void),
                slot(ffi::Py_bf_getbuffer, getbuffer as *mut c_void),
                slot(ffi::Py_bf_releasebuffer, releasebuffer as *mut c_void),
            ]
        };
        let mut members = members();
        let mut of_ring = slots(&doc, dealloc::<OF_RING> as *mut c_void).to_vec();
        of_ring.push(slot(0, ptr::null_mut()));
        let class = make_type(py, c"ramway.Message", size, &mut of_ring, base.as_ptr(), ffi::Py_TPFLAGS_BASETYPE)?;
        let mut of_topic = slots(TOPIC_MESSAGE, dealloc::<OF_TOPIC> as *mut c_void).to_vec();
        of_topic.extend([slot(ffi::Py_tp_members, members.as_mut_ptr().cast()), slot(0, ptr::null_mut())]);
        let size = STAMP + size_of::<Stamp>();
        let topic_class = make_type(py, c"ramway.TopicMessage", size, &mut of_topic, class.as_ptr(), 0)?;
        let mut of_loop = [
            slot(ffi::Py_tp_dealloc, messages_dealloc as *mut c_void),
            slot(ffi::Py_tp_traverse, messages_traverse as *mut c_void),
            slot(ffi::Py_tp_iter, itself as *mut c_void),
            slot(ffi::Py_tp_iternext, next as *mut c_void),
            slot(0, ptr::null_mut()),
        ];
        let messages = make_type(py, c"ramway._Messages", size_of::<Messages>(), &mut of_loop, ptr::null_mut(), 0)?;
        CLASSES[OF_RING].set(class.as_type_ptr());
        CLASSES[OF_TOPIC].set(topic_class.as_type_ptr());
        // Kept for the life of the process, as the classes are.
        MESSAGES.set(messages.into_ptr().cast());
        Ok::<_, PyErr>([class.unbind(), topic_class.unbind()])
    })?;
    Ok(classes.each_ref().map(|class| class.bind(py).clone()))
}
