package sys

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSealedMemoryHasASizeThatStays(t *testing.T) {
	fd, err := MemoryNew("ramway-test")
	if err != nil {
		t.Fatal(err)
	}
	defer Close(fd)
	if _, err := SealedSize(fd); !errors.Is(err, ErrNotSealed) {
		t.Fatal(err)
	}
	if err := MemorySize(fd, 8192); err != nil {
		t.Fatal(err)
	}
	if size, err := SealedSize(fd); size != 8192 || err != nil {
		t.Fatal(size, err)
	}
	if unix.Ftruncate(fd, 4096) == nil || unix.Ftruncate(fd, 16384) == nil {
		t.Fatal("its size was changed")
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err == nil {
		t.Fatal("its seals were changed")
	}
}

func TestMemoryOfHugePagesIsRefused(t *testing.T) {
	fd, err := unix.MemfdCreate("ramway-test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_HUGETLB)
	if err != nil {
		t.Log("this kernel has no memfd of huge pages")
		return
	}
	defer Close(fd)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	if _, err := SealedSize(fd); !errors.Is(err, ErrNotSealed) || !strings.Contains(err.Error(), "huge") {
		t.Fatal(err)
	}
}

func TestMemoryIsCloseOnExecWhateverItIsCalled(t *testing.T) {
	fd, err := MemoryNew(strings.Repeat("é/\n", 200))
	if err != nil {
		t.Fatal(err)
	}
	defer Close(fd)
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Fatal(flags, err)
	}
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil || !strings.HasPrefix(name, "/memfd:é/?é/?") {
		t.Fatal(name, err)
	}
}

func TestAHangUpIsSeenWhateverBytesAreLeft(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer Close(pair[0])
	if HungUp(pair[0]) {
		t.Fatal("at once")
	}
	if err := Send(pair[1], []byte("stray"), -1); err != nil {
		t.Fatal(err)
	}
	if HungUp(pair[0]) {
		t.Fatal("bytes are no hang-up")
	}
	if own, err := PeerCredentials(pair[0]); err != nil || own.PID != os.Getpid() || own.UID != EffectiveUID() {
		t.Fatal(own, err)
	}
	Close(pair[1])
	if !HungUp(pair[0]) {
		t.Fatal("it was not seen")
	}
	if err := Send(pair[0], []byte("x"), -1); err != unix.EPIPE {
		t.Fatal(err)
	}
	if !HungUp(pair[1]) {
		t.Fatal("a descriptor that is closed would be waited on forever")
	}
}
