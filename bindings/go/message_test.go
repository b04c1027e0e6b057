package ramway

import (
	"bytes"
	"context"
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"
)

func TestMessageCalls(t *testing.T) {
	for _, guard := range []bool{false, true} {
		tx, rx, err := Pair(Options{Capacity: 1 << 16, Guard: guard})
		expectKind(t, err, 0)
		expectKind(t, tx.SendTagged(background, 7, 42, []byte("hello, world")), 0)
		m, err := rx.Recv(background)
		expectKind(t, err, 0)
		if m.TypeID() != 7 || m.Tag() != 42 || m.Len() != 12 {
			t.Fatalf("%d, %d, %d", m.TypeID(), m.Tag(), m.Len())
		}
		var written bytes.Buffer
		n, err := m.WriteTo(&written)
		section, _ := io.ReadAll(io.NewSectionReader(m, 7, 100))
		some := make([]byte, 5)
		if err != nil || n != 12 || written.String() != "hello, world" || string(section) != "world" ||
			string(m.Append([]byte("> "))) != "> hello, world" || string(m.Clone()) != "hello, world" ||
			m.Copy(some) != 5 || string(some) != "hello" || string(m.UnsafeBytes()) != "hello, world" || cap(m.UnsafeBytes()) != 12 {
			t.Fatal("other bytes")
		}
		if _, err := m.ReadAt(some, 12); err != io.EOF {
			t.Fatal(err)
		}
		if n, err := m.ReadAt(some, 8); n != 4 || err != io.EOF {
			t.Fatal(n, err)
		}
		_, err = m.ReadAt(some, -1)
		expectKind(t, err, InvalidArgument)
		_, err = rx.Recv(background)
		expectKind(t, err, Busy)
		_, err = rx.TryRecvBatch(1)
		expectKind(t, err, Busy)
		_, err = rx.RecvBatch(background, 0)
		expectKind(t, err, InvalidArgument)
		m.Release()
		for _, use := range []func(){
			func() { m.TypeID() }, func() { m.Tag() }, func() { m.Len() }, func() { m.View(func([]byte) {}) },
			func() { m.UnsafeBytes() }, func() { m.Append(nil) }, func() { m.Clone() }, func() { m.Copy(nil) },
			func() { _, _ = m.ReadAt(nil, 0) }, func() { _, _ = m.WriteTo(io.Discard) },
			func() { Message{}.Len() },
		} {
			expectPanic(t, "message used after Release", use)
		}
		m.Release()
		Message{}.Release()
		// A copy of a message that was released does not come to life with the next one, nor release it.
		expectKind(t, tx.Send(background, 1, []byte("next")), 0)
		next, err := rx.Recv(background)
		expectKind(t, err, 0)
		expectPanic(t, "message used after Release", func() { m.Len() })
		m.Release()
		if string(next.Clone()) != "next" {
			t.Fatal("a second release gave another message back")
		}
		next.Release()

		if n, err := tx.SendBatch(background, 1, 0, [][]byte{[]byte("a"), []byte("b"), []byte("c")}); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		batch, err := rx.RecvBatch(background, 2)
		expectKind(t, err, 0)
		var all []string
		for m := range batch.All() {
			all = append(all, string(m.Clone()))
			m.Release() // with the batch
			all = append(all, string(m.UnsafeBytes()))
		}
		if strings.Join(all, "") != "aabb" || batch.Len() != 2 {
			t.Fatal(all)
		}
		second := batch.At(1)
		batch.Release()
		expectPanic(t, "batch used after Release", func() { batch.Len() })
		expectPanic(t, "batch used after Release", func() { batch.At(0) })
		batch.Release()
		Batch{}.Release()
		expectPanic(t, "message used after Release", func() { second.Len() })

		dst, meta, err := rx.RecvAppend(background, []byte("> "))
		if err != nil || string(dst) != "> c" || meta != (Meta{TypeID: 1, Len: 1}) {
			t.Fatal(string(dst), meta, err)
		}
		ctx, cancel := context.WithCancel(background)
		cancel()
		dst, _, err = rx.RecvAppend(ctx, dst)
		expectKind(t, err, Interrupted)
		if string(dst) != "> c" {
			t.Fatal(string(dst))
		}
		expectKind(t, tx.Close(), 0)
		expectKind(t, rx.Close(), 0)
	}
}

func TestLoops(t *testing.T) {
	tx, rx, err := Pair(Options{})
	expectKind(t, err, 0)
	for i := range 10 {
		expectKind(t, tx.SendTagged(background, 1, uint64(i), nil), 0)
	}
	for m := range rx.All(background) {
		if m.Tag() == 1 {
			m.Release() // early
		}
		if m, err := rx.TryRecv(); err == nil {
			m.Release()
			break // tag 2, which was received in the body
		}
	}
	expectKind(t, rx.Err(), 0)
	expectPanic(t, "the body's own", func() {
		for range rx.All(background) {
			panic("the body's own")
		}
	})
	// Left by break or panic, each message is released all the same.
	m, err := rx.TryRecv()
	expectKind(t, err, 0)
	if m.Tag() != 4 {
		t.Fatalf("tag %d", m.Tag())
	}
	m.Release()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	n := 0
	for range rx.All(ctx) {
		n++
		cancel() // asked for only where there is nothing left
	}
	if n != 5 {
		t.Fatalf("%d messages", n)
	}
	expectKind(t, rx.Err(), Interrupted)
	expectKind(t, tx.Close(), 0)
	for range rx.Batches(background, 4) {
		t.Fatal("a batch of nothing")
	}
	expectKind(t, rx.Err(), 0)
	expectKind(t, rx.Close(), 0)
}

// TestGuardedViews: a slice that is kept longer than its message is a fault, also where the next message lies in the
// same page, and also after the sender has written there again.
func TestGuardedViews(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	tx, rx, err := Pair(Options{Capacity: 1 << 14, Align: 64, Guard: true})
	expectKind(t, err, 0)
	var kept [][]byte
	for i := range 300 {
		// Three in each ring's worth go across the end; some are longer than a page.
		payload := bytes.Repeat([]byte{byte(i)}, 1+i*37%9000)
		expectKind(t, tx.Send(background, 1, payload), 0)
		m, err := rx.Recv(background)
		expectKind(t, err, 0)
		b := m.UnsafeBytes()
		if !bytes.Equal(b, payload) || cap(b) != len(b) || uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
			t.Fatalf("message %d is not what was sent", i)
		}
		if again := m.UnsafeBytes(); &again[0] != &b[0] {
			t.Fatal("a second view lies elsewhere")
		}
		if within := uintptr(unsafe.Pointer(&b[0])) - uintptr(rx.data); within < 2<<14 {
			t.Fatal("the view is not guarded")
		}
		kept = append(kept, b)
		m.Release()
		for _, b := range kept {
			expectFault(t, func() byte { return b[0] })
			expectFault(t, func() byte { return b[len(b)-1] })
		}
		kept = kept[max(0, len(kept)-10):]
	}
	// A batch of a whole ring, whose end lies in the page of its beginning.
	expectKind(t, tx.Send(background, 1, make([]byte, 100)), 0)
	m, err := rx.Recv(background)
	expectKind(t, err, 0)
	m.Release()
	var messages [][]byte
	for i := range 1 << 14 / 64 {
		messages = append(messages, bytes.Repeat([]byte{byte(i)}, 48))
	}
	n, err := tx.SendBatch(background, 2, 0, messages)
	if err != nil || n != len(messages) || tx.Len() != tx.Capacity() {
		t.Fatal(n, err)
	}
	batch, err := rx.RecvBatch(background, 1<<20)
	expectKind(t, err, 0)
	kept = kept[:0]
	i := 0
	for m := range batch.All() {
		m.View(func(b []byte) {
			if !bytes.Equal(b, messages[i]) {
				t.Fatalf("message %d of the batch is %v", i, b)
			}
			kept = append(kept, b)
		})
		i++
	}
	batch.Release()
	for _, b := range kept {
		expectFault(t, func() byte { return b[47] })
	}
	expectKind(t, tx.Close(), 0)
	expectKind(t, rx.Close(), 0)
	expectFault(t, func() byte { return kept[0][0] })
}

var sink byte

func expectFault(t *testing.T, read func() byte) {
	t.Helper()
	defer func() {
		t.Helper()
		if fault, ok := recover().(interface{ Addr() uintptr }); !ok {
			t.Fatalf("read without a fault: %v", fault)
		}
	}()
	sink = read()
}

// TestNothingIsAllocated on the paths that a message takes, waits with a context that can be cancelled included.
func TestNothingIsAllocated(t *testing.T) {
	tx, rx, err := Pair(Options{})
	expectKind(t, err, 0)
	back, answers, err := Pair(Options{Wait: Block})
	expectKind(t, err, 0)
	payload, buffer := make([]byte, 32), make([]byte, 0, 4096)
	messages := [][]byte{payload, payload, payload}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	check := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	receive := func() {
		m, err := rx.Recv(ctx)
		check(err)
		_ = m.UnsafeBytes()[0]
		m.View(func(b []byte) { sink = b[0] })
		buffer = m.Append(buffer[:0])
		m.Release()
	}
	// For each message of the Pair one comes back, so that both sides wait.
	go func() {
		for range answers.All(background) {
			check(tx.Send(background, 1, payload))
		}
		check(tx.Close())
	}()
	for _, one := range []struct {
		name string
		call func()
	}{
		{"send and recv", func() { check(tx.Send(ctx, 1, payload)); receive() }},
		{"tagged", func() { check(tx.SendTagged(ctx, 1, 99, payload)); receive() }},
		{"try", func() {
			check(tx.TrySend(1, payload))
			m, err := rx.TryRecv()
			check(err)
			m.Release()
			if _, err := rx.TryRecv(); err != ErrEmpty {
				t.Error(err)
			}
		}},
		{"reserve", func() {
			slot, err := tx.Reserve(ctx, 32)
			check(err)
			slot.Bytes()[0] = 1
			check(slot.Commit(1, 0, 32))
			receive()
		}},
		{"unflushed", func() {
			for range 4 {
				slot, err := tx.TryReserve(32)
				check(err)
				check(slot.CommitUnflushed(1, 0, 32))
			}
			check(tx.Flush())
			for range 4 {
				receive()
			}
		}},
		{"vector", func() { check(tx.SendVectored(ctx, 1, 2, payload, payload)); receive() }},
		{"append", func() {
			check(tx.Send(ctx, 1, payload))
			var err error
			buffer, _, err = rx.RecvAppend(ctx, buffer[:0])
			check(err)
		}},
		{"batch", func() {
			_, err := tx.SendBatch(ctx, 1, 0, messages)
			check(err)
			batch, err := rx.RecvBatch(ctx, 10)
			check(err)
			for m := range batch.All() {
				sink = m.UnsafeBytes()[0]
			}
			batch.Release()
		}},
	} {
		if n := testing.AllocsPerRun(2000, one.call); n != 0 {
			t.Errorf("%s: %v allocations", one.name, n)
		}
	}
	// From here on the other goroutine sends.
	for _, mode := range []WaitMode{Hybrid, Block} {
		rx.SetWait(mode)
		if n := testing.AllocsPerRun(2000, func() { check(back.Send(ctx, 1, payload)); receive() }); n != 0 {
			t.Errorf("waiting, %v: %v allocations", mode, n)
		}
	}
	// A loop: what it takes to begin one is spread over its messages.
	n := testing.AllocsPerRun(20, func() {
		for range 200 {
			check(back.Send(ctx, 1, payload))
		}
		got := 0
		for m := range rx.All(ctx) {
			sink = m.UnsafeBytes()[0]
			if got++; got == 200 {
				break
			}
		}
	})
	if n > 8 {
		t.Errorf("a loop over 200 messages: %v allocations", n)
	}
	check(back.Close())
	for range rx.All(background) {
	}
	check(rx.Err())
	check(answers.Close())
	check(rx.Close())
}
