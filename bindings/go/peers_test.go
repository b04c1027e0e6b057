package ramway

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Many processes at one end: with producers and workers that are processes, and are killed.

func init() {
	// Sends numbers until it is told to stop, or is killed.
	helpers["producer"] = func(args []string) {
		bus, err := Connect(background, args[0], ConnectOptions{Timeout: long})
		must(err)
		say("connected")
		count, err := strconv.ParseUint(args[1], 10, 64)
		must(err)
		for number := range count {
			if err := bus.SendTagged(background, 7, number, fmt.Appendf(nil, "%d", number)); err != nil {
				_ = bus.Close()
				say("%s", KindOf(err).String())
				return
			}
		}
		say("sent")
		told()
		must(bus.Close())
	}
	// Works until its outbox closes: writes each task's tag down after it has done it, then gives it back.
	helpers["worker"] = func(args []string) {
		bus, err := Connect(background, args[0], ConnectOptions{Timeout: long})
		must(err)
		file, err := os.OpenFile(args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		must(err)
		for m := range bus.All(background) {
			if string(m.Clone()) != fmt.Sprintf("task %d", m.Tag()) {
				must(fmt.Errorf("task %d is %q", m.Tag(), m.Clone()))
			}
			// One write: whole, or nothing.
			_, err := file.Write(fmt.Appendf(nil, "%d\n", m.Tag()))
			must(err)
		}
	}
	// Takes one task and never gives it back.
	helpers["lazy"] = func(args []string) {
		bus, err := Connect(background, args[0], ConnectOptions{Timeout: long})
		must(err)
		m, err := bus.Recv(background)
		must(err)
		if len(args) > 1 {
			copy(m.UnsafeBytes(), args[1])
		}
		say("%d", m.Tag())
		told()
	}
}

func inboxAt(t testing.TB, path string, o InboxOptions) *Inbox {
	t.Helper()
	inbox, err := BindInbox(path, o)
	expectKind(t, err, 0)
	t.Cleanup(func() { _ = inbox.Close() })
	return inbox
}

func outboxAt(t testing.TB, path string, o OutboxOptions) *Outbox {
	t.Helper()
	outbox, err := BindOutbox(path, o)
	expectKind(t, err, 0)
	t.Cleanup(func() { _ = outbox.Close() })
	return outbox
}

func TestOptionsOfManyThatNobodyCouldUseAreRefused(t *testing.T) {
	path := newFolder(t).at("x.sock")
	_, err := BindInbox(path, InboxOptions{MaxPeers: -1})
	expectKind(t, err, InvalidArgument)
	_, err = BindInbox(path, InboxOptions{Align: 3})
	expectKind(t, err, InvalidArgument)
	_, err = BindOutbox(path, OutboxOptions{Prefetch: -1})
	expectKind(t, err, InvalidArgument)
	_, err = BindOutbox(path, OutboxOptions{MaxDeliveries: -1})
	expectKind(t, err, InvalidArgument)
	inboxAt(t, path, InboxOptions{})
	_, err = BindInbox(path, InboxOptions{})
	expectKind(t, err, AlreadyExists)
	_, err = BindOutbox(path, OutboxOptions{})
	expectKind(t, err, AlreadyExists)
}
