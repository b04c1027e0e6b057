package main

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// settled is the environment variable that a process has which is where it belongs.
const settled = "RAMWAY_BENCH_SETTLED"

// settle puts this process where it belongs: it begins anew there, because only so all of its threads are there, and the runtime
// knows how many processors it has.
func settle(s setup, side int) error {
	if s.Realtime {
		return errors.New("a Go process cannot lock its memory")
	}
	cpu := s.CPUs[side]
	if cpu == nil {
		return nil
	}
	if os.Getenv(settled) != "" {
		// The process that it starts belongs elsewhere.
		return os.Unsetenv(settled)
	}
	runtime.LockOSThread()
	var set [16]uint64
	if *cpu < 0 || *cpu >= 64*len(set) {
		return errors.New("no processor " + strconv.Itoa(*cpu))
	}
	set[*cpu/64] = 1 << (*cpu % 64)
	if _, _, failed := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set))); failed != 0 {
		return failed
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Setenv(settled, "yes"); err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, os.Environ())
}

// used is what one process used in one burst: nanoseconds, bytes, context switches.
type used struct {
	CPU      int64 `json:"cpu"`
	Peak     int64 `json:"peak"`
	Shared   int64 `json:"shared"`
	Switches int64 `json:"switches"`
}

// begin is the counters now; end gives what was used since.
func begin() used {
	var of syscall.Rusage
	// Of this process itself it does not fail.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &of)
	return used{CPU: of.Utime.Nano() + of.Stime.Nano(), Switches: of.Nvcsw + of.Nivcsw}
}

func (began used) end() used {
	now := begin()
	u := used{CPU: now.CPU - began.CPU, Switches: now.Switches - began.Switches}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kibibytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmHWM":
			u.Peak = 1024 * kibibytes
		case "RssShmem":
			u.Shared = 1024 * kibibytes
		}
	}
	return u
}

// forgetPeak sets the peak of the resident memory back, where the kernel lets it be.
func forgetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
