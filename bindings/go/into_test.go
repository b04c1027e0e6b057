package ramway

import (
	"errors"
	"testing"
)

func TestRecvInto(t *testing.T) {
	tx, rx, err := Pair(Options{Capacity: 4096})
	expectKind(t, err, 0)
	defer tx.Close()
	defer rx.Close()
	buffer := make([]byte, 5)
	_, err = rx.TryRecvInto(buffer)
	expectKind(t, err, Empty)
	_, err = rx.RecvInto(expired(), buffer)
	expectKind(t, err, TimedOut)
	expectKind(t, tx.SendTagged(background, 3, 7, []byte("longer")), 0)
	expectKind(t, tx.Send(background, 4, []byte("five!")), 0)
	for range 2 {
		meta, err := rx.RecvInto(background, buffer)
		expectKind(t, err, TooLarge)
		expectText(t, err, "6 bytes", "5")
		if meta != (Meta{TypeID: 3, Tag: 7, Len: 6}) {
			t.Fatal(meta)
		}
	}
	// It has stayed.
	whole := make([]byte, 100)
	meta, err := rx.TryRecvInto(whole)
	if err != nil || meta != (Meta{TypeID: 3, Tag: 7, Len: 6}) || string(whole[:6]) != "longer" {
		t.Fatal(meta, err, whole[:6])
	}
	meta, err = rx.RecvInto(background, buffer)
	if err != nil || meta != (Meta{TypeID: 4, Len: 5}) || string(buffer) != "five!" || tx.Len() != 0 {
		t.Fatal(meta, err, buffer)
	}
	// While a message is out, nothing else is received.
	expectKind(t, tx.Send(background, 1, nil), 0)
	m, err := rx.Recv(background)
	expectKind(t, err, 0)
	_, err = rx.TryRecvInto(buffer)
	expectKind(t, err, Busy)
	m.Release()
}

func TestSendBatchWithATag(t *testing.T) {
	tx, rx, err := Pair(Options{Capacity: 4096})
	expectKind(t, err, 0)
	n, err := tx.SendBatch(background, 2, 77, [][]byte{[]byte("a"), []byte("b")})
	if n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if tag, any := tx.LastTag(); tag != 77 || !any {
		t.Fatal(tag, any)
	}
	batch, err := rx.RecvBatch(background, 10)
	expectKind(t, err, 0)
	for m := range batch.All() {
		if m.Tag() != 77 || m.TypeID() != 2 {
			t.Fatal(m.Tag())
		}
	}
	batch.Release()
	// As many as fit before the time is over; what was sent is there.
	messages := make([][]byte, 10)
	for i := range messages {
		messages[i] = make([]byte, 1000)
	}
	n, err = tx.SendBatch(expired(), 2, 78, messages)
	expectKind(t, err, TimedOut)
	if n != 4 {
		t.Fatalf("%d sent", n)
	}
	batch, err = rx.RecvBatch(background, 10)
	expectKind(t, err, 0)
	if batch.Len() != 4 {
		t.Fatalf("%d received", batch.Len())
	}
	batch.Release()
	expectKind(t, errors.Join(tx.Close(), rx.Close()), 0)
}

func TestABusHasTheCallsOfItsHalves(t *testing.T) {
	name := newFolder(t).at("engine")
	accepted := make(chan *Bus, 1)
	go func() {
		bus, err := Listen(within(t), name, ListenOptions{Capacity: 4096})
		if err != nil {
			t.Error(err)
		}
		accepted <- bus
	}()
	out, err := Connect(within(t), name, ConnectOptions{})
	expectKind(t, err, 0)
	in := <-accepted
	expectKind(t, out.SendTagged(background, 1, 5, []byte("tagged")), 0)
	expectKind(t, out.TrySendTagged(2, 6, []byte("tried")), 0)
	slot, err := out.Reserve(background, 10)
	expectKind(t, err, 0)
	expectKind(t, slot.Commit(3, 7, copy(slot.Bytes(), "in place")), 0)
	buffer := make([]byte, 100)
	for _, want := range []struct {
		meta Meta
		text string
	}{{Meta{1, 5, 6}, "tagged"}, {Meta{2, 6, 5}, "tried"}, {Meta{3, 7, 8}, "in place"}} {
		meta, err := in.RecvInto(background, buffer)
		if err != nil || meta != want.meta || string(buffer[:meta.Len]) != want.text {
			t.Fatal(meta, err)
		}
	}
	// What ends names the bus, on both sides.
	if in.Name() != name || out.Name() != name || in.Receiver().Name() != name {
		t.Fatal(in.Name(), out.Name())
	}
	expectKind(t, out.Close(), 0)
	err = receiveOnce(in.Receiver())(background)
	expectKind(t, err, Closed)
	expectText(t, err, "receiving from '"+name+"'", "the peer closed")
	expectKind(t, in.Send(background, 1, nil), Closed)
	expectText(t, in.Send(background, 1, nil), "sending to '"+name+"'")
	_ = in.Close()
}

// TestErrorsNameTheRegion: and not only rings and buses.
func TestErrorsNameTheRegion(t *testing.T) {
	name := newFolder(t).at("region")
	region, err := CreateRegion(name, 64, Options{})
	expectKind(t, err, 0)
	readOnly, err := OpenRegionReadOnly(name, Options{})
	expectKind(t, err, 0)
	_, outside := region.WriteAt(make([]byte, 100), 0)
	_, before := region.ReadAt(nil, -1)
	_, unaligned := region.Uint64(4)
	expectKind(t, readOnly.Close(), 0)
	closed := readOnly.Wait(background)
	expectKind(t, closed, Detached)
	for _, err := range []error{outside, before, unaligned, closed, region.Wait(expired())} {
		expectText(t, err, name)
	}
	if region.Name() != name {
		t.Fatal(region.Name())
	}
	expectKind(t, region.Close(), 0)
}
