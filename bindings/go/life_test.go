package ramway

import (
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
	helpers["holder"] = func(args []string) {
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
		p := startPeer(t, "holder", name, "producer")
		p.expect("ready")
		p.kill()
		return inode(t, name), nil
	},
	"stale, undelivered": func(t *testing.T, name string) (uint64, *attachment) {
		p := startPeer(t, "holder", name, "producer")
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
		{"open_or_create", howOpenOrCreate, Options{}, map[string]any{"no file": makes, "in use": attaches,
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
