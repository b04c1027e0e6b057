package ramway

import (
	"encoding/binary"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

func TestTheLastOneOutRemovesTheName(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	tx := hold(t, name, howCreate, Options{Capacity: 4096}, producer)
	p := startPeer(t, "holder", name, "consumer")
	p.expect("ready")
	_ = tx.release()
	dir.expectNames("ring")
	p.finish()
	dir.expectNames()

	// Undelivered keeps it, delivered does not.
	tx = hold(t, name, howCreate, Options{}, producer)
	put(tx, 0)
	_ = tx.release()
	dir.expectNames("ring")
	rx := hold(t, name, howOpen, Options{}, consumer)
	drain(rx)
	_ = rx.release()
	dir.expectNames()
}

func TestTwoLeaveAtOnceAndTheNameGoes(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	for range 200 {
		tx := hold(t, name, howCreate, Options{Capacity: 4096}, producer)
		rx := hold(t, name, howOpen, Options{}, consumer)
		left := make(chan error)
		go func() { left <- tx.release() }()
		_ = rx.release()
		<-left
		dir.expectNames()
	}
}

func TestDiscardNeverOverTheLiving(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	tx := hold(t, name, howCreate, Options{}, producer)
	put(tx, 10)
	expectKind(t, refused(t, name, howCreate, Options{Discard: true}, consumer), AlreadyExists)
	_ = tx.release()
	rx := hold(t, name, howCreate, Options{Discard: true, Capacity: 8192}, consumer)
	if rx.capacity != 8192 || rx.ring().tail != 0 {
		t.Fatal("it is not a new ring")
	}
	_ = rx.release()
}

func TestOpenOrCreateSaysWhatDiffers(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	tx := hold(t, name, howOpenOrCreate, Options{Capacity: 10_000, Align: 64}, producer)
	if tx.capacity != 16_384 || tx.align != 64 {
		t.Fatal(tx.capacity, tx.align)
	}
	for _, h := range []how{howOpen, howOpenOrCreate} {
		err := refused(t, name, h, Options{Capacity: 4096}, consumer)
		expectKind(t, err, InvalidArgument)
		expectText(t, err, "16384", "4096", "capacity")
		err = refused(t, name, h, Options{Align: 16}, consumer)
		expectKind(t, err, InvalidArgument)
		expectText(t, err, "64", "16", "alignment")
		// The same wish in other words is no difference, and no wish is none either.
		_ = hold(t, name, h, Options{Capacity: 9000, Align: 64}, consumer).release()
		_ = hold(t, name, h, Options{}, consumer).release()
	}
	_ = tx.release()
	for _, o := range []Options{{Align: 24}, {Align: 8}, {Align: 8192}, {Align: -16}, {Capacity: -1}, {Wait: Block + 1}} {
		expectKind(t, refused(t, dir.at("other"), howOpenOrCreate, o, consumer), InvalidArgument)
	}
	dir.expectNames()
}

func TestOpenWaitsForTheName(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	start := time.Now()
	err := refused(t, name, howOpen, Options{Timeout: 200 * time.Millisecond}, producer)
	expectKind(t, err, NotFound)
	expectText(t, err, name)
	if waited := time.Since(start); waited < 200*time.Millisecond {
		t.Fatalf("waited %v", waited)
	}
	expectKind(t, refused(t, dir.at("no/such/dir"), howOpen, Options{}, producer), NotFound)
	expectKind(t, refused(t, dir.at("no/such/dir"), howCreate, Options{}, producer), NotFound)

	_ = startPeer(t, "create-later", name)
	_ = hold(t, name, howOpen, Options{Timeout: long}, producer).release()
}

func TestATakenRoleIsWaitedFor(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	p := startPeer(t, "holder", name, "producer")
	p.expect("ready")
	start := time.Now()
	err := refused(t, name, howOpen, Options{Timeout: 150 * time.Millisecond}, producer)
	expectKind(t, err, Busy)
	expectText(t, err, "sender", name)
	if waited := time.Since(start); waited < 150*time.Millisecond {
		t.Fatalf("waited %v", waited)
	}
	p.kill()
	_ = hold(t, name, howOpen, Options{Timeout: long}, producer).release()
	dir.expectNames()
}

// A side that waits for a role gets the ring that its holder leaves, however it goes and at whatever moment: nobody removes
// what is waited for. Who waits in vain is the last one out as well.
func TestARoleIsTakenOverAtAnyMoment(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	for round := range 60 {
		p := startPeer(t, "holder", name, "producer")
		p.expect("ready")
		before := inode(t, name)
		type result struct {
			a   *attachment
			err error
		}
		got := make(chan result, 1)
		// An orderly end removes the name if it comes before the opener does.
		h := howOpen
		if round%2 == 1 {
			h = howOpenOrCreate
		}
		go func() {
			a, err := attachNamed(name, h, Options{Timeout: long}, producer)
			got <- result{a, err}
		}()
		time.Sleep(time.Duration(round) * 173 * time.Microsecond)
		if round%2 == 0 {
			p.kill()
		} else {
			p.finish()
		}
		r := <-got
		if r.err != nil {
			t.Fatalf("round %d: %v", round, r.err)
		}
		if h == howOpen && inode(t, name) != before {
			t.Fatalf("round %d: another ring", round)
		}
		_ = r.a.release()
		dir.expectNames()
	}
}

func TestWhoWaitsInVainIsTheLastOneOut(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	tx := hold(t, name, howCreate, Options{}, producer)
	waited := make(chan error, 1)
	go func() {
		a, err := attachNamed(name, howOpen, Options{Timeout: 200 * time.Millisecond}, producer)
		if err == nil {
			err = a.release()
		}
		waited <- err
	}()
	time.Sleep(50 * time.Millisecond)
	_ = tx.release()
	if err := <-waited; err != nil && KindOf(err) != NotFound {
		t.Fatal(err)
	}
	dir.expectNames()
	// And where the name goes while its role is waited for, there is nothing left to wait for.
	tx = hold(t, name, howCreate, Options{}, producer)
	go func() {
		_, err := attachNamed(name, howOpen, Options{Timeout: 300 * time.Millisecond}, producer)
		waited <- err
	}()
	time.Sleep(50 * time.Millisecond)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	expectKind(t, <-waited, NotFound)
	_ = tx.release()
}

func TestLivenessIsTheLock(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	rx := hold(t, name, howCreate, Options{Capacity: 4096}, consumer)
	if rx.link.peerAlive(consumer) {
		t.Fatal("a producer that never was")
	}
	p := startPeer(t, "holder", name, "producer")
	p.expect("ready")
	if !rx.link.peerAlive(consumer) || rx.link.vanished() {
		t.Fatal("the producer lives")
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	// A stopped process is alive.
	must(syscall.Kill(p.pid(), syscall.SIGSTOP))
	time.Sleep(20 * time.Millisecond)
	if !rx.link.peerAlive(consumer) {
		t.Fatal("stopped is not dead")
	}
	p.kill()
	eventually(t, "the kernel releases the lock", func() bool { return !rx.link.peerAlive(consumer) })
	if rx.link.final() {
		t.Fatal("on a named ring a successor may attach")
	}
	tx := hold(t, name, howOpen, Options{Timeout: long}, producer)
	if !rx.link.peerAlive(consumer) || !tx.link.peerAlive(producer) {
		t.Fatal("two handles of one process are strangers who see each other")
	}
	_ = tx.release()
	_ = rx.release()
	dir.expectNames()
}

func TestANameThatVanishesUnderItsUsers(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	tx := hold(t, name, howCreate, Options{}, producer)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if !tx.link.vanished() {
		t.Fatal("it has no name any more")
	}
	// The name is somebody else's now; the old user leaves it alone.
	rx := hold(t, name, howCreate, Options{}, consumer)
	_ = tx.release()
	dir.expectNames("ring")
	if rx.link.vanished() {
		t.Fatal("the new one has its name")
	}
	// Renamed over by something else while in use: not ours to remove either.
	if err := os.WriteFile(dir.at("other"), []byte("somebody's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir.at("other"), name); err != nil {
		t.Fatal(err)
	}
	_ = rx.release()
	dir.expectNames("ring")
}

func TestALeaverOfAnImpossibleRingLeavesIt(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	tx := hold(t, name, howCreate, Options{}, producer)
	atomic.StoreUint64(&tx.ring().head, 7)
	atomic.StoreUint64(&tx.ring().tail, 7)
	_ = tx.release()
	dir.expectNames("ring")
	expectText(t, refused(t, name, howCreate, Options{}, producer), "contradict")
}

func TestRegionsAndListeners(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("region")
	w, err := openRegionNamed(name, howCreate, 10_000, Options{}, false)
	if err != nil {
		t.Fatal(err)
	}
	*(*byte)(unsafe.Add(w.data, 9_999)) = 42
	r, err := openRegionNamed(name, howOpen, 0, Options{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if r.length != 10_000 || r.capacity != 12_288 || *(*byte)(unsafe.Add(r.data, 9_999)) != 42 {
		t.Fatal("it is another region")
	}
	_, err = openRegionNamed(name, howOpenOrCreate, 9_999, Options{}, false)
	expectKind(t, err, InvalidArgument)
	expectText(t, err, "10000", "9999")
	_, err = openRegionNamed(name, howCreate, 1, Options{}, true)
	expectKind(t, err, InvalidArgument)
	_, err = openRegionNamed(name, howCreate, 0, Options{}, false)
	expectKind(t, err, InvalidArgument)
	expectKind(t, refused(t, name, howOpen, Options{}, producer), InvalidArgument)
	_ = w.release()
	dir.expectNames("region")
	// A handle that only reads can be the last one out.
	_ = r.release()
	dir.expectNames()

	bell := dir.at("bell")
	l, err := lockListener(bell, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockListener(bell, Options{})
	expectKind(t, err, AlreadyExists)
	p, err := resolveName(bell, false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if lives, known := listenerLives(p.dir, p.file); !lives || !known {
		t.Fatal("it listens")
	}
	if lives, known := listenerLives(p.dir, "other"); lives || !known {
		t.Fatal("nobody listens there")
	}
	// What is beside it and is no socket stays.
	if err := os.WriteFile(bell+".sock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = l.close()
	dir.expectNames("bell.sock")
}

func TestAReadOnlyHandleHoldsNoRole(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("region")
	// Of a process that died: the read-only handle opens it, and is then the last one out.
	w, err := openRegionNamed(name, howCreate, 1, Options{Persistent: true, Mode: 0o640}, false)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.release()
	for range 2 {
		r, err := openRegionNamed(name, howOpen, 1, Options{}, true)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.release()
	}
	dir.expectNames("region")
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Fatal(info.Mode(), err)
	}
}

// The words that a killed process left are read from the file, not from memory: the layout agrees with itself.
func TestWordsInTheFile(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	a := hold(t, name, howCreate, Options{Capacity: 4096, Align: 32}, producer)
	defer a.release()
	put(a, 100)
	atomic.StoreUint32(&a.ring().producer.epoch, 3)
	atomic.StoreUint32(&a.ring().consumer.closeSeen, 9)
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	w := ringIn(page, 0)
	if w.tail != 16+128 || w.head != 16 || w.producer.epoch != 3 || w.consumer.closeSeen != 9 {
		t.Fatal(w)
	}
	if len := binary.LittleEndian.Uint32(page[headerSize+16:]); len != 100 {
		t.Fatal(len)
	}
}
