package ramway

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// play is one reader of one image.
type play struct {
	t   *testing.T
	v   *vector
	r   *vectorReader
	dir *folder
	// file is the image's, for what the other side does and for what is left in it.
	file *os.File
	// hangUp closes the bus's socket.
	hangUp func()
}

// write fills the image in.
func (p *play) write(file *os.File) {
	p.t.Helper()
	p.file = file
	p.t.Cleanup(func() { _ = file.Close() })
	if err := file.Truncate(p.v.Size); err != nil {
		p.t.Fatal(err)
	}
	for _, run := range p.v.Bytes {
		if _, err := file.WriteAt(run.Hex, run.At); err != nil {
			p.t.Fatal(err)
		}
	}
}

// make writes the image to a file of this name.
func (p *play) make(name string) string {
	p.t.Helper()
	path := p.dir.at(name)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(file)
	if p.r.Held != "" {
		for at, mode := range map[int64]sys.LockMode{byteInUse: sys.Shared, roleNamed(p.r.Held).lockByte(): sys.Exclusive} {
			if got, err := sys.TryLock(int(file.Fd()), at, mode); !got || err != nil {
				p.t.Fatal(got, err)
			}
		}
	}
	return path
}

// opened compares what opening gave; false: there is nothing more to look at but the name.
func (p *play) opened(err error) bool {
	p.t.Helper()
	want := p.r.Open
	if want == "ok" {
		if err != nil {
			p.t.Fatalf("opening: %v", err)
		}
		return true
	}
	if err == nil || KindOf(err).String() != want {
		p.t.Fatalf("opening: %v (%s), expected %s", err, KindOf(err).String(), want)
	}
	return false
}

// nameAfter looks whether the name is there.
func (p *play) nameAfter(path string) {
	p.t.Helper()
	_, err := os.Lstat(path)
	if want := p.r.NameAfter; want != "" && (want == "stays") != (err == nil) {
		p.t.Fatalf("the name: %v, expected: %s", err, want)
	}
}

func (p *play) region() {
	path := p.make("region")
	region, err := OpenRegion(path, Options{})
	if p.opened(err) {
		if region.Len() != p.r.Region.Len || crc32.ChecksumIEEE(region.Bytes()) != p.r.Region.CRC32 {
			p.t.Fatalf("%d bytes, expected %d, or others", region.Len(), p.r.Region.Len)
		}
		if err := region.Close(); err != nil {
			p.t.Fatal(err)
		}
		p.leaves()
	}
	p.nameAfter(path)
}

func (p *play) listener() {
	path := p.make("bell.lock")
	l, err := Bind(p.dir.at("bell"), ListenOptions{})
	if p.opened(err) {
		if err := l.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
	p.nameAfter(path)
}

func (p *play) ring() {
	path := p.make("ring")
	p.hangUp = func() { p.t.Fatal("a named ring has no socket") }
	if p.r.As == "consumer" {
		rx, err := OpenReceiver(path, Options{})
		if p.opened(err) {
			p.consumer(rx)
			p.closed(rx.Close())
		}
	} else {
		tx, err := OpenSender(path, Options{})
		if p.opened(err) {
			p.producer(tx)
			p.closed(tx.Close())
		}
	}
	p.nameAfter(path)
}

// bus is a listener that sends the image as a bus's memory.
func (p *play) bus() {
	fd, err := unix.MemfdCreate("ramway-vector", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(os.NewFile(uintptr(fd), "memfd"))
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		p.t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.dir.at("bus"), Net: "unix"})
	if err != nil {
		p.t.Fatal(err)
	}
	defer l.Close()
	type answer struct {
		conn   *net.UnixConn
		status uint32
		err    error
	}
	served := make(chan answer, 1)
	go func() {
		conn, err := l.AcceptUnix()
		if err != nil {
			served <- answer{err: err}
			return
		}
		status, err := serveImage(conn, fd, p.v.Size)
		served <- answer{conn, status, err}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	bus, connectErr := Connect(ctx, p.dir.at("bus"), ConnectOptions{})
	a := <-served
	if a.err != nil {
		p.t.Fatal(a.err)
	}
	defer a.conn.Close()
	p.hangUp = func() { _ = a.conn.Close() }
	if !p.opened(connectErr) {
		if Kind(a.status).String() != p.r.Open {
			p.t.Fatalf("ACK says %s, expected %s", Kind(a.status).String(), p.r.Open)
		}
		return
	}
	if a.status != 0 {
		p.t.Fatalf("ACK says %d", a.status)
	}
	if p.r.As == "consumer" {
		p.consumer(bus.Receiver())
	} else {
		p.producer(bus.Sender())
	}
	p.closed(bus.Close())
}

// serveImage is the listener's side of a handshake, and gives the status in ACK.
func serveImage(conn *net.UnixConn, fd int, size int64) (uint32, error) {
	_ = conn.SetDeadline(time.Now().Add(long))
	var message [handshakeSize]byte
	read := func() error {
		for n := 0; n < len(message); {
			got, err := conn.Read(message[n:])
			if err != nil {
				return err
			}
			n += got
		}
		return nil
	}
	if err := read(); err != nil {
		return 0, fmt.Errorf("HELLO: %w", err)
	}
	answer := encodeHandshake(welcome, 0, uint64(size))
	if _, _, err := conn.WriteMsgUnix(answer[:], unix.UnixRights(fd), nil); err != nil {
		return 0, err
	}
	if err := read(); err != nil {
		return 0, fmt.Errorf("ACK: %w", err)
	}
	return binary.LittleEndian.Uint32(message[0x14:]), nil
}

// end is one half of a ring, as far as both kinds are alike.
type end interface {
	Epoch() uint32
	PeerEpoch() uint32
	Capacity() int64
	MaxMessageLen() int
}

func (p *play) attached(e end) {
	p.t.Helper()
	if want := p.r.Attached; want != nil &&
		(e.Epoch() != want.Epoch || e.PeerEpoch() != want.PeerEpoch || e.Capacity() != want.Capacity || e.MaxMessageLen() != want.Max) {
		p.t.Fatalf("attached: epochs %d and %d, capacity %d, longest %d, expected %+v", e.Epoch(), e.PeerEpoch(), e.Capacity(),
			e.MaxMessageLen(), *want)
	}
	if p.r.Then != nil && p.r.Then.When == "paused" {
		p.then()
	}
}

// then is what the other side does.
func (p *play) then() {
	p.poke(p.r.Then.Bytes)
	if p.r.Then.HangUp {
		p.hangUp()
	}
}

// poke writes into the image's file, words of 4 and 8 bytes by one atomic store.
func (p *play) poke(runs []run) {
	page := int64(sys.PageSize())
	for _, run := range runs {
		size := int64(len(run.Hex))
		if size != 4 && size != 8 || run.At%size != 0 {
			if _, err := p.file.WriteAt(run.Hex, run.At); err != nil {
				p.t.Error(err)
			}
			continue
		}
		at, err := sys.Map(int(p.file.Fd()), run.At/page*page, int(page), true)
		if err != nil {
			p.t.Error(err)
			return
		}
		word := unsafe.Add(at, run.At%page)
		if size == 8 {
			atomic.StoreUint64((*uint64)(word), binary.LittleEndian.Uint64(run.Hex))
		} else {
			atomic.StoreUint32((*uint32)(word), binary.LittleEndian.Uint32(run.Hex))
		}
		_ = sys.Unmap(at, int(page))
	}
}

func (p *play) consumer(rx *Receiver) {
	p.t.Helper()
	p.attached(rx)
	if p.r.Then != nil && p.r.Then.When == "waiting" {
		poked := make(chan struct{})
		go func() {
			defer close(poked)
			time.Sleep(50 * time.Millisecond)
			p.then()
		}()
		defer func() { <-poked }()
	}
	// Nothing more to come is waited for longer than an ending takes that is none here.
	waitMax := long
	if p.r.End == "TimedOut" {
		waitMax = 300 * time.Millisecond
	}
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeout(context.Background(), waitMax)
		m, err := rx.Recv(ctx)
		cancel()
		if err != nil {
			if KindOf(err).String() != p.r.End || i != len(p.r.Messages) {
				p.t.Fatalf("after %d of %d messages: %v (%s), expected %s", i, len(p.r.Messages), err, KindOf(err).String(), p.r.End)
			}
			break
		}
		if i >= len(p.r.Messages) {
			p.t.Fatalf("message %d of %d: %d bytes", i+1, len(p.r.Messages), m.Len())
		}
		want := p.r.Messages[i]
		var sum uint32
		m.View(func(b []byte) { sum = crc32.ChecksumIEEE(b) })
		if m.TypeID() != want.TypeID || strconv.FormatUint(m.Tag(), 10) != want.Tag || m.Len() != want.Len || sum != want.CRC32 {
			p.t.Fatalf("message %d: type id %d, tag %d, %d bytes, checksum %d, expected %+v", i, m.TypeID(), m.Tag(), m.Len(), sum, want)
		}
		m.Release()
	}
	if p.r.End == "Corrupt" {
		if _, err := rx.TryRecv(); KindOf(err) != Corrupt {
			p.t.Fatalf("it does not stay dead: %v", err)
		}
	}
}

func (p *play) producer(tx *Sender) {
	p.t.Helper()
	p.attached(tx)
	last := "none"
	if tag, found := tx.LastTag(); found {
		last = strconv.FormatUint(tag, 10)
	}
	if p.r.Last != "" && last != p.r.Last {
		p.t.Fatalf("the last tag is %s, expected %s", last, p.r.Last)
	}
	payload := make([]byte, p.r.Send)
	for i := range payload {
		payload[i] = byte(i)
	}
	err := tx.TrySendTagged(0, uint64(crc32.ChecksumIEEE(payload))<<32, payload)
	end := "sent"
	if err != nil {
		end = KindOf(err).String()
	}
	if end != p.r.End {
		p.t.Fatalf("sending %d bytes: %v (%s), expected %s", p.r.Send, err, end, p.r.End)
	}
	if end == "Corrupt" {
		if err := tx.TrySend(0, nil); KindOf(err) != Corrupt {
			p.t.Fatalf("it does not stay dead: %v", err)
		}
	}
}

// closed looks at what an orderly close left.
func (p *play) closed(err error) {
	p.t.Helper()
	// A handle that is dead for good says so once more.
	if err != nil && !(p.r.End == "Corrupt" && KindOf(err) == Corrupt) {
		p.t.Fatalf("closing: %v", err)
	}
	p.leaves()
}

// leaves compares the bytes of the file.
func (p *play) leaves() {
	p.t.Helper()
	for _, run := range p.r.Leaves {
		found := make([]byte, len(run.Hex))
		if _, err := p.file.ReadAt(found, run.At); err != nil {
			p.t.Fatal(err)
		}
		for i := range found {
			mask := byte(0xFF)
			if run.Mask != nil {
				mask = run.Mask[i]
			}
			if found[i]&mask != run.Hex[i]&mask {
				p.t.Fatalf("at %#x it leaves %x, expected %x (mask %x)", run.At, found, []byte(run.Hex), []byte(run.Mask))
			}
		}
	}
}
