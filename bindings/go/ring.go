package ramway

// CreateSender makes a ring that must be new, and is its sender. The name ([A-Za-z0-9._-]{1,80}, not starting with a
// dot, not ending in ".sock") stands in the Ramway directory: RAMWAY_DIR, else /dev/shm/ramway-<euid>. With a "/" in it,
// it is a path. The name goes when the last handle does, unless messages (or an orderly close) are undelivered: then it
// stays for the next receiver.
//
// ErrAlreadyExists if somebody uses the name, if it holds what was never delivered (unless Options.Discard), or if
// something else has it. What dead processes left empty is replaced. Also ErrNoSpace; ErrInvalidArgument for a name or
// options that cannot be; ErrUnsupported for a file system without shared mappings or locks; ErrPermissionDenied;
// ErrTimedOut if others hold the name all the time.
//
//	tx, err := ramway.CreateSender("ticks", ramway.Options{Capacity: 8 << 20, Align: 64})
func CreateSender(name string, o Options) (*Sender, error) { return attachSender(name, howCreate, o) }

// OpenSender is the sender of a ring that exists, also of one that dead processes left: its messages are still there.
// ErrNotFound if there is none (see Options.Timeout), ErrBusy if it has a sender; ErrAbiMismatch or ErrCorrupt if the
// name leads to what is no ring of this version, which is left alone.
//
//	tx, err := ramway.OpenSender("ticks", ramway.Options{Timeout: time.Second})
func OpenSender(name string, o Options) (*Sender, error) { return attachSender(name, howOpen, o) }

// OpenOrCreateSender opens a ring if it exists, and makes it if not. ErrInvalidArgument if it exists with another
// capacity or alignment than was asked for.
//
//	tx, err := ramway.OpenOrCreateSender("ticks", ramway.Options{})
func OpenOrCreateSender(name string, o Options) (*Sender, error) {
	return attachSender(name, howOpenOrCreate, o)
}

// CreateReceiver is [CreateSender] for the other end: either side may create the ring.
//
//	rx, err := ramway.CreateReceiver("ticks", ramway.Options{})
func CreateReceiver(name string, o Options) (*Receiver, error) {
	return attachReceiver(name, howCreate, o)
}

// OpenReceiver is [OpenSender] for the other end. It starts with what is undelivered.
//
//	rx, err := ramway.OpenReceiver("ticks", ramway.Options{Timeout: time.Second})
func OpenReceiver(name string, o Options) (*Receiver, error) { return attachReceiver(name, howOpen, o) }

// OpenOrCreateReceiver is [OpenOrCreateSender] for the other end.
//
//	rx, err := ramway.OpenOrCreateReceiver("ticks", ramway.Options{})
func OpenOrCreateReceiver(name string, o Options) (*Receiver, error) {
	return attachReceiver(name, howOpenOrCreate, o)
}

func attachSender(name string, how how, o Options) (*Sender, error) {
	a, err := attachNamed(name, how, o, producer)
	if err != nil {
		return nil, err
	}
	return newSender(a, o)
}

func attachReceiver(name string, how how, o Options) (*Receiver, error) {
	a, err := attachNamed(name, how, o, consumer)
	if err != nil {
		return nil, err
	}
	return newReceiver(a, o)
}
