// Command go is Go's program of the conformance kit: conformance/README.md says what each command and flag means.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

func main() {
	a, err := parse(os.Args[1:])
	if err == nil {
		err = run(a)
	}
	var usage usageError
	var bad badError
	switch {
	case err == nil:
		return
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	case errors.As(err, &bad):
		event("bad seq=%d text=%s", bad.seq, bad.what)
		os.Exit(1)
	}
	kind := ramway.KindOf(err)
	if kind == 0 {
		kind = ramway.Os
	}
	event("error name=%s number=%d text=%v", kind.String(), uint32(kind), err)
	// A vector may well be what cannot be opened.
	if a.command != "read" {
		os.Exit(1)
	}
}

func run(a *args) error {
	if a.cpu >= 0 {
		// What runs on one processor has no use for a second thread that runs Go code.
		runtime.GOMAXPROCS(1)
		if err := pin(a.cpu); err != nil {
			return fmt.Errorf("--cpu %d: %w", a.cpu, err)
		}
	}
	if a.over == "unix" {
		return overUnix(a)
	}
	if a.over != "" {
		return usageError("--over is unix")
	}
	switch a.command {
	case "produce":
		return produce(a)
	case "consume":
		return consume(a)
	case "die":
		return die(a)
	case "read":
		return read(a)
	case "show":
		return show(a)
	case "echo":
		return echo(a)
	case "ping":
		if a.check {
			return ping(a)
		}
		return pingUnchecked(a)
	case "flood":
		return flood(a)
	case "drain":
		return drain(a)
	case "tensors":
		return tensors(a)
	}
	return usageError("no such command: " + a.command)
}

// event prints a line at once: standard output is not buffered.
func event(format string, values ...any) { fmt.Printf(format+"\n", values...) }

// call is when a call began, and what the other side's epoch was by then.
type call struct {
	epoch uint32
	began time.Time
}

func begin(epoch uint32) call { return call{epoch, time.Now()} }

func (c call) elapsed() int64 { return time.Since(c.began).Milliseconds() }

// isEnding says whether the stream may go on after this.
func isEnding(kind ramway.Kind) bool { return kind == ramway.Closed || kind == ramway.PeerDead }

// waitForSuccessor looks every millisecond until the other side's epoch differs from the noted one; false: none came in
// time.
func (a *args) waitForSuccessor(noted uint32, epoch func() uint32) bool {
	for began := time.Now(); epoch() == noted; time.Sleep(time.Millisecond) {
		if a.timeout > 0 && time.Since(began) >= a.timeout {
			return false
		}
	}
	return true
}

// crash ends this process as a crash would.
func crash() error {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
