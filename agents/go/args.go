package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

// args are the flags, the same for every command; conformance/README.md says what each means.
type args struct {
	command                             string
	ring, back, listen, connect, region string
	create, resume, progress, oversize  bool
	check, pause                        bool
	capacity                            int64
	align                               int
	wait                                ramway.WaitMode
	timeout, poll                       time.Duration
	cpu                                 int
	sizes                               sizes
	size, start, count, until           int64
	batch, endings, group               int
	how, role, over                     string
	linger, pace, work                  time.Duration

	// waits and limit are what waiting keeps from one wait to the next.
	waits context.Context
	limit *time.Timer
}

// usageError says that the flags do not say enough, or too much.
type usageError string

func (e usageError) Error() string { return string(e) }

// sizes is how long message number seq is.
type sizes struct {
	kind  string
	fixed uint64
}

// parse reads the command line.
func parse(words []string) (*args, error) {
	if len(words) == 0 {
		return nil, usageError("a command is missing: produce, consume, echo, ping, die, read, show, flood, drain or tensors")
	}
	a := &args{command: words[0]}
	flags := flag.NewFlagSet(words[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	yes := func(to *bool, name, value string) {
		*to = value == "yes"
		flags.Func(name, "yes or no", func(text string) error {
			*to = text == "yes"
			if !*to && text != "no" {
				return fmt.Errorf("expected yes or no")
			}
			return nil
		})
	}
	in := func(to *time.Duration, name string, unit time.Duration, value int64) {
		*to = time.Duration(value) * unit
		flags.Func(name, "a number", func(text string) error {
			number, err := strconv.ParseInt(text, 10, 64)
			*to = time.Duration(number) * unit
			return err
		})
	}
	flags.StringVar(&a.ring, "ring", "", "a ring")
	flags.StringVar(&a.back, "back", "", "the ring in the other direction")
	flags.StringVar(&a.listen, "listen", "", "a bus")
	flags.StringVar(&a.connect, "connect", "", "a bus")
	flags.StringVar(&a.region, "region", "", "a region")
	yes(&a.create, "create", "no")
	yes(&a.resume, "resume", "no")
	yes(&a.progress, "progress", "no")
	yes(&a.oversize, "oversize", "no")
	yes(&a.check, "check", "yes")
	yes(&a.pause, "pause", "no")
	flags.Int64Var(&a.capacity, "capacity", 65536, "bytes")
	flags.IntVar(&a.align, "align", 16, "bytes")
	flags.Func("wait", "spin, block or hybrid", func(text string) error {
		for _, mode := range []ramway.WaitMode{ramway.Spin, ramway.Block, ramway.Hybrid} {
			if mode.String() == text {
				a.wait = mode
				return nil
			}
		}
		return fmt.Errorf("expected spin, block or hybrid")
	})
	in(&a.timeout, "timeout", time.Millisecond, 20_000)
	in(&a.poll, "poll", time.Microsecond, -1)
	flags.IntVar(&a.cpu, "cpu", -1, "a processor")
	a.sizes = sizes{kind: "mixed"}
	flags.Func("sizes", "mixed, ramp or a number", func(text string) error {
		if text == "mixed" || text == "ramp" {
			a.sizes = sizes{kind: text}
			return nil
		}
		number, err := strconv.ParseUint(text, 10, 62)
		a.sizes = sizes{kind: "fixed", fixed: number}
		return err
	})
	flags.Int64Var(&a.size, "size", 0, "bytes")
	flags.Int64Var(&a.start, "start", -1, "a message's number")
	flags.Int64Var(&a.count, "count", -1, "messages")
	flags.Int64Var(&a.until, "until", -1, "a message's number")
	flags.IntVar(&a.batch, "batch", 0, "messages")
	flags.IntVar(&a.endings, "endings", 1, "endings")
	flags.IntVar(&a.group, "group", 1, "round trips")
	flags.StringVar(&a.how, "how", "", "send, reserve, try, recv, batch or into")
	flags.StringVar(&a.role, "role", "", "producer or consumer")
	flags.StringVar(&a.over, "over", "", "unix")
	in(&a.linger, "linger", time.Millisecond, -1)
	in(&a.pace, "pace", time.Microsecond, 0)
	in(&a.work, "work", time.Microsecond, 0)
	if err := flags.Parse(words[1:]); err != nil {
		return nil, usageError(err.Error())
	}
	if flags.NArg() > 0 {
		return nil, usageError("not a flag: " + flags.Arg(0))
	}
	return a, nil
}

// limited is the context of all waits that have a limit, one after the other: none of them makes a new one. It ends as
// a deadline does.
type limited struct{ context.Context }

func (l limited) Err() error {
	if l.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// waiting is the context for the next wait, which ends after the longest that it may last.
func (a *args) waiting() context.Context {
	if a.timeout == 0 {
		return context.Background()
	}
	// Reset says no when the clock has run out since the last wait.
	if a.waits == nil || !a.limit.Reset(a.timeout) {
		ctx, cancel := context.WithCancel(context.Background())
		a.waits, a.limit = limited{ctx}, time.AfterFunc(a.timeout, cancel)
	}
	return a.waits
}

// patiently makes one call with the context of waiting, or, with --poll, calls that each wait for that long until one gives
// something else than that its time was over, or --timeout is.
func (a *args) patiently(call func(ctx context.Context) error) error {
	if a.poll < 0 {
		return call(a.waiting())
	}
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(context.Background(), a.poll)
		err := call(ctx)
		cancel()
		if ramway.KindOf(err) != ramway.TimedOut || a.timeout > 0 && time.Since(began) >= a.timeout {
			return err
		}
	}
}

// lingerNow is --linger: that long, or until a line arrives on standard input or that ends.
func (a *args) lingerNow() {
	if a.linger < 0 {
		return
	}
	line := make(chan struct{})
	go func() {
		readLine()
		close(line)
	}()
	select {
	case <-line:
	case <-time.After(a.linger):
	}
}

// readLine is a line of standard input without its end; empty when that ended or cannot be read. It takes not one byte
// more, so that the next call finds its line.
func readLine() string {
	var line []byte
	var b [1]byte
	for {
		n, err := os.Stdin.Read(b[:])
		if n == 1 && b[0] != '\n' {
			line = append(line, b[0])
		}
		if err != nil || n == 1 && b[0] == '\n' {
			return string(line)
		}
	}
}
