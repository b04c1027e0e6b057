package ramway

import (
	"io/fs"
	"math"
	"time"
)

// Options say how a ring or region is to be made or opened, and how its handle waits. The zero value means the
// defaults: 1 MiB, payloads aligned to 16 bytes, [Hybrid] waiting, no waiting for names.
type Options struct {
	// Capacity is the ring's size in bytes, frame headers (16 bytes a message) included, rounded up to a power of two of
	// at least a page; 0 is 1 MiB. An existing ring must have just this capacity if it is said here (InvalidArgument).
	Capacity int64
	// Align is what each payload's address is a multiple of, in bytes: a power of two from 16 to 4096; 0 is 16. An
	// existing ring must have just this alignment if it is said here (InvalidArgument).
	Align int
	// Discard lets Create throw away undelivered messages that dead processes left. Never those of live ones. With another
	// call than a Create it is InvalidArgument.
	Discard bool
	// Persistent makes a new segment keep its name when its last handle goes. With an Open it is InvalidArgument.
	Persistent bool
	// AllowDisk accepts a file system that is not in memory. The kernel then writes the pages back as it likes, and a
	// segment of another boot is never resumed.
	AllowDisk bool
	// LockMemory locks the data in memory. An error names RLIMIT_MEMLOCK if that is in the way.
	LockMemory bool
	// HugePages puts the data into huge pages and checks that it is there: Unsupported names the setting in the way. The
	// creator has to ask for them too; capacities are then at least a huge page.
	HugePages bool
	// Prefault faults the whole data in now instead of on first use.
	Prefault bool
	// NUMANode is the node that a new segment's data is put on (node := 1; NUMANode: &node); nil leaves that to the kernel.
	// One that does not exist is InvalidArgument; an existing segment whose data is elsewhere is Unsupported.
	NUMANode *int
	// Mode is the permission bits of a new segment's file, whatever the umask; 0 is 0600. Both sides of a ring need to
	// read and write. With an Open it is InvalidArgument.
	Mode fs.FileMode
	// Timeout is how long opening waits for a name that is not there yet, and for a role that is taken (a supervisor
	// may be faster than the kernel is with a process that was killed). 0: not at all; [Forever]: as long as it takes;
	// below 0 is ErrInvalidArgument. Independently of it, races with others who are creating or removing the same name are
	// retried for up to a second.
	Timeout time.Duration
	// Wait is how blocking calls of the handle wait.
	Wait WaitMode
	// Guard makes a slice that was kept longer than its message a fault instead of another message's bytes: the
	// receiver's views lie in a second mapping of which only the outstanding frames can be read. It costs system calls
	// per message; meant for tests and for finding such mistakes. Always on in builds with -race.
	Guard bool
	// NoMembarrier keeps this process from using membarrier, which takes a fence off each message. Registering it takes
	// up to 12 ms, once per process. RAMWAY_MEMBARRIER=0 in the environment says the same.
	NoMembarrier bool
}

// Forever is a time-out that never passes.
const Forever time.Duration = math.MaxInt64

// checkTimeout refuses what is no length of time.
func checkTimeout(option string, d time.Duration) error {
	if d < 0 {
		return failf(InvalidArgument, "%s is %v: expected 0 or more, or Forever", option, d)
	}
	return nil
}

// WaitMode is how a blocking call waits.
type WaitMode uint8

const (
	// Hybrid spins for up to about 75 µs, less where waits have been long, and then sleeps.
	Hybrid WaitMode = iota
	// Spin never sleeps in the kernel while the peer lives: the lowest latency, at the price of a processor. Other
	// goroutines still get their turns.
	Spin
	// Block sleeps at once: the least work, at the price of a wake-up per wait.
	Block
)

// String is the mode's name.
func (m WaitMode) String() string {
	switch m {
	case Hybrid:
		return "hybrid"
	case Spin:
		return "spin"
	case Block:
		return "block"
	}
	return "unknown"
}

// check refuses what is not one of the modes.
func (m WaitMode) check() error {
	if m > Block {
		return failf(InvalidArgument, "%d is not a wait mode: expected Hybrid, Spin or Block", uint8(m))
	}
	return nil
}

// fileMode is the permissions of a new segment's file.
func (o *Options) fileMode() uint32 {
	if o.Mode == 0 {
		return 0o600
	}
	return uint32(o.Mode.Perm())
}
