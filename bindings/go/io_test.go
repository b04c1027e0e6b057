package ramway

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// stream is a pair of ends with a small ring between them.
func stream(t *testing.T, o Options) (*Sender, *Receiver) {
	t.Helper()
	o.Capacity = 4096
	tx, rx, err := Pair(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(tx.Close(), rx.Close()) })
	return tx, rx
}

func TestAWriteIsOneMessageUnlessItIsTooLong(t *testing.T) {
	tx, rx := stream(t, Options{})
	w := tx.Writer(within(t), 42)
	for _, n := range []int{0, 1, 4080} {
		if done, err := w.Write(make([]byte, n)); done != n || err != nil {
			t.Fatal(done, err)
		}
		if n == 0 {
			_, err := rx.TryRecv()
			expectKind(t, err, Empty)
			continue
		}
		m, err := rx.TryRecv()
		if err != nil || m.Len() != n || m.TypeID() != 42 {
			t.Fatal(err)
		}
		m.Release()
	}
	sent := bytes.Repeat([]byte("0123456789"), 1000)
	done := make(chan error)
	go func() {
		n, err := w.Write(sent)
		if n != len(sent) {
			err = errors.Join(err, io.ErrShortWrite)
		}
		done <- err
	}()
	var got []byte
	for len(got) < len(sent) {
		m, err := rx.Recv(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if m.Len() > 1024 {
			t.Fatalf("a piece of %d bytes: nothing could be written while it is read", m.Len())
		}
		got = m.Append(got)
		m.Release()
	}
	if err := <-done; err != nil || !bytes.Equal(got, sent) {
		t.Fatal(err)
	}
	// It does not fit beside what is there, and nobody reads.
	if _, err := w.Write(make([]byte, 4000)); err != nil {
		t.Fatal(err)
	}
	late := tx.Writer(cancelled(), 0)
	n, err := late.Write(make([]byte, 4000))
	expectKind(t, err, Interrupted)
	if n != 0 {
		t.Fatal(n)
	}
	_, err = late.ReadFrom(strings.NewReader("x"))
	expectKind(t, err, Interrupted)
}

func TestReadFromEndsWithItsReader(t *testing.T) {
	tx, rx := stream(t, Options{})
	w := tx.Writer(within(t), 0)
	broken := errors.New("broken")
	for _, c := range []struct {
		r    io.Reader
		n    int64
		fail error
	}{
		{strings.NewReader(""), 0, nil},
		{strings.NewReader("abc"), 3, nil},
		{iotest.DataErrReader(strings.NewReader("abc")), 3, nil},
		{iotest.OneByteReader(strings.NewReader("abc")), 3, nil},
		{io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(broken)), 2, broken},
		{idle{}, 0, io.ErrNoProgress},
	} {
		n, err := w.ReadFrom(c.r)
		if n != c.n || !errors.Is(err, c.fail) || (err == nil) != (c.fail == nil) {
			t.Fatalf("%d, %v: expected %d, %v", n, err, c.n, c.fail)
		}
		for n > 0 {
			m, err := rx.TryRecv()
			if err != nil {
				t.Fatal(err)
			}
			n -= int64(m.Len())
			m.Release()
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a reader that read more than there was room for was believed")
			}
		}()
		_, _ = w.ReadFrom(liar{})
	}()
	// The slot was let go.
	if err := tx.TrySend(0, nil); err != nil {
		t.Fatal(err)
	}
}

// idle never has anything, liar more than there was room for.
type (
	idle struct{}
	liar struct{}
)

func (idle) Read([]byte) (int, error)   { return 0, nil }
func (liar) Read(p []byte) (int, error) { return len(p) + 1, nil }

func TestAReaderIsOneStreamOfAllPayloads(t *testing.T) {
	for _, guard := range []bool{false, true} {
		tx, rx := stream(t, Options{Guard: guard})
		for _, text := range []string{"one ", "", "stream", "", " of many"} {
			if err := tx.TrySend(0, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		r := rx.Reader(within(t))
		three := make([]byte, 3)
		if n, err := io.ReadFull(r, three); n != 3 || err != nil || string(three) != "one" {
			t.Fatal(n, err)
		}
		if n, err := r.Read(nil); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		if err := tx.Close(); err != nil {
			t.Fatal(err)
		}
		// The rest of a message that was begun, and all others, in place.
		var rest bytes.Buffer
		if n, err := r.WriteTo(&rest); n != int64(rest.Len()) || err != nil || rest.String() != " stream of many" {
			t.Fatalf("%q, %v", rest.String(), err)
		}
		for range 2 {
			if _, err := r.Read(three); err != io.EOF {
				t.Fatal(err)
			}
		}
	}
}

func TestAReaderThatIsGivenUpLetsItsMessageGo(t *testing.T) {
	tx, rx := stream(t, Options{})
	for _, text := range []string{"one", "two", "three"} {
		if err := tx.TrySend(0, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	r := rx.Reader(within(t))
	one := make([]byte, 1)
	if _, err := r.Read(one); err != nil {
		t.Fatal(err)
	}
	r.Discard()
	r.Discard()
	m, err := rx.TryRecv()
	if err != nil || string(m.Clone()) != "two" {
		t.Fatal(err)
	}
	m.Release()
	full := errors.New("full")
	n, err := r.WriteTo(failing{full})
	if n != 0 || !errors.Is(err, full) {
		t.Fatal(n, err)
	}
	_, err = rx.TryRecv()
	expectKind(t, err, Empty)
	_, err = rx.Reader(cancelled()).Read(one)
	expectKind(t, err, Interrupted)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
