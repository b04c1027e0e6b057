package sys

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const transparentHugePages = "/sys/kernel/mm/transparent_hugepage"

// HugePageSize is the size of the pages that HugePages means.
func HugePageSize() (int, error) {
	file := transparentHugePages + "/hpage_pmd_size"
	text, err := os.ReadFile(file)
	size, wrong := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || wrong != nil || size <= 0 || size&(size-1) != 0 {
		return 0, &SettingError{"this kernel has no transparent huge pages (" + file + " cannot be read)"}
	}
	return size, nil
}

func lockError(err error, length int) error {
	limit := "unknown"
	var rlimit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &rlimit) == nil {
		limit = strconv.FormatUint(rlimit.Cur, 10) + " bytes"
		if rlimit.Cur == unix.RLIM_INFINITY {
			limit = "unlimited"
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	locked, _ := field(string(status), "VmLck:")
	return &doing{fmt.Sprintf("LockMemory: mlock of %d bytes; this process has %d bytes locked, RLIMIT_MEMLOCK is %s "+
		"(raise it with ulimit -l, LimitMEMLOCK= or CAP_IPC_LOCK)", length, locked<<10, limit), outOfMemory(err)}
}

func populate(at unsafe.Pointer, length int, writable bool) error {
	advice := unix.MADV_POPULATE_READ
	if writable {
		advice = unix.MADV_POPULATE_WRITE
	}
	err := again(func() error { return unix.Madvise(bytesAt(at, length), advice) })
	if err == unix.EINVAL {
		// Before Linux 5.14. The pages are allocated, so that no fault is fatal.
		touch(at, length, writable)
		return nil
	}
	if err != nil {
		return &doing{fmt.Sprintf("Prefault of %d bytes", length), err}
	}
	return nil
}

func useHugePages(at unsafe.Pointer, length, copies int) error {
	huge, err := HugePageSize()
	if err != nil {
		return err
	}
	if uintptr(at)%uintptr(huge) != 0 || length%huge != 0 {
		return &SettingError{fmt.Sprintf("HugePages: the data (%d bytes) is not made of whole huge pages of %d bytes; "+
			"the process that creates the segment has to ask for them too", length, huge)}
	}
	whole := length * copies
	// Whether the advice is followed is checked below, so that kernels which refuse the one but not the other are
	// served.
	advised := unix.Madvise(bytesAt(at, whole), unix.MADV_HUGEPAGE)
	// Puts the file's small pages together (Linux 6.1+) and maps the result, whatever shmem_enabled says except deny.
	// EAGAIN: a page was in use just then.
	collapsed := unix.Madvise(bytesAt(at, whole), unix.MADV_COLLAPSE)
	for try := 0; try < 3 && collapsed == unix.EAGAIN; try++ {
		collapsed = unix.Madvise(bytesAt(at, whole), unix.MADV_COLLAPSE)
	}
	have := mappedHuge(uintptr(at), uintptr(whole))
	if have >= whole {
		return nil
	}
	said := func(err error) string {
		if err == nil {
			return "ok"
		}
		return err.Error()
	}
	setting, err := os.ReadFile(transparentHugePages + "/shmem_enabled")
	if err != nil {
		setting = []byte("unreadable")
	}
	return &SettingError{fmt.Sprintf("HugePages: %d of %d mapped bytes are in huge pages (MADV_HUGEPAGE: %s; "+
		"MADV_COLLAPSE, Linux 6.1+: %s); %s/shmem_enabled is \"%s\": set it to \"advise\" as root",
		have, whole, said(advised), said(collapsed), transparentHugePages, strings.TrimSpace(string(setting)))}
}

// mappedHuge is how many bytes of the mappings in this address range the kernel maps by huge pages.
func mappedHuge(start, length uintptr) int {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0
	}
	defer smaps.Close()
	total, inside := 0, false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if name, isField := strings.CutSuffix(words[0], ":"); isField {
			if inside && len(words) > 1 && (name == "ShmemPmdMapped" || name == "FilePmdMapped") {
				kib, _ := strconv.Atoi(words[1])
				total += kib << 10
			}
		} else if from, to, isRange := strings.Cut(words[0], "-"); isRange {
			first, _ := strconv.ParseUint(from, 16, 64)
			end, _ := strconv.ParseUint(to, 16, 64)
			inside = uintptr(first) < start+length && uintptr(end) > start
		}
	}
	return total
}
