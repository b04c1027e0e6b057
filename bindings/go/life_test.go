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

// The life of a name, row by row of the call table in section 11 of docs/ABI.md. The ring's words are set here directly:
// what a sender and a receiver do with them is tested elsewhere.

func init() {
	helpers["hold"] = func(args []string) {
		a, err := attachNamed(args[0], howOpenOrCreate, Options{Capacity: 4096}, roleNamed(args[1]))
		must(err)
		say("ready")
		for told() == "put" {
			put(a, 5)
			say("done")
		}
		must(a.release())
	}
	helpers["create-later"] = func(args []string) {
		time.Sleep(300 * time.Millisecond)
		a, err := attachNamed(args[0], howCreate, Options{}, consumer)
		must(err)
		told()
		must(a.release())
	}
}

func roleNamed(name string) role {
	if name == "consumer" {
		return consumer
	}
	return producer
}

// hold attaches to a ring and fails the test where that fails.
func hold(t testing.TB, name string, how how, o Options, r role) *attachment {
	t.Helper()
	a, err := attachNamed(name, how, o, r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// refused is the error of an attempt that must fail.
func refused(t testing.TB, name string, how how, o Options, r role) error {
	t.Helper()
	a, err := attachNamed(name, how, o, r)
	if err == nil {
		_ = a.release()
		t.Fatalf("%s '%s' as %s worked", how.verb(), name, r)
	}
	return err
}

// put publishes a message of n bytes.
func put(a *attachment, n uint64) {
	ring := a.ring()
	tail := atomic.LoadUint64(&ring.tail)
	*(*uint32)(unsafe.Add(a.data, tail&(a.capacity-1))) = uint32(n)
	atomic.StoreUint64(&ring.tail, tail+frameSize(n, a.align))
}

// drain releases everything.
func drain(a *attachment) {
	ring := a.ring()
	atomic.StoreUint64(&ring.head, atomic.LoadUint64(&ring.tail))
}

// poke writes into a segment's file.
func poke(t testing.TB, path string, at int64, bytes []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(bytes, at); err != nil {
		t.Fatal(err)
	}
}

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// The states of the table's columns. Each makes the name and says its inode; "in use" also returns what keeps it so.
var columns = map[string]func(t *testing.T, name string) (uint64, *attachment){
	"no file": func(*testing.T, string) (uint64, *attachment) { return 0, nil },
	"in use": func(t *testing.T, name string) (uint64, *attachment) {
		a := hold(t, name, howCreate, Options{Capacity: 8192}, producer)
		return inode(t, name), a
	},
	"stale and empty": func(t *testing.T, name string) (uint64, *attachment) {
		p := startPeer(t, "hold", name, "producer")
		p.expect("ready")
		p.kill()
		return inode(t, name), nil
	},
	"stale, undelivered": func(t *testing.T, name string) (uint64, *attachment) {
		p := startPeer(t, "hold", name, "producer")
		p.expect("ready")
		for range 3 {
			p.tell("put")
			p.expect("done")
		}
		p.kill()
		return inode(t, name), nil
	},
	"stale, an unseen close": func(t *testing.T, name string) (uint64, *attachment) {
		a := hold(t, name, howCreate, Options{}, producer)
		atomic.StoreUint32(&a.ring().producer.epoch, 1)
		atomic.StoreUint32(&a.ring().producer.flags, roleClosed)
		if err := a.release(); err != nil {
			t.Fatal(err)
		}
		return inode(t, name), nil
	},
	"stale, persistent": func(t *testing.T, name string) (uint64, *attachment) {
		if err := hold(t, name, howCreate, Options{Persistent: true}, producer).release(); err != nil {
			t.Fatal(err)
		}
		return inode(t, name), nil
	},
	"of another boot": func(t *testing.T, name string) (uint64, *attachment) {
		a := hold(t, name, howCreate, Options{}, producer)
		put(a, 100)
		_ = a.release()
		poke(t, name, offBootID, []byte("0123456789abcdef"))
		return inode(t, name), nil
	},
}

func TestCallTable(t *testing.T) {
	const (
		makes    = "makes it"
		attaches = "attaches"
	)
	discard := Options{Discard: true}
	calls := []struct {
		call string
		how  how
		o    Options
		want map[string]any
	}{
		{"create", howCreate, Options{}, map[string]any{"no file": makes, "in use": AlreadyExists, "stale and empty": makes,
			"stale, undelivered": AlreadyExists, "stale, an unseen close": AlreadyExists, "stale, persistent": AlreadyExists,
			"of another boot": makes}},
		{"create, discarding", howCreate, discard, map[string]any{"no file": makes, "in use": AlreadyExists,
			"stale and empty": makes, "stale, undelivered": makes, "stale, an unseen close": makes, "stale, persistent": makes,
			"of another boot": makes}},
		{"open", howOpen, Options{}, map[string]any{"no file": NotFound, "in use": attaches, "stale and empty": attaches,
			"stale, undelivered": attaches, "stale, an unseen close": attaches, "stale, persistent": attaches,
			"of another boot": NotFound}},
		{"open_or_create", howOpenOrCreate, discard, map[string]any{"no file": makes, "in use": attaches,
			"stale and empty": attaches, "stale, undelivered": attaches, "stale, an unseen close": attaches,
			"stale, persistent": attaches, "of another boot": makes}},
	}
	for _, c := range calls {
		for column, make := range columns {
			t.Run(c.call+"/"+column, func(t *testing.T) {
				dir := newFolder(t)
				name := dir.at("ring")
				before, holder := make(t, name)
				a, err := attachNamed(name, c.how, c.o, consumer)
				switch want := c.want[column]; want {
				case makes:
					expectKind(t, err, 0)
					if inode(t, name) == before {
						t.Fatal("it is the old one")
					}
					if w := a.ring(); w.tail != 0 || w.head != 0 || w.producer.epoch != 0 {
						t.Fatal("it is not a new ring")
					}
				case attaches:
					expectKind(t, err, 0)
					if inode(t, name) != before {
						t.Fatal("it is not the one that was there")
					}
				default:
					expectKind(t, err, want.(Kind))
					expectText(t, err, name)
					if before != 0 && inode(t, name) != before {
						t.Fatal("it was touched")
					}
				}
				if holder != nil {
					// The same role once more is Busy, for every call that attaches.
					if c.want[column] == attaches {
						expectKind(t, refused(t, name, c.how, c.o, producer), Busy)
					}
					_ = holder.release()
				}
				if a != nil {
					_ = a.release()
				}
			})
		}
	}
}

func TestWhatIsThereIsSaid(t *testing.T) {
	dir := newFolder(t)
	for column, text := range map[string]string{
		"in use":                 "live ring",
		"stale, undelivered":     "3 undelivered messages (15 bytes)",
		"stale, an unseen close": "end of a stream",
		"stale, persistent":      "persistent",
	} {
		name := dir.at(column[len(column)-5:])
		_, holder := columns[column](t, name)
		expectText(t, refused(t, name, howCreate, Options{}, consumer), "creating the ring '"+name+"'", text)
		if holder != nil {
			_ = holder.release()
		}
	}
	name := dir.at("boot")
	columns["of another boot"](t, name)
	expectText(t, refused(t, name, howOpen, Options{}, consumer), "another boot")
}

func TestTheLastOneOutRemovesTheName(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	tx := hold(t, name, howCreate, Options{Capacity: 4096}, producer)
	p := startPeer(t, "hold", name, "consumer")
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
	for _, o := range []Options{{Align: 24}, {Align: 8}, {Align: 8192}, {Align: -16}, {Capacity: -1}} {
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
	p := startPeer(t, "hold", name, "producer")
	p.expect("ready")
	start := time.Now()
	err := refused(t, name, howOpen, Options{Timeout: 150 * time.Millisecond}, producer)
	expectKind(t, err, Busy)
	expectText(t, err, "sender", name)
	if waited := time.Since(start); waited < 150*time.Millisecond {
		t.Fatalf("waited %v", waited)
	}
	got := make(chan *attachment)
	go func() { got <- hold(t, name, howOpen, Options{Timeout: long}, producer) }()
	time.Sleep(50 * time.Millisecond)
	p.kill()
	_ = (<-got).release()
}

func TestLivenessIsTheLock(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	rx := hold(t, name, howCreate, Options{Capacity: 4096}, consumer)
	if rx.link.peerAlive(consumer) {
		t.Fatal("a producer that never was")
	}
	p := startPeer(t, "hold", name, "producer")
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
	eventually(t, "the kernel lets go of the lock", func() bool { return !rx.link.peerAlive(consumer) })
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
	w := readRingWords(page, 0)
	if w.tail != 16+128 || w.head != 16 || w.producerEpoch != 3 || w.closeSeen != 9 {
		t.Fatal(w)
	}
	if len := binary.LittleEndian.Uint32(page[headerSize+16:]); len != 100 {
		t.Fatal(len)
	}
}
