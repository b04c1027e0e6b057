package sys

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// So long that a step's check of the limits costs little, so short that a full machine is noticed.
	allocationStep = 16 << 20
	// Left to page tables, the process itself and everybody else, at most; of a small limit a 32nd part.
	headroomMax = 16 << 20
)

// Allocate takes the space of length bytes from offset in the file, growing it where it is shorter, after a check of
// every limit that a later page fault would meet as SIGBUS or the OOM killer: a [LimitError] says which. On failure a
// part may be taken: throw the file away.
func Allocate(fd int, offset, length int64) error {
	end, err := fileEnd(offset, length)
	if err != nil || length == 0 {
		return err
	}
	limits, err := limitsOf(fd)
	if err != nil {
		return err
	}
	for at := offset; at < end; {
		// All that is still missing, so that what can never fit is refused before it has starved others.
		if err := limits.check(uint64(end - at)); err != nil {
			return err
		}
		step := min(end-at, allocationStep)
		// On a signal the kernel gives the step's pages back, and it is made again; signals are rarer than steps.
		if err := again(func() error { return unix.Fallocate(fd, 0, at, step) }); err != nil {
			return &doing{fmt.Sprintf("allocating %d bytes (%d done)", length, at-offset), err}
		}
		at += step
	}
	return nil
}

// limits are what limits the bytes behind one descriptor.
type limits struct {
	fd int
	// inMemory: the file's pages are memory for as long as it lives, not a cache of a disk.
	inMemory bool
	groups   []group
}

func limitsOf(fd int) (*limits, error) {
	fs, err := fstatfs(fd)
	if err != nil {
		return nil, &doing{"fstatfs of the segment", err}
	}
	l := &limits{fd: fd, inMemory: uint32(fs.Type) == unix.TMPFS_MAGIC || uint32(fs.Type) == unix.RAMFS_MAGIC}
	if l.inMemory {
		l.groups = memoryGroups(readText("/proc/self/cgroup"), readText("/proc/self/mountinfo"))
	}
	return l, nil
}

func readText(name string) string {
	text, _ := os.ReadFile(name)
	return string(text)
}

// check is a [LimitError] unless so many more bytes can be had now. A limit that cannot be read (no /proc, a container
// that hides its group) does not limit.
func (l *limits) check(needed uint64) error {
	fs, err := fstatfs(l.fd)
	if err != nil {
		return &doing{"fstatfs of the segment", err}
	}
	// A memfd, and a tmpfs mounted with size=0, count no blocks: no limit of the file system's.
	if fs.Blocks > 0 {
		if err := compare(needed, fs.Bavail*uint64(fs.Frsize), "its file system's free space (df)"); err != nil {
			return err
		}
	}
	if !l.inMemory {
		return nil
	}
	meminfo := readText("/proc/meminfo")
	total, known := field(meminfo, "MemTotal:")
	available, alsoKnown := field(meminfo, "MemAvailable:")
	if known && alsoKnown {
		free := lessHeadroom(available<<10, total<<10)
		if err := compare(needed, free, "the machine's MemAvailable (/proc/meminfo)"); err != nil {
			return err
		}
	}
	for _, g := range l.groups {
		limit, available, found := g.available()
		if !found {
			continue
		}
		name := fmt.Sprintf("the control group's limit (%s = %d)", g.limitFile(), limit)
		if err := compare(needed, lessHeadroom(available, limit), name); err != nil {
			return err
		}
	}
	return nil
}

func compare(needed, available uint64, limit string) error {
	if needed <= available {
		return nil
	}
	return &LimitError{fmt.Sprintf("%d bytes asked, %d available, limited by %s", needed, available, limit)}
}

func lessHeadroom(available, total uint64) uint64 {
	return available - min(available, total/32, headroomMax)
}

// field is the number after the line that starts with exactly this word.
func field(text, name string) (uint64, bool) {
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == name {
			number, err := strconv.ParseUint(words[1], 10, 64)
			return number, err == nil
		}
	}
	return 0, false
}

// group is one memory control group that this process is in.
type group struct {
	dir string
	v2  bool
}

func (g group) limitFile() string {
	if g.v2 {
		return path.Join(g.dir, "memory.max")
	}
	return path.Join(g.dir, "memory.limit_in_bytes")
}

// available is the limit, and what is left of it; not found where there is no limit.
func (g group) available() (limit, left uint64, found bool) {
	number := func(name string) (uint64, bool) {
		n, err := strconv.ParseUint(strings.TrimSpace(readText(name)), 10, 64)
		return n, err == nil
	}
	// Version 2 says "max", version 1 the largest multiple of a page, for none.
	limit, found = number(g.limitFile())
	if !found || limit >= 1<<60 {
		return 0, 0, false
	}
	usageFile, prefix := "memory.usage_in_bytes", "total_"
	if g.v2 {
		usageFile, prefix = "memory.current", ""
	}
	usage, found := number(path.Join(g.dir, usageFile))
	if !found {
		return 0, 0, false
	}
	// Cached disk pages count as used, yet give way. Shared memory is not among them: it is on the anonymous lists.
	stat := readText(path.Join(g.dir, "memory.stat"))
	for _, name := range []string{"inactive_file", "active_file"} {
		cache, _ := field(stat, prefix+name)
		usage -= min(usage, cache)
	}
	return limit, limit - min(limit, usage), true
}

// memoryGroups are the memory groups of a process, innermost first: each level has a limit of its own.
func memoryGroups(cgroup, mountinfo string) []group {
	var groups []group
	for _, line := range strings.Split(cgroup, "\n") {
		// `0::/path` (version 2) or `4:memory:/path`.
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		v2 := parts[0] == "0" && parts[1] == ""
		if !v2 && !contains(parts[1], "memory") {
			continue
		}
		root, mount, found := cgroupMount(mountinfo, v2)
		if !found {
			continue
		}
		// Where the mount shows only a part of the tree and this process is outside of it, its root is all there is.
		below := ""
		if root == "/" {
			below = parts[2]
		} else if rest, inside := strings.CutPrefix(parts[2], root); inside && (rest == "" || rest[0] == '/') {
			below = rest
		}
		for dir := path.Join(mount, below); ; dir = path.Dir(dir) {
			groups = append(groups, group{dir, v2})
			if dir == mount || dir == "/" || dir == "." {
				break
			}
		}
	}
	return groups
}

func contains(list, name string) bool {
	for _, item := range strings.Split(list, ",") {
		if item == name {
			return true
		}
	}
	return false
}

// cgroupMount is the root within the hierarchy and the mount point of the memory controller.
func cgroupMount(mountinfo string, v2 bool) (root, mount string, found bool) {
	for _, line := range strings.Split(mountinfo, "\n") {
		left, right, ok := strings.Cut(line, " - ")
		before, after := strings.Fields(left), strings.Fields(right)
		if !ok || len(before) < 5 || len(after) < 3 {
			continue
		}
		if v2 && after[0] == "cgroup2" || !v2 && after[0] == "cgroup" && contains(after[2], "memory") {
			return before[3], before[4], true
		}
	}
	return "", "", false
}
