package ramway

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// Loops of calls that each wait for a short time learn how the stream ended: the clock of the question whether the peer
// lives is the handle's, and the end of the stream goes before the end of the time.

// shortWaits are none, one shorter than a spin, and some around a round.
var shortWaits = []time.Duration{
	0, 20 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 50 * time.Millisecond, 99 * time.Millisecond,
	150 * time.Millisecond,
}

func init() {
	// Each attaches to what its argument names, and closes on a word.
	helpers["short-sender"] = func(args []string) {
		tx, err := OpenSender(args[0], Options{Timeout: long})
		must(err)
		say("attached")
		told()
		must(tx.Close())
		say("closed")
		told()
	}
	helpers["short-receiver"] = func(args []string) {
		rx, err := OpenReceiver(args[0], Options{Timeout: long})
		must(err)
		say("attached")
		told()
		must(rx.Close())
		say("closed")
		told()
	}
	helpers["short-bus"] = func(args []string) {
		bus, err := Connect(background, args[0], ConnectOptions{})
		must(err)
		say("attached")
		told()
		must(bus.Close())
		say("closed")
		told()
	}
}

// poll makes calls that wait for d each until one says something else than that its time was over.
func poll(t *testing.T, d time.Duration, call func(ctx context.Context) error) error {
	t.Helper()
	for end := time.Now().Add(long); ; {
		ctx, cancel := context.WithTimeout(background, d)
		err := call(ctx)
		cancel()
		if KindOf(err) != TimedOut {
			return err
		}
		if time.Now().After(end) {
			t.Fatalf("calls that wait for %v each learned nothing in %v", d, long)
		}
	}
}

// fillUp sends until there is no room.
func fillUp(t *testing.T, tx *Sender) {
	t.Helper()
	for {
		if err := tx.TrySend(1, make([]byte, 1000)); KindOf(err) == Full {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func receiveOnce(rx *Receiver) func(context.Context) error {
	return func(ctx context.Context) error {
		m, err := rx.Recv(ctx)
		if err == nil {
			m.Release()
		}
		return err
	}
}

func sendOnce(tx *Sender) func(context.Context) error {
	return func(ctx context.Context) error { return tx.Send(ctx, 1, make([]byte, 1000)) }
}

func TestShortWaitsLearnTheEnd(t *testing.T) {
	ends := map[Kind]func(*peer){
		PeerDead: (*peer).kill,
		Closed: func(p *peer) {
			p.tell("close")
			p.expect("closed")
		},
	}
	for _, mode := range []WaitMode{Hybrid, Block, Spin} {
		for _, d := range shortWaits {
			for kind, end := range ends {
				name := fmt.Sprintf("%v/%v/%v", mode, d, kind)
				t.Run("receiver/"+name, func(t *testing.T) {
					t.Parallel()
					ring := newFolder(t).at("ring")
					rx, err := CreateReceiver(ring, Options{Capacity: 4096, Wait: mode})
					expectKind(t, err, 0)
					defer rx.Close()
					p := startPeer(t, "short-sender", ring)
					p.expect("attached")
					expectKind(t, receiveOnce(rx)(expired()), TimedOut)
					end(p)
					expectKind(t, poll(t, d, receiveOnce(rx)), kind)
				})
				t.Run("sender/"+name, func(t *testing.T) {
					t.Parallel()
					ring := newFolder(t).at("ring")
					tx, err := CreateSender(ring, Options{Capacity: 4096, Wait: mode})
					expectKind(t, err, 0)
					defer tx.Close()
					p := startPeer(t, "short-receiver", ring)
					p.expect("attached")
					fillUp(t, tx)
					expectKind(t, sendOnce(tx)(expired()), TimedOut)
					end(p)
					expectKind(t, poll(t, d, sendOnce(tx)), kind)
				})
			}
		}
	}
}

// expired is a context whose time is over.
func expired() context.Context {
	ctx, cancel := context.WithTimeout(background, 0)
	cancel()
	return ctx
}

func TestShortWaitsLearnTheEndOfABus(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, 99 * time.Millisecond} {
		for kind, end := range map[Kind]func(*peer){PeerDead: (*peer).kill, Closed: func(p *peer) {
			p.tell("close")
			p.expect("closed")
		}} {
			t.Run(fmt.Sprintf("%v/%v", d, kind), func(t *testing.T) {
				t.Parallel()
				l, err := Bind(newFolder(t).at("bus"), ListenOptions{Capacity: 4096})
				expectKind(t, err, 0)
				defer l.Close()
				p := startPeer(t, "short-bus", l.Path())
				bus, err := l.Accept(background)
				expectKind(t, err, 0)
				defer bus.Close()
				p.expect("attached")
				fillUp(t, bus.Sender())
				end(p)
				expectKind(t, poll(t, d, sendOnce(bus.Sender())), kind)
				expectKind(t, poll(t, d, receiveOnce(bus.Receiver())), kind)
			})
		}
	}
}

// TestTriesLearnOfADeath: calls that do not wait at all.
func TestTriesLearnOfADeath(t *testing.T) {
	dir := newFolder(t)
	rx, err := CreateReceiver(dir.at("in"), Options{Capacity: 4096})
	expectKind(t, err, 0)
	defer rx.Close()
	tx, err := CreateSender(dir.at("out"), Options{Capacity: 4096})
	expectKind(t, err, 0)
	defer tx.Close()
	in, out := startPeer(t, "short-sender", dir.at("in")), startPeer(t, "short-receiver", dir.at("out"))
	in.expect("attached")
	out.expect("attached")
	fillUp(t, tx)
	in.kill()
	out.kill()
	eventually(t, "TryRecv says that the sender died", func() bool {
		_, err := rx.TryRecv()
		return KindOf(err) == PeerDead
	})
	eventually(t, "TrySend says that the receiver died", func() bool {
		return KindOf(tx.TrySend(1, make([]byte, 1000))) == PeerDead
	})
	rx2, err := OpenReceiver(dir.at("out"), Options{Timeout: long})
	expectKind(t, err, 0)
	expectKind(t, tx.TrySend(1, make([]byte, 1000)), Full)
	expectKind(t, rx2.Close(), 0)
	expectKind(t, tx.TrySend(1, make([]byte, 1000)), Closed)
}

// TestOrderOfWhatIsTold: a message, then the end, then the context, also where that is over before the call.
func TestOrderOfWhatIsTold(t *testing.T) {
	cancelled, cancel := context.WithCancel(background)
	cancel()
	for _, ctx := range []context.Context{expired(), cancelled} {
		tx, rx, err := Pair(Options{Capacity: 4096})
		expectKind(t, err, 0)
		none := TimedOut
		if ctx == cancelled {
			none = Interrupted
		}
		expectKind(t, receiveOnce(rx)(ctx), none)
		expectKind(t, tx.Send(ctx, 1, nil), 0)
		expectKind(t, tx.Close(), 0)
		expectKind(t, receiveOnce(rx)(ctx), 0)
		expectKind(t, receiveOnce(rx)(ctx), Closed)
		expectKind(t, rx.Close(), 0)
		expectKind(t, receiveOnce(rx)(ctx), Detached)
	}
}

// TestShortRegionWaitsLearnThatTheNameIsGone: the same clock for regions.
func TestShortRegionWaitsLearnThatTheNameIsGone(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond} {
		name := newFolder(t).at("region")
		region, err := CreateRegion(name, 64, Options{})
		expectKind(t, err, 0)
		wait := func(ctx context.Context) error { return region.Wait(ctx) }
		expectKind(t, wait(expired()), TimedOut)
		expectKind(t, region.Notify(), 0)
		expectKind(t, wait(expired()), 0)
		must(os.Remove(name))
		expectKind(t, poll(t, d, wait), Closed)
		expectKind(t, region.Close(), 0)
		expectKind(t, wait(expired()), Detached)
	}
}
