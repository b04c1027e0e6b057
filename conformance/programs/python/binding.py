"""libramway through ctypes: just what the programs need.

Python's own binding will replace this file. What it shows already is that the format and the C interface carry a
language with a garbage collector: views of messages are memoryviews over the shared memory's addresses.
"""

import ctypes
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

FOREVER, TRY = -1, 0
CLOSED, PEER_DEAD, TIMED_OUT = 9, 11, 8
WAITS = {"spin": 1, "hybrid": 2, "block": 3}


class Options(Structure):
    _fields_ = [("size", c_size_t), ("capacity", c_uint64), ("align", c_uint32), ("flags", c_uint32),
                ("mode", c_uint32), ("wait_policy", c_uint32), ("timeout_ns", c_int64), ("numa_node", c_uint32),
                ("reserved", c_uint32)]


class BusOptions(Structure):
    _fields_ = [("size", c_size_t), ("capacity", c_uint64), ("capacity_back", c_uint64), ("align", c_uint32),
                ("flags", c_uint32), ("mode", c_uint32), ("wait_policy", c_uint32), ("uids", c_void_p),
                ("uid_count", c_uint32), ("backlog", c_uint32), ("timeout_ns", c_int64)]


class CMessage(Structure):
    _fields_ = [("data", c_void_p), ("len", c_size_t), ("tag", c_uint64), ("type_id", c_uint32)]


class Error(Exception):
    def __init__(self, number):
        super().__init__(lib.ramway_last_error().decode("utf-8", "replace"))
        self.number = number


def name(number):
    """An error's name, as docs/ABI.md spells it."""
    return lib.ramway_status_name(number).decode()


def must(number):
    if number:
        raise Error(number)


lib = None
# A memoryview over memory that is not Python's: (address, length, PyBUF_READ or PyBUF_WRITE).
_view = ctypes.pythonapi.PyMemoryView_FromMemory
_view.argtypes, _view.restype = (c_void_p, ctypes.c_ssize_t, c_int), ctypes.py_object
READ, WRITE = 0x100, 0x200


def load(path):
    """Loads libramway, before anything else here is used."""
    global lib
    lib = ctypes.CDLL(path)
    signatures = {
        "last_error": (c_char_p,), "status_name": (c_char_p, c_int),
        "send": (c_int, c_void_p, c_uint32, c_uint64, c_void_p, c_size_t, c_int64),
        "reserve": (c_int, c_void_p, c_size_t, c_int64, POINTER(c_void_p)),
        "commit": (c_int, c_void_p, c_size_t, c_uint32, c_uint64),
        "commit_unflushed": (c_int, c_void_p, c_size_t, c_uint32, c_uint64),
        "sender_last_tag": (c_bool, c_void_p, POINTER(c_uint64)),
        "recv": (c_int, c_void_p, c_int64, POINTER(CMessage)),
        "recv_batch": (c_int, c_void_p, c_int64, POINTER(CMessage), c_size_t, POINTER(c_size_t)),
        "recv_into": (c_int, c_void_p, c_int64, c_void_p, c_size_t, POINTER(CMessage)),
        "release": (c_int, c_void_p),
        "bus_listen": (c_int, c_char_p, POINTER(BusOptions), c_int64, POINTER(c_void_p)),
        "bus_connect": (c_int, c_char_p, POINTER(BusOptions), POINTER(c_void_p)),
        "bus_split": (c_int, c_void_p, POINTER(c_void_p), POINTER(c_void_p)),
        "region_open": (c_int, c_char_p, POINTER(Options), POINTER(c_void_p)),
        "region_data": (c_void_p, c_void_p), "region_len": (c_uint64, c_void_p), "region_close": (c_int, c_void_p),
    }
    for role in "sender", "receiver":
        signatures |= {
            f"{role}_create": (c_int, c_char_p, POINTER(Options), POINTER(c_void_p)),
            f"{role}_open": (c_int, c_char_p, POINTER(Options), POINTER(c_void_p)),
            f"{role}_close": (c_int, c_void_p), f"{role}_capacity": (c_uint64, c_void_p),
            f"{role}_epoch": (c_uint32, c_void_p), f"{role}_peer_epoch": (c_uint32, c_void_p),
        }
    for function, (result, *arguments) in signatures.items():
        found = getattr(lib, "ramway_" + function)
        found.restype, found.argtypes = result, arguments


class End:
    """What a sender and a receiver have in common."""

    role = ""

    def __init__(self, handle):
        self.handle = handle
        self._peer_epoch = getattr(lib, f"ramway_{self.role}_peer_epoch")
        self.capacity = getattr(lib, f"ramway_{self.role}_capacity")(handle)
        self.longest = min(self.capacity - 16, 2**31 - 17)

    @classmethod
    def named(cls, text, options, create):
        handle = c_void_p()
        call = getattr(lib, f"ramway_{cls.role}_{'create' if create else 'open'}")
        must(call(text.encode(), byref(options), byref(handle)))
        return cls(handle.value)

    def epoch(self):
        return getattr(lib, f"ramway_{self.role}_epoch")(self.handle)

    def peer_epoch(self):
        return self._peer_epoch(self.handle)

    def close(self):
        return getattr(lib, f"ramway_{self.role}_close")(self.handle)


class Sender(End):
    role = "sender"

    def last_tag(self):
        tag = c_uint64()
        return tag.value if lib.ramway_sender_last_tag(self.handle, byref(tag)) else None

    def send(self, type_id, tag, data, timeout):
        """Copies `data` (bytes) into the ring; gives the error's number or 0."""
        return lib.ramway_send(self.handle, type_id, tag, data, len(data), timeout)

    def reserve(self, length, timeout):
        """An error's number and None, or 0 and a writable view of the slot."""
        slot = c_void_p()
        number = lib.ramway_reserve(self.handle, length, timeout, byref(slot))
        return number, None if number else _view(slot.value, length, WRITE)

    def commit(self, length, type_id, tag, flush=True):
        return (lib.ramway_commit if flush else lib.ramway_commit_unflushed)(self.handle, length, type_id, tag)


class Message:
    """A received message; its view is valid until it is released."""

    __slots__ = ("type_id", "tag", "address", "view")

    def __init__(self, raw):
        self.type_id, self.tag, self.address = raw.type_id, raw.tag, raw.data
        self.view = _view(raw.data, raw.len, READ)


class Receiver(End):
    role = "receiver"

    def __init__(self, handle):
        super().__init__(handle)
        self._raw, self._count = CMessage(), c_size_t()
        self._many = (CMessage * 256)()
        self._buffer = None

    def recv(self, timeout):
        """An error's number and None, or 0 and a message that is to be released."""
        number = lib.ramway_recv(self.handle, timeout, byref(self._raw))
        return number, None if number else Message(self._raw)

    def recv_batch(self, most, timeout):
        """The same with a list of messages that are released together."""
        number = lib.ramway_recv_batch(self.handle, timeout, self._many, min(most, 256), byref(self._count))
        return number, None if number else [Message(self._many[i]) for i in range(self._count.value)]

    def recv_into(self, timeout):
        """The same with a copy; nothing is to be released."""
        if self._buffer is None:
            self._buffer = ctypes.create_string_buffer(self.longest)
        number = lib.ramway_recv_into(self.handle, timeout, self._buffer, self.longest, byref(self._raw))
        self._raw.data = ctypes.addressof(self._buffer)
        return number, None if number else Message(self._raw)

    def release(self):
        must(lib.ramway_release(self.handle))


def bus(call, options, *timeout):
    """Both halves of a bus: `call` is `bus_listen` or `bus_connect` with the name."""
    function, text = call
    handle, tx, rx = c_void_p(), c_void_p(), c_void_p()
    must(getattr(lib, "ramway_" + function)(text.encode(), byref(options), *timeout, byref(handle)))
    must(lib.ramway_bus_split(handle, byref(tx), byref(rx)))
    return Sender(tx.value), Receiver(rx.value)


def region(text, timeout_ns):
    """A copy of a region's bytes."""
    handle = c_void_p()
    options = Options(size=ctypes.sizeof(Options), timeout_ns=timeout_ns)
    must(lib.ramway_region_open(text.encode(), byref(options), byref(handle)))
    copy = ctypes.string_at(lib.ramway_region_data(handle), lib.ramway_region_len(handle))
    must(lib.ramway_region_close(handle))
    return copy
