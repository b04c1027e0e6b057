package ramway

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

func init() {
	helpers["as-user"] = func(args []string) {
		uid, err := strconv.Atoi(args[0])
		must(err)
		must(syscall.Setuid(uid))
		a, err := attachNamed("mine", howCreate, Options{}, consumer)
		if err != nil {
			say("%s", KindOf(err).String())
			return
		}
		say("ok")
		must(a.release())
	}
	helpers["little-lock"] = func(args []string) {
		must(syscall.Setrlimit(unix.RLIMIT_MEMLOCK, &syscall.Rlimit{Cur: 8192, Max: 8192}))
		if os.Geteuid() == 0 {
			// Root may lock what it likes.
			must(syscall.Setuid(1_500_000_000))
		}
		_, err := attachNamed(filepath.Join(args[0], "ring"), howCreate, Options{LockMemory: true}, consumer)
		say("%v", err)
	}
	helpers["small-tmpfs"] = inASmallTmpfs
	helpers["few-inodes"] = withFewInodes
}

func TestNoDescriptorIsLeftOrInherited(t *testing.T) {
	dir := newFolder(t)
	open := func() (n int) {
		links, _ := filepath.Glob("/proc/self/fd/*")
		for _, link := range links {
			to, err := os.Readlink(link)
			if err == nil && len(to) >= len(dir.path) && to[:len(dir.path)] == dir.path {
				n++
			}
		}
		return n
	}
	name := dir.at("ring")
	a := hold(t, name, howCreate, Options{}, producer)
	if open() == 0 {
		t.Fatal("there is a lock description")
	}
	flags := func(fd int) int {
		n, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		return int(n)
	}
	l := a.link.(*lockLink)
	for _, fd := range []int{a.fd, l.lock, l.dir} {
		if flags(fd)&syscall.FD_CLOEXEC == 0 {
			t.Fatal("a descriptor that a child would inherit")
		}
	}
	for range 20 {
		_ = refused(t, name, howCreate, Options{}, producer)
		_ = refused(t, name, howOpen, Options{}, producer)
		_ = refused(t, name, howOpen, Options{Capacity: 1 << 30}, producer)
		_ = refused(t, dir.at("absent"), howOpen, Options{}, producer)
	}
	_ = a.release()
	if n := open(); n != 0 {
		t.Fatalf("%d descriptors are left", n)
	}
}

// Where every file needs a name: the same life under a temporary name that nobody takes for a segment.
func TestStagedUnderATemporaryName(t *testing.T) {
	dir := newFolder(t)
	p, err := resolveName(dir.at("ring"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	s, err := ringSpec(4096, 16, sys.PageSize())
	if err != nil {
		t.Fatal(err)
	}
	r := &request{name: dir.at("ring"), kind: kindRing, spec: s.named(false), roleByte: byteProducer, o: &Options{}}
	build := func() *staged {
		t.Helper()
		b := new(staged)
		if err := b.build(p, r, false); err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := build()
	if names := dir.names(); len(names) != 1 || !strings.HasPrefix(names[0], ".ramway-") || len(names[0]) != 8+16+4 {
		t.Fatal(names)
	}
	if err := b.giveName(p); err != nil {
		t.Fatal(err)
	}
	dir.expectNames("ring")
	second := build()
	if err := second.giveName(p); err != unix.EEXIST {
		t.Fatal(err)
	}
	second.drop()
	dir.expectNames("ring")
	if !b.segment.link.held(byteListener) || b.segment.link.vanished() {
		// held asks for others: the one that was dropped must not have let go of the living one's role.
		if a, err := attachNamed(dir.at("ring"), howOpen, Options{}, producer); err == nil {
			_ = a.release()
			t.Fatal("the role was let go")
		}
	}
	_ = b.segment.drop()
	dir.expectNames()
	// A cleaner is faster than the creator: it starts over instead of publishing a file that is gone.
	third := build()
	if err := os.Remove(dir.at(dir.names()[0])); err != nil {
		t.Fatal(err)
	}
	if err := third.giveName(p); err != unix.ENOENT {
		t.Fatal(err)
	}
	third.drop()
	dir.expectNames()
}

func TestTheDefaultDirectoryMustBeOursAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become a user whose directory nobody else uses")
	}
	uid := 1_500_000_000 + os.Getpid()
	root := fmt.Sprintf("/dev/shm/ramway-%d", uid)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	expect := func(said string) {
		t.Helper()
		p := startPeerWith(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "RAMWAY_DIR=") }, "as-user", strconv.Itoa(uid))
		p.expect(said)
		p.finish()
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("ok")
	info, err := os.Stat(root)
	must(err)
	if info.Mode().Perm() != 0o700 || int(info.Sys().(*syscall.Stat_t).Uid) != uid {
		t.Fatal(info.Mode())
	}
	must(os.Chmod(root, 0o755))
	expect("PermissionDenied")
	must(os.Remove(root))
	must(os.Mkdir(root, 0o700))
	expect("PermissionDenied") // somebody else's
	must(os.Remove(root))
	dir := newFolder(t)
	must(os.Chown(dir.path, uid, -1))
	must(os.Symlink(dir.path, root))
	expect("PermissionDenied") // a link is no real directory
	must(os.Remove(root))
	must(os.WriteFile(root, nil, 0o600))
	expect("PermissionDenied") // nor is a file
	// Somebody else's file in a directory that everybody may write.
	must(os.Remove(root))
	must(os.WriteFile(dir.at("mine"), nil, 0o600))
	must(os.Chmod(dir.path, 0o777))
	p := startPeerWith(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "RAMWAY_DIR="+dir.path) }, "as-user", strconv.Itoa(uid+1))
	p.expect("PermissionDenied")
	p.finish()
	dir.expectNames("mine")
}

// inOwnMounts starts a helper where it may mount file systems of its own; "" if this process may not start one.
func inOwnMounts(t *testing.T, helper, path string) string {
	t.Helper()
	cmd := again(t)
	cmd.Env = append(os.Environ(), helperName+"="+helper, helperArgs+"="+path)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	}
	out, err := cmd.Output()
	if err == nil {
		return strings.TrimSpace(string(out))
	}
	if _, ran := err.(*exec.ExitError); ran {
		t.Fatalf("%v: %s", err, out)
	}
	return "cannot mount"
}

// mountTmpfs, in a helper, puts a small file system over a directory.
func mountTmpfs(dir, options string) bool {
	_ = unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "")
	return unix.Mount("tmpfs", dir, "tmpfs", 0, options) == nil
}

func check(so bool, what string, args ...any) {
	if !so {
		must(fmt.Errorf(what, args...))
	}
}

// A full file system is an error that says so, before anybody is hurt, and leaves nothing behind.
func inASmallTmpfs(args []string) {
	dir := args[0]
	if !mountTmpfs(dir, "size=1m,mode=0777") {
		say("cannot mount")
		return
	}
	count := func() int {
		entries, err := os.ReadDir(dir)
		must(err)
		return len(entries)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, capacity := range []int64{1 << 20, 1 << 21, 1 << 30, 1 << 40} {
		_, err := attachNamed(at("ring"), howCreate, Options{Capacity: capacity}, consumer)
		check(KindOf(err) == NoSpace, "capacity %d: %v", capacity, err)
		check(strings.Contains(err.Error(), at("ring")), "no name in: %v", err)
		check(count() == 0, "something is left")
	}
	a, err := attachNamed(at("fits"), howCreate, Options{Capacity: 1 << 19}, producer)
	must(err)
	_, err = attachNamed(at("second"), howCreate, Options{Capacity: 1 << 19}, producer)
	check(KindOf(err) == NoSpace, "second: %v", err)
	// The space is taken at creation: filling the ring to the brim is no SIGBUS, however full the rest is.
	_ = os.WriteFile(at("filler"), make([]byte, 1<<20), 0o600)
	for i := range int(a.capacity) {
		bytesOf(a)[i] = 1
	}
	must(a.release())
	must(os.Remove(at("filler")))
	check(count() == 0, "something is left")
	say("fine")
}

func withFewInodes(args []string) {
	dir := args[0]
	if !mountTmpfs(dir, "size=1m,nr_inodes=2,mode=0777") {
		say("cannot mount")
		return
	}
	one, err := attachNamed(filepath.Join(dir, "one"), howCreate, Options{Capacity: 4096}, producer)
	must(err)
	_, err = attachNamed(filepath.Join(dir, "two"), howCreate, Options{Capacity: 4096}, producer)
	check(KindOf(err) == NoSpace, "two: %v", err)
	must(one.release())
	say("fine")
}

func TestAFullFileSystemIsAnErrorAndNoSignal(t *testing.T) {
	for _, helper := range []string{"small-tmpfs", "few-inodes"} {
		switch said := inOwnMounts(t, helper, newFolder(t).path); said {
		case "fine":
		case "cannot mount":
			t.Skip("this process may not mount a file system")
		default:
			t.Fatal(said)
		}
	}
}

func TestDisksOnlyWhenAskedForAndOtherFileSystemsNever(t *testing.T) {
	expectKind(t, refused(t, "/proc/self/ring", howCreate, Options{AllowDisk: true}, producer), Unsupported)
	dir := t.TempDir()
	name := filepath.Join(dir, "ring")
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	switch uint32(fs.Type) {
	case unix.TMPFS_MAGIC:
		_ = hold(t, name, howCreate, Options{}, producer).release()
	case unix.OVERLAYFS_SUPER_MAGIC:
		expectKind(t, refused(t, name, howCreate, Options{}, producer), Unsupported)
		expectText(t, refused(t, name, howCreate, Options{AllowDisk: true}, producer), "overlay")
	default:
		err := refused(t, name, howCreate, Options{}, producer)
		expectKind(t, err, Unsupported)
		expectText(t, err, "AllowDisk")
		a := hold(t, name, howCreate, Options{AllowDisk: true}, producer)
		expectKind(t, refused(t, name, howOpen, Options{}, consumer), Unsupported)
		_ = hold(t, name, howOpen, Options{AllowDisk: true}, consumer).release()
		_ = a.release()
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Fatal(left, err)
	}
}

func TestPlacement(t *testing.T) {
	dir := newFolder(t)
	a := hold(t, dir.at("locked"), howCreate, Options{LockMemory: true, Prefault: true, Capacity: 1 << 16}, producer)
	_ = a.release()
	// A limit that is too small is named.
	if err := os.Chmod(dir.path, 0o777); err != nil {
		t.Fatal(err)
	}
	p := startPeer(t, "little-lock", dir.path)
	if said := p.hear(); !strings.Contains(said, "RLIMIT_MEMLOCK is 8192 bytes") || !strings.Contains(said, dir.at("ring")) {
		t.Fatal(said)
	}
	p.finish()
	dir.expectNames()
	huge, err := sys.HugePageSize()
	if err != nil {
		expectKind(t, refused(t, dir.at("huge"), howCreate, Options{HugePages: true}, producer), Unsupported)
		return
	}
	a, err = attachNamed(dir.at("huge"), howCreate, Options{HugePages: true, Capacity: 1}, producer)
	if err != nil {
		expectKind(t, err, Unsupported)
		expectText(t, err, "shmem_enabled", dir.at("huge"))
	} else {
		if int(a.capacity) != huge || int(a.dataOffset) != huge {
			t.Fatal(a.capacity, a.dataOffset)
		}
		_ = a.release()
	}
	// A file whose data does not begin on a huge page can never have them.
	a = hold(t, dir.at("small"), howCreate, Options{Capacity: int64(huge)}, producer)
	err = refused(t, dir.at("small"), howOpen, Options{HugePages: true}, consumer)
	expectKind(t, err, Unsupported)
	_ = a.release()
	dir.expectNames()
}
