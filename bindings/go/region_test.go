package ramway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func init() {
	// region-count waits for notifications, adds one to the counter for each, and answers by a notification.
	helpers["region-count"] = func(args []string) {
		r, err := OpenRegion(args[0], Options{Timeout: long, Wait: Block})
		must(err)
		asked, err := r.Uint64(0)
		must(err)
		answered, err := r.Uint64(128)
		must(err)
		say("ready")
		for answered.Load() < 1000 {
			if asked.Load() == answered.Load() {
				must(r.Wait(context.Background()))
				continue
			}
			answered.Add(1)
			must(r.Notify())
		}
		must(r.Close())
	}
}

func TestTwoProcessesWakeEachOtherByARegion(t *testing.T) {
	for _, mode := range []WaitMode{Hybrid, Block, Spin} {
		at := newFolder(t)
		r, err := CreateRegion(at.at("count"), 4096, Options{Wait: mode})
		if err != nil {
			t.Fatal(err)
		}
		p := startPeer(t, "region-count", at.at("count"))
		p.expect("ready")
		asked, err := r.Uint64(0)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for i := range 1000 {
			asked.Add(1)
			if err := r.Notify(); err != nil {
				t.Fatal(err)
			}
			for {
				answered, err := r.LoadUint64(128)
				if err != nil {
					t.Fatal(err)
				}
				if answered == uint64(i+1) {
					break
				}
				if err := r.Wait(within(t)); err != nil {
					t.Fatal(err)
				}
			}
		}
		// A lost wake-up costs a round of 100 ms each.
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%v: 1000 round trips took %v", mode, took)
		}
		p.finish()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		at.expectNames()
	}
}

func TestReadAtAndWriteAtKeepTheirContracts(t *testing.T) {
	at := newFolder(t)
	r, err := CreateRegion(at.at("bytes"), 100, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Len() != 100 || r.Capacity()%4096 != 0 || r.ReadOnly() || len(r.Bytes()) != 100 {
		t.Fatal(r.Len(), r.Capacity(), r.ReadOnly(), len(r.Bytes()))
	}
	want := make([]byte, 100)
	for start := range 20 {
		for n := range 70 {
			from := bytes.Repeat([]byte{byte(start*n + 1)}, n)
			copy(want[start:], from)
			if done, err := r.WriteAt(from, int64(start)); done != n || err != nil {
				t.Fatal(done, err)
			}
			if !bytes.Equal(r.Bytes(), want) {
				t.Fatalf("%d bytes at %d did more or less than that", n, start)
			}
			back := make([]byte, n)
			if done, err := r.ReadAt(back, int64(start)); done != n || err != nil || !bytes.Equal(back, from) {
				t.Fatal(done, err)
			}
		}
	}
	back := make([]byte, 10)
	for _, c := range []struct {
		off int64
		n   int
		err error
	}{{90, 10, nil}, {95, 5, io.EOF}, {100, 0, io.EOF}, {200, 0, io.EOF}, {1 << 62, 0, io.EOF}} {
		if n, err := r.ReadAt(back, c.off); n != c.n || err != c.err {
			t.Errorf("reading at %d: %d, %v", c.off, n, err)
		}
	}
	if n, err := r.ReadAt(nil, 100); n != 0 || err != nil {
		t.Error(n, err)
	}
	_, err = r.ReadAt(back, -1)
	expectKind(t, err, InvalidArgument)
	for _, off := range []int64{-1, 91, 100, 1 << 62} {
		n, err := r.WriteAt(back, off)
		expectKind(t, err, InvalidArgument)
		if n != 0 {
			t.Error(n)
		}
	}
	for _, off := range []int64{-4, 2, 98, 100, 1 << 62} {
		_, err := r.Uint32(off)
		expectKind(t, err, InvalidArgument)
	}
	for _, off := range []int64{-8, 4, 96, 100} {
		_, err := r.Uint64(off)
		expectKind(t, err, InvalidArgument)
	}
	if word, err := r.Uint32(96); err != nil || word.Load() != 0x01010101*uint32(want[96]) && want[96] != 0 {
		t.Error(err)
	}
}

func TestAReadOnlyHandle(t *testing.T) {
	at := newFolder(t)
	w, err := CreateRegion(at.at("shown"), 64, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenRegionReadOnly(at.at("shown"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.WriteAt([]byte("x"), 0)
	expectKind(t, err, PermissionDenied)
	expectKind(t, r.Notify(), PermissionDenied)
	_, err = r.Uint32(0)
	expectKind(t, err, PermissionDenied)
	word, err := w.Uint32(8)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		word.Store(77)
		_ = w.Notify()
	}()
	if err := r.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	if got, err := r.LoadUint32(8); got != 77 || err != nil {
		t.Fatal(got, err)
	}
	if err := errors.Join(w.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	at.expectNames()
}

func TestNotificationsAreCountedByEachHandle(t *testing.T) {
	at := newFolder(t)
	a, err := CreateRegion(at.at("bell"), 8, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := OpenOrCreateRegion(at.at("bell"), 8, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if a.TryWait() || b.TryWait() {
		t.Fatal("nobody has notified")
	}
	before := a.Notifications()
	for range 3 {
		if err := a.Notify(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Wait(within(t)); err != nil || b.TryWait() || !a.TryWait() || a.TryWait() {
		t.Fatal("three are one, for each handle", err)
	}
	if now, err := a.WaitSince(within(t), before); err != nil || now == before {
		t.Fatal(now, err)
	}
	short, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer stop()
	expectKind(t, b.Wait(short), TimedOut)
	expectKind(t, b.Wait(cancelled()), Interrupted)
	_, err = OpenOrCreateRegion(at.at("bell"), 9, Options{})
	expectKind(t, err, InvalidArgument)
	_, err = CreateRegion(at.at("bell"), 8, Options{})
	expectKind(t, err, AlreadyExists)
	_, err = OpenRegion(at.at("other"), Options{})
	expectKind(t, err, NotFound)
	_, err = CreateRegion(at.at("none"), 0, Options{})
	expectKind(t, err, InvalidArgument)
}

func TestManyWaitersOfOneHandleAllWake(t *testing.T) {
	at := newFolder(t)
	r, err := CreateRegion(at.at("crowd"), 8, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var woken atomic.Int64
	var all sync.WaitGroup
	const waiters, rings = 50, 20
	for range waiters {
		all.Add(1)
		go func() {
			defer all.Done()
			known := uint32(0)
			for known < 2*rings {
				now, err := r.WaitSince(within(t), known)
				if err != nil {
					t.Error(err)
					return
				}
				known = now
			}
			woken.Add(1)
		}()
	}
	for range rings {
		time.Sleep(time.Millisecond)
		if err := r.Notify(); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	if woken.Load() != waiters {
		t.Fatal(woken.Load())
	}
}

func TestCloseOfARegionUnderItsUsers(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		at := newFolder(t)
		owner, err := CreateRegion(at.at("shop"), 1<<20, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := owner
		if readOnly {
			if r, err = OpenRegionReadOnly(at.at("shop"), Options{}); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error)
		const users = 8
		for i := range users {
			go func() {
				if i%2 == 0 {
					ended <- r.Wait(context.Background())
					return
				}
				copied := make([]byte, 1<<20)
				for {
					if _, err := r.ReadAt(copied, 0); err != nil {
						ended <- err
						return
					}
				}
			}()
		}
		time.Sleep(20 * time.Millisecond)
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Fatal(err)
		}
		for range users {
			expectKind(t, <-ended, Detached)
		}
		if r.Bytes() != nil || r.TryWait() || r.Notifications() != 0 {
			t.Fatal("a closed region answers")
		}
		expectKind(t, r.Notify(), Detached)
		if err := owner.Close(); err != nil {
			t.Fatal(err)
		}
		at.expectNames()
	}
}

func TestAWaitEndsWhenTheNameGoes(t *testing.T) {
	at := newFolder(t)
	r, err := CreateRegion(at.at("gone"), 8, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ended := make(chan error)
	for range 3 {
		go func() { ended <- r.Wait(within(t)) }()
	}
	if err := os.Remove(at.at("gone")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		expectKind(t, <-ended, Closed)
	}
	expectKind(t, r.Wait(within(t)), Closed)
}
