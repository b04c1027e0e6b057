package ramway

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// rpcWords are little-endian u32s, and bytes after them.
func rpcWords(after string, numbers ...uint32) []byte {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return append(b, after...)
}

func TestFramesOfRPCAreThePages(t *testing.T) {
	h := callHeader{timeoutUs: 1, metaLen: 3, method: 7, window: 9}
	payload := bytes.Repeat([]byte{0xEE}, int(rpcPayloadLen([]byte("abc"), []byte("body"))))
	h.put(payload)
	putParts(payload, []byte("abc"), []byte("body"))
	if want := rpcWords("abc"+strings.Repeat("\x00", 13)+"body", 1, 3, 7, 9); !bytes.Equal(payload, want) {
		t.Fatalf("% x", payload)
	}
	got, meta, body, err := decodeCall(payload)
	if err != nil || got != h || string(meta) != "abc" || string(body) != "body" {
		t.Fatal(got, meta, body, err)
	}
	r := replyHeader{status: rpcApplication, code: 5, metaLen: 0}
	payload = make([]byte, rpcPayloadLen(nil, []byte("text")))
	r.put(payload)
	putParts(payload, nil, []byte("text"))
	if want := rpcWords("text", 1, 0, 5, 0); !bytes.Equal(payload, want) {
		t.Fatalf("% x", payload)
	}
	back, meta, body, err := decodeReply(payload)
	if err != nil || back != r || meta != nil || string(body) != "text" {
		t.Fatal(back, meta, body, err)
	}
	for _, metaLen := range []int{0, 1, 15, 16, 17, 32} {
		if at := bodyOffset(uint64(metaLen)); at%16 != 0 || at < uint64(16+metaLen) || at >= uint64(32+metaLen) {
			t.Fatal(metaLen, at)
		}
	}
}

func TestFramesOfRPCThatCannotBeAreCorrupt(t *testing.T) {
	padded := func(n int) string { return strings.Repeat("\x00", n) }
	for what, c := range map[string]struct {
		payload []byte
		kind    Kind
	}{
		"nothing":                           {nil, Corrupt},
		"15 bytes":                          {make([]byte, 15), Corrupt},
		"only the header":                   {rpcWords("", 0, 0, 0, 0), 0},
		"metadata of 1 byte":                {rpcWords(padded(16), 0, 1, 0, 0), 0},
		"metadata that is not padded":       {rpcWords(padded(15), 0, 1, 0, 0), Corrupt},
		"metadata that is not there":        {rpcWords("", 0, 1, 0, 0), Corrupt},
		"metadata beyond 32 bits":           {rpcWords(padded(64), 0, math.MaxUint32, 0, 0), Corrupt},
		"metadata that rounds up to 32 bit": {rpcWords(padded(64), 0, math.MaxUint32-15, 0, 0), Corrupt},
	} {
		_, _, _, err := decodeCall(c.payload)
		if KindOf(err) != c.kind {
			t.Errorf("CALL, %s: %v", what, err)
		}
	}
	for what, c := range map[string]struct {
		payload []byte
		kind    Kind
	}{
		"nothing":                    {nil, Corrupt},
		"15 bytes":                   {make([]byte, 15), Corrupt},
		"only the header":            {rpcWords("", 0, 0, 0, 0), 0},
		"every status":               {rpcWords("", 8, 0, 0, 0), 0},
		"an unknown status":          {rpcWords("", 9, 0, 0, 0), Corrupt},
		"the largest status":         {rpcWords("", math.MaxUint32, 0, 0, 0), Corrupt},
		"an element":                 {rpcWords("x", 0, 1, 0, 0), 0},
		"an element with a status":   {rpcWords("x", 1, 1, 0, 0), Corrupt},
		"an unknown flag":            {rpcWords("", 0, 2, 0, 0), Corrupt},
		"the highest flag":           {rpcWords("", 0, 1<<31, 0, 0), Corrupt},
		"a code of the application":  {rpcWords("", 1, 0, 7, 0), 0},
		"a code without its status":  {rpcWords("", 0, 0, 7, 0), Corrupt},
		"a code of another status":   {rpcWords("", 8, 0, 7, 0), Corrupt},
		"metadata that is not there": {rpcWords("", 0, 0, 0, 1), Corrupt},
		"metadata beyond 32 bits":    {rpcWords(padded(64), 0, 0, 0, math.MaxUint32), Corrupt},
	} {
		_, _, _, err := decodeReply(c.payload)
		if KindOf(err) != c.kind {
			t.Errorf("REPLY, %s: %v", what, err)
		}
	}
	expectKind(t, decodeCancel(nil), 0)
	expectKind(t, decodeCancel([]byte{0}), Corrupt)
	for _, c := range []struct {
		payload []byte
		n       uint32
	}{{rpcWords("", 1), 1}, {rpcWords("", math.MaxUint32), math.MaxUint32}, {rpcWords("", 0), 0}, {rpcWords("x", 1), 0}, {nil, 0}, {[]byte("abc"), 0}} {
		n, err := decodeCredit(c.payload)
		if n != c.n || (err == nil) != (c.n != 0) || err != nil && KindOf(err) != Corrupt {
			t.Errorf("CREDIT % x: %d, %v", c.payload, n, err)
		}
	}
}

func TestTimeAndCreditOfFrames(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		left time.Duration
		us   uint32
	}{
		{time.Nanosecond, 1}, {time.Microsecond, 1}, {time.Microsecond + 1, 2}, {time.Second, 1_000_000}, {0, 1}, {-time.Hour, 1},
		{math.MaxUint32 * time.Microsecond, math.MaxUint32}, {math.MaxUint32*time.Microsecond + 1, 0}, {time.Hour * 10_000, 0},
	} {
		if us := timeoutUs(now.Add(c.left), now); us != c.us {
			t.Errorf("%v: %d, expected %d", c.left, us, c.us)
		}
	}
	if timeoutUs(time.Time{}, now) != 0 {
		t.Error("no deadline")
	}
	if addCredit(1, 2) != 3 || addCredit(math.MaxUint32-1, 1) != math.MaxUint32 || addCredit(math.MaxUint32, math.MaxUint32) != math.MaxUint32 {
		t.Error("sums of credit")
	}
}

func TestMethodID(t *testing.T) {
	if MethodID("") != 0x811C9DC5 || MethodID("Store.Get") != 0xBADEBBDC {
		t.Fatalf("%#x, %#x", MethodID(""), MethodID("Store.Get"))
	}
	// One name in 65,536 has a hash of at least FFFF0000.
	for i := range 200_000 {
		if MethodID(fmt.Sprint("Name", i)) >= methodReserved {
			t.Fatalf("Name%d has a number of Ramway's", i)
		}
	}
}

func TestCallErrorsSayWhatTheyAre(t *testing.T) {
	for _, c := range []struct {
		err  *CallError
		is   []error
		not  []error
		text string
	}{
		{&CallError{Status: StatusTimedOut}, []error{StatusTimedOut, ErrTimedOut, context.DeadlineExceeded, os.ErrDeadlineExceeded},
			[]error{StatusOk, ErrClosed}, "before it was begun"},
		{&CallError{Err: failf(TimedOut, "")}, []error{ErrTimedOut, context.DeadlineExceeded}, []error{StatusTimedOut, StatusOk}, "deadline"},
		{&CallError{Status: StatusCancelled, Err: &Error{Kind: Interrupted, Err: context.Canceled}},
			[]error{StatusCancelled, ErrInterrupted, context.Canceled}, []error{ErrTimedOut}, "cancelled"},
		{&CallError{Status: StatusApplication, Code: 404, Text: "no such key", name: "store", method: 7}, []error{StatusApplication},
			[]error{ErrTimedOut}, "calling method 7 of 'store': error 404 of the application: no such key"},
		{&CallError{Err: failf(PeerDead, ""), mayHaveRun: true}, []error{ErrPeerDead}, []error{ErrClosed}, "died"},
		{&CallError{Err: about(failf(Closed, "this client was closed"), "calling", "store"), name: "store", method: 7}, []error{ErrClosed},
			[]error{ErrDetached}, "ramway: calling method 7 of 'store': this client was closed"},
	} {
		for _, is := range c.is {
			if !errors.Is(c.err, is) {
				t.Errorf("%v is not %v", c.err, is)
			}
		}
		for _, not := range c.not {
			if errors.Is(c.err, not) {
				t.Errorf("%v is %v", c.err, not)
			}
		}
		expectText(t, c.err, c.text)
		if c.err.Timeout() != errors.Is(c.err, ErrTimedOut) {
			t.Errorf("%v: Timeout is %v", c.err, c.err.Timeout())
		}
	}
	names := []string{"Ok", "Application", "NoSuchMethod", "TimedOut", "Cancelled", "Overloaded", "ReplyTooLarge", "Draining", "HandlerFailed"}
	for i, name := range names {
		if Status(i).String() != name || !strings.HasPrefix(Status(i).Error(), "ramway: ") {
			t.Error(i, Status(i).String(), Status(i).Error())
		}
	}
	if Status(9).known() || Status(9).String() != "Status(9)" {
		t.Error(Status(9).String())
	}
}

func FuzzRPCFrames(f *testing.F) {
	f.Add(rpcWords("abc", 1, 3, 7, 9))
	f.Add(rpcWords("", 1, 0, 5, 0))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if _, meta, body, err := decodeCall(payload); err == nil && len(meta)+len(body) > len(payload)-rpcHeader {
			t.Fatal("more than there is")
		}
		if _, meta, body, err := decodeReply(payload); err == nil && len(meta)+len(body) > len(payload)-rpcHeader {
			t.Fatal("more than there is")
		}
		_, _ = decodeCredit(payload)
	})
}

// TestMethodIDVectors: the names and numbers that every language agrees on.
func TestMethodIDVectors(t *testing.T) {
	var vectors struct {
		MethodIDs []struct {
			Name   string `json:"name"`
			Number uint32 `json:"number"`
		} `json:"method_ids"`
	}
	must(json.Unmarshal(repositoryFile(t, "format/vectors/rpc.json"), &vectors))
	if len(vectors.MethodIDs) == 0 {
		t.Fatal("no vectors")
	}
	for _, v := range vectors.MethodIDs {
		if got := MethodID(v.Name); got != v.Number {
			t.Errorf("%q: %d, expected %d", v.Name, got, v.Number)
		}
	}
}
