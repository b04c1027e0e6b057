package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

// line is a command, `word key=value key=value …`. What a command does not take out of it is refused.
type line struct {
	word   string
	fields map[string]string
}

// refusedError is a command that is not understood.
type refusedError string

func (e refusedError) Error() string { return string(e) }

var input = bufio.NewReader(os.Stdin)

// nextLine is the next line of standard input, or nil when that ends.
func nextLine() *line {
	text, err := input.ReadString('\n')
	words := strings.Fields(text)
	if err != nil || len(words) == 0 {
		return nil
	}
	l := &line{word: words[0], fields: map[string]string{}}
	for _, field := range words[1:] {
		key, value, _ := strings.Cut(field, "=")
		l.fields[key] = value
	}
	return l
}

func (l *line) text(key, otherwise string) string {
	if value, given := l.fields[key]; given {
		delete(l.fields, key)
		return value
	}
	return otherwise
}

func (l *line) number(key string, otherwise int64) int64 {
	text := l.text(key, "")
	if text == "" {
		return otherwise
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(refusedError(key + "=" + text))
	}
	return number
}

func (l *line) yes(key string) bool { return l.text(key, "no") == "yes" }

func (l *line) wait() ramway.WaitMode {
	text := l.text("wait", "hybrid")
	for _, mode := range []ramway.WaitMode{ramway.Spin, ramway.Block, ramway.Hybrid} {
		if mode.String() == text {
			return mode
		}
	}
	panic(refusedError("wait=" + text))
}

// end says that nothing else was said.
func (l *line) end() {
	for key := range l.fields {
		panic(refusedError(l.word + " does not know " + key))
	}
}

// limits are timeout and poll: how long a wait may last.
type limits struct {
	timeout, poll time.Duration
	// waits and limit are what waiting keeps from one wait to the next.
	waits context.Context
	limit *time.Timer
}

func (l *line) limits() *limits {
	return &limits{
		timeout: time.Duration(l.number("timeout", 20_000)) * time.Millisecond,
		poll:    time.Duration(l.number("poll", -1)) * time.Microsecond,
	}
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
func (l *limits) waiting() context.Context {
	if l.timeout == 0 {
		return context.Background()
	}
	// Reset says no when the clock has run out since the last wait.
	if l.waits == nil || !l.limit.Reset(l.timeout) {
		ctx, cancel := context.WithCancel(context.Background())
		l.waits, l.limit = limited{ctx}, time.AfterFunc(l.timeout, cancel)
	}
	return l.waits
}

// within makes one call with the context of waiting, or, with poll, calls that each wait for that long until one gives
// something else than that its time was over, or timeout is.
func (l *limits) within(call func(ctx context.Context) error) error {
	if l.poll < 0 {
		return call(l.waiting())
	}
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(context.Background(), l.poll)
		err := call(ctx)
		cancel()
		if ramway.KindOf(err) != ramway.TimedOut || l.timeout > 0 && time.Since(began) >= l.timeout {
			return err
		}
	}
}

// event prints a line at once: standard output is not buffered.
func event(format string, values ...any) { fmt.Printf(format+"\n", values...) }

// named is an error as events name it.
func named(kind ramway.Kind) string {
	return fmt.Sprintf("name=%s number=%d", kind.String(), uint32(kind))
}
