package ramway

import (
	"bytes"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// Names, the directory that they stand in, and what is there that is no sound segment: a clear error from every way in,
// and the thing untouched.

func init() {
	helpers["by-name"] = func([]string) {
		for _, bad := range badNames {
			for _, h := range []how{howCreate, howOpen} {
				_, err := attachNamed(bad, h, Options{}, consumer)
				if KindOf(err) != InvalidArgument {
					say("%q: %v", bad, err)
				}
			}
		}
		for _, wait := range []time.Duration{0, 20 * time.Millisecond} {
			_, err := attachNamed("absent", howOpen, Options{Timeout: wait}, consumer)
			if KindOf(err) != NotFound {
				say("absent: %v", err)
			}
		}
		if _, err := os.Stat(Directory()); err == nil {
			say("opening made the directory")
		}
		longest, err := attachNamed(strings.Repeat("x", 80), howCreate, Options{}, consumer)
		must(err)
		must(longest.release())
		a, err := attachNamed("a-Valid_name.1", howCreate, Options{}, consumer)
		must(err)
		say("made")
		told()
		must(a.release())
	}
}

var badNames = []string{"", ".hidden", "..", "a b", "a.sock", "é", "a\x00b", strings.Repeat("x", 81), "/", "/dev/shm/",
	"a/..", "./.", "/dev/shm/x\x00y"}

// bytesOf is a ring's data, mapped twice.
func bytesOf(a *attachment) []byte { return unsafe.Slice((*byte)(a.data), 2*a.capacity) }

func TestNamesStandInTheRamwayDirectory(t *testing.T) {
	root := newFolder(t).at("made-on-demand")
	p := startPeerWith(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "RAMWAY_DIR="+root) }, "by-name")
	p.expect("made")
	info, err := os.Stat(root)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatal(info, err)
	}
	if _, err := os.Stat(filepath.Join(root, "a-Valid_name.1")); err != nil {
		t.Fatal(err)
	}
	p.finish()
}

func TestFilesArePrivateUnlessAskedFor(t *testing.T) {
	dir := newFolder(t)
	for name, o := range map[string]Options{"600": {}, "666": {Mode: 0o666}, "640": {Mode: 0o640}} {
		a := hold(t, dir.at(name), howCreate, o, producer)
		info, err := os.Stat(dir.at(name))
		if err != nil || info.Mode().Perm() != o.Mode && o.Mode != 0 || o.Mode == 0 && info.Mode().Perm() != 0o600 {
			t.Fatal(info, err)
		}
		_ = a.release()
	}
}

func TestTheMirrorIsOneMemory(t *testing.T) {
	dir := newFolder(t)
	for _, capacity := range []int64{4096, 1 << 16, 4 << 20} {
		a := hold(t, dir.at("ring"), howCreate, Options{Capacity: capacity}, producer)
		b := hold(t, dir.at("ring"), howOpen, Options{}, consumer)
		for _, at := range []int64{0, 1, capacity / 2, capacity - 1} {
			bytesOf(a)[at] = 0x55
			if bytesOf(a)[at+capacity] != 0x55 || bytesOf(b)[at] != 0x55 {
				t.Fatal("the copies differ at", at)
			}
			bytesOf(b)[at+capacity] = 0x66
			if bytesOf(a)[at] != 0x66 {
				t.Fatal("the copies differ at", at)
			}
		}
		if capacity >= 2<<20 && uintptr(a.data)%(2<<20) != 0 {
			t.Fatal("no room for huge pages")
		}
		_, _ = a.release(), b.release()
	}
}

// Every way to come at a name: whatever is there and is no sound ring.
func expectForeign(t *testing.T, name string, kind Kind) {
	t.Helper()
	before := stateOf(t, name)
	for _, way := range []struct {
		how how
		o   Options
	}{{howOpen, Options{}}, {howOpenOrCreate, Options{}}, {howCreate, Options{}}, {howCreate, Options{Discard: true}}} {
		want := kind
		if way.how == howCreate {
			want = AlreadyExists
		}
		for _, r := range []role{producer, consumer} {
			err := refused(t, name, way.how, way.o, r)
			expectKind(t, err, want)
			expectText(t, err, name)
		}
	}
	if after := stateOf(t, name); after != before {
		t.Fatalf("it was touched: %v, before %v", after, before)
	}
}

type state struct {
	mode  os.FileMode
	inode uint64
	size  int64
	bytes string
}

func stateOf(t *testing.T, path string) state {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	s := state{mode: info.Mode(), inode: info.Sys().(*syscall.Stat_t).Ino, size: info.Size()}
	if info.Mode().IsRegular() {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s.bytes = string(content)
	}
	return s
}

func TestOtherFilesThanRegularOnes(t *testing.T) {
	things := map[string]func(at string) error{
		"directory":      func(at string) error { return os.Mkdir(at, 0o755) },
		"dangling link":  func(at string) error { return os.Symlink("nowhere", at) },
		"link to itself": func(at string) error { return os.Symlink("thing", at) },
		"fifo":           func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"socket": func(at string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		},
	}
	for what, make := range things {
		t.Run(what, func(t *testing.T) {
			name := newFolder(t).at("thing")
			if err := make(name); err != nil {
				t.Fatal(err)
			}
			expectForeign(t, name, InvalidArgument)
		})
	}
	t.Run("link to a good segment", func(t *testing.T) {
		dir := newFolder(t)
		a := hold(t, dir.at("target"), howCreate, Options{}, consumer)
		defer a.release()
		if err := os.Symlink("target", dir.at("thing")); err != nil {
			t.Fatal(err)
		}
		expectForeign(t, dir.at("thing"), InvalidArgument)
	})
	t.Run("device", func(t *testing.T) {
		// Opening one can do anything, so none is.
		err := refused(t, "/dev/null", howOpen, Options{}, producer)
		expectKind(t, err, InvalidArgument)
		expectText(t, err, "device")
	})
}

func TestRegularFilesOfOthers(t *testing.T) {
	for what, content := range map[string][]byte{
		"empty":            {},
		"text":             []byte("Dear diary"),
		"a page of zeros":  make([]byte, headerSize),
		"a MiB of ones":    bytes.Repeat([]byte{0xFF}, 1<<20),
		"almost the magic": append([]byte("RAMWAY\n\n"), make([]byte, 8192)...),
		"half the magic":   []byte("RAMW"),
	} {
		t.Run(what, func(t *testing.T) {
			dir := newFolder(t)
			if err := os.WriteFile(dir.at("thing"), content, 0o600); err != nil {
				t.Fatal(err)
			}
			expectForeign(t, dir.at("thing"), AbiMismatch)
			dir.expectNames("thing")
		})
	}
}

func TestCutOffAndGrownSegments(t *testing.T) {
	for _, size := range []int64{8, 64, 4095, 4096, 4097, 8192, 12_287, 12_289, 1 << 20} {
		dir := newFolder(t)
		name := dir.at("thing")
		_ = hold(t, name, howCreate, Options{Capacity: 8192, Persistent: true}, producer).release()
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
		expectForeign(t, name, Corrupt)
	}
}

func TestASegmentOfAnotherKind(t *testing.T) {
	dir := newFolder(t)
	m, err := openRegionNamed(dir.at("thing"), howCreate, 100, Options{}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.release()
	expectForeign(t, dir.at("thing"), InvalidArgument)
	expectText(t, refused(t, dir.at("thing"), howOpen, Options{}, producer), "this is a region, not a ring")
}

func TestMoreThanTheMachineHas(t *testing.T) {
	dir := newFolder(t)
	for _, capacity := range []int64{1 << 50, 1 << 62, 1<<62 + 1, math.MaxInt64} {
		err := refused(t, dir.at("ring"), howCreate, Options{Capacity: capacity}, producer)
		expectKind(t, err, NoSpace)
		dir.expectNames()
		_, err = openRegionNamed(dir.at("region"), howCreate, capacity, Options{}, false)
		expectKind(t, err, NoSpace)
		dir.expectNames()
	}
}
