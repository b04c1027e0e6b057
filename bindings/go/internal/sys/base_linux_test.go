package sys

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func memory(t *testing.T, size int64) int {
	t.Helper()
	fd, err := unix.MemfdCreate("ramway-test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Close(fd) })
	if err := Allocate(fd, 0, size); err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestAllocationTakesTheSpaceAndGrowsTheFile(t *testing.T) {
	fd := memory(t, 4096)
	if err := Allocate(fd, 4096, 40<<20); err != nil {
		t.Fatal(err)
	}
	stat, err := Stat(fd)
	if err != nil || stat.Size != 4096+40<<20 || stat.Blocks*512 < 40<<20 {
		t.Fatal(stat, err)
	}
	for _, length := range []int64{1 << 46, 1<<62 - 1, -1, 1<<63 - 1} {
		err := Allocate(fd, 4096, length)
		if _, ok := err.(*LimitError); !ok {
			t.Fatalf("%d bytes: %v", length, err)
		}
	}
	if err := Allocate(fd, 0, 1<<46); !strings.Contains(err.Error(), "70368744177664 bytes asked") || !strings.Contains(err.Error(), "MemAvailable") {
		t.Fatal(err)
	}
}

func TestControlGroups(t *testing.T) {
	one := "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"
	two := "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw"
	cpu := "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu"
	part := "30 20 0:26 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate"
	for _, c := range []struct {
		cgroup, mountinfo string
		want              []group
	}{
		{"4:memory:/a/b\n1:cpu:/\n0::/\n", cpu + "\n" + one + "\n" + two + "\n", []group{
			{"/sys/fs/cgroup/memory/a/b", false}, {"/sys/fs/cgroup/memory/a", false}, {"/sys/fs/cgroup/memory", false},
			{"/sys/fs/cgroup/unified", true}}},
		{"0::/docker/abc\n", part, []group{{"/sys/fs/cgroup", true}}},
		{"0::/docker/abcdef\n", part, []group{{"/sys/fs/cgroup", true}}},
		{"0::/\n", part, []group{{"/sys/fs/cgroup", true}}},
		{"0::/\n", "", nil},
		{"nonsense\n::\n0::", "also - nonsense\n", nil},
	} {
		if got := memoryGroups(c.cgroup, c.mountinfo); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %v, expected %v", c.cgroup, got, c.want)
		}
	}
}

func TestGroupLimits(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := group{dir, true}
	if _, _, found := g.available(); found {
		t.Fatal("no files, no limit")
	}
	write("memory.max", "max\n")
	write("memory.current", "300\n")
	if _, _, found := g.available(); found {
		t.Fatal("max is no limit")
	}
	write("memory.max", "1000\n")
	write("memory.stat", "anon 5\ninactive_file 60\nactive_file 40\n")
	if limit, left, found := g.available(); !found || limit != 1000 || left != 800 {
		t.Fatal(limit, left, found)
	}
	write("memory.limit_in_bytes", "500\n")
	write("memory.usage_in_bytes", "600\n")
	write("memory.stat", "total_inactive_file 700\n")
	if limit, left, found := (group{dir, false}).available(); !found || limit != 500 || left != 500 {
		t.Fatal(limit, left, found)
	}
}

func TestNumbers(t *testing.T) {
	text := "MemTotal:       24682416 kB\nMemFree:        1 kB\nMemAvailable:   100 kB\nBad: x\n"
	if n, ok := field(text, "MemAvailable:"); !ok || n != 100 {
		t.Fatal(n, ok)
	}
	if _, ok := field(text, "Mem"); ok {
		t.Fatal("not that word")
	}
	if _, ok := field(text, "Bad:"); ok {
		t.Fatal("not a number")
	}
	if err := compare(10, 9, "the moon"); err == nil || err.Error() != "10 bytes asked, 9 available, limited by the moon" {
		t.Fatal(err)
	}
	if compare(9, 9, "") != nil {
		t.Fatal("as many as there are")
	}
	if lessHeadroom(1<<40, 1<<40) != 1<<40-headroomMax || lessHeadroom(100, 3200) != 0 || lessHeadroom(101, 3200) != 1 {
		t.Fatal("headroom")
	}
}

func TestIDs(t *testing.T) {
	want := [16]byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}
	if got := parseID("01234567-89ab-CDEF-0123-456789abcdef\n"); got != want {
		t.Fatal(got)
	}
	for _, bad := range []string{"", "0123", "no uuid at all, none"} {
		if parseID(bad) != [16]byte{} {
			t.Fatal(bad)
		}
	}
	if BootID() == [16]byte{} {
		t.Fatal("this kernel tells its boot id")
	}
}

func TestDescriptionsOfOneProcessAreStrangers(t *testing.T) {
	a := memory(t, 4096)
	b, err := Reopen(a)
	if err != nil {
		t.Fatal(err)
	}
	defer Close(b)
	expect := func(fd int, at int64, mode LockMode, want bool) {
		t.Helper()
		if got, err := TryLock(fd, at, mode); got != want || err != nil {
			t.Fatal(got, err)
		}
	}
	held := func(fd int, at int64, want LockMode) {
		t.Helper()
		if got, err := HeldByAnother(fd, at); got != want || err != nil {
			t.Fatal(got, err)
		}
	}
	expect(a, 0, Shared, true)
	expect(b, 0, Shared, true)
	expect(a, 0, Exclusive, false)
	held(a, 0, Shared)
	Unlock(b, 0)
	held(a, 0, Unlocked) // one's own lock is not another's
	expect(a, 0, Exclusive, true)
	held(b, 0, Exclusive)
	held(b, 1, Unlocked) // one byte each
	// A read-only description can ask and share.
	reader, err := openAgain(unix.AT_FDCWD, ProcPath(a), unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer Close(reader)
	held(reader, 0, Exclusive)
	expect(reader, 3, Shared, true)
	if _, err := TryLock(reader, 4, Exclusive); err == nil {
		t.Fatal("a read-only description cannot lock exclusively")
	}
}

func TestWhatCannotBeMappedIsAnError(t *testing.T) {
	fd := memory(t, int64(PageSize()))
	for _, capacity := range []int{0, -1, 1 << 60, 1 << 62} {
		if _, err := MirrorMap(fd, 0, capacity, false); err == nil {
			t.Fatal(capacity)
		}
	}
	if _, err := Map(fd, 1, PageSize(), false); err == nil {
		t.Fatal("an offset that is no page")
	}
}

func TestPrefaultMapsEveryPage(t *testing.T) {
	const length = 1 << 20
	fd := memory(t, length)
	resident := func(at unsafe.Pointer) bool {
		pages := make([]byte, length/PageSize())
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(at), length, uintptr(unsafe.Pointer(&pages[0])))
		if errno != 0 {
			t.Fatal(errno)
		}
		for _, page := range pages {
			if page&1 == 0 {
				return false
			}
		}
		return true
	}
	for _, writable := range []bool{true, false} {
		at, err := Map(fd, 0, length, writable)
		if err != nil {
			t.Fatal(err)
		}
		if err := Place(at, length, 1, writable, Placement{Prefault: true}); err != nil {
			t.Fatal(err)
		}
		touch(at, length, writable)
		if !resident(at) {
			t.Fatal("a page is missing")
		}
		_ = Unmap(at, length)
	}
}
