package ramway

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// docs/ABI.md is what this port was written from, so what it shows is compared with what the code writes. Its tables are made from
// format/facts.toml, as facts.go is.

// hexBlock is a block that is fenced as ```hex TITLE.
type hexBlock struct {
	title string
	lines []string
}

// hexBlocks are those whose title begins with this.
func hexBlocks(t *testing.T, title string) (found []hexBlock) {
	t.Helper()
	lines := strings.Split(string(repositoryFile(t, "docs/ABI.md")), "\n")
	for i := 0; i < len(lines); i++ {
		named, is := strings.CutPrefix(lines[i], "```hex ")
		if !is || !strings.HasPrefix(named, title) {
			continue
		}
		block := hexBlock{title: named}
		for i++; lines[i] != "```"; i++ {
			block.lines = append(block.lines, lines[i])
		}
		found = append(found, block)
	}
	if found == nil {
		t.Fatalf("docs/ABI.md has no block '%s'", title)
	}
	return found
}

// compareHex compares `OFFSET  xx xx …` with the bytes there; a byte that is not hexadecimal may be anything.
func compareHex(t *testing.T, line string, bytes []byte) {
	t.Helper()
	words := strings.Fields(line)
	at, err := strconv.ParseUint(words[0], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	for i, word := range words[1:] {
		if shown, err := strconv.ParseUint(word, 16, 8); err == nil && bytes[int(at)+i] != byte(shown) {
			t.Fatalf("byte %#x is %02x, in the line '%s'", int(at)+i, bytes[int(at)+i], line)
		}
	}
}

func TestFramesAreAsShown(t *testing.T) {
	framesAreAsShown(t, "align=", func(tx *Sender) error {
		if err := tx.TrySendTagged(7, 0x1122334455667788, []byte("hello")); err != nil {
			return err
		}
		return tx.TrySend(8, nil)
	})
}

func TestTensorsAreAsShown(t *testing.T) {
	framesAreAsShown(t, "tensor align=", func(tx *Sender) error {
		slot, err := tx.TryReserveTensor(DtypeFloat32, []uint64{2, 3})
		if err != nil {
			return err
		}
		elements, err := Elements[float32](slot.Data(), DtypeFloat32)
		copy(elements, []float32{1, 2, 3, 4, 5, 6})
		return errors.Join(err, slot.Commit(7))
	})
}

// framesAreAsShown compares the blocks of this title with the file of a ring that begins at their start and was sent
// what send sends.
func framesAreAsShown(t *testing.T, title string, send func(tx *Sender) error) {
	for _, block := range hexBlocks(t, title) {
		t.Run(block.title, func(t *testing.T) {
			alignText, startText, _ := strings.Cut(strings.TrimPrefix(block.title, title), " start=")
			align, err := strconv.Atoi(alignText)
			if err != nil {
				t.Fatal(err)
			}
			start, err := strconv.Atoi(startText)
			if err != nil {
				t.Fatal(err)
			}
			name := newFolder(t).at("frames")
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			tx, err := CreateSender(name, Options{Capacity: 4096, Align: align})
			must(err)
			defer tx.Close()
			if start != 0 {
				must(tx.TrySend(1, make([]byte, start-frameHeader)))
				rx, err := OpenReceiver(name, Options{})
				must(err)
				m, err := rx.TryRecv()
				must(err)
				m.Release()
				must(rx.Close())
			}
			must(send(tx))
			file, err := os.ReadFile(name)
			must(err)
			if len(file) != 8192 {
				t.Fatalf("%d bytes", len(file))
			}
			for _, line := range block.lines {
				what, rest, _ := strings.Cut(line, " ")
				switch what {
				case "data":
					compareHex(t, rest, file[4096:])
				case "tail":
					shown, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
					if tail := binary.LittleEndian.Uint64(file[0x480:]); err != nil || tail != shown {
						t.Fatalf("tail is %x, shown '%s'", tail, rest)
					}
				default:
					t.Fatalf("what is '%s'?", line)
				}
			}
		})
	}
}

func TestTheHeaderPageIsAsShown(t *testing.T) {
	name := newFolder(t).at("header")
	a := hold(t, name, howCreate, Options{Capacity: 4096}, producer)
	defer a.release()
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range hexBlocks(t, "header") {
		for _, line := range block.lines {
			compareHex(t, line, file)
		}
	}
}

func TestHelloIsAsShown(t *testing.T) {
	blocks := hexBlocks(t, "hello")
	name := newFolder(t).at("hello")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := Connect(context.Background(), name, ConnectOptions{Timeout: long})
		ended <- err
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	message := make([]byte, handshakeSize)
	if _, err := io.ReadFull(conn, message); err != nil {
		t.Fatal(err)
	}
	// Half an answer and a hang-up end the attempt.
	if _, err := conn.Write([]byte("RAMBUS")); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	expectKind(t, <-ended, PeerDead)
	for _, block := range blocks {
		for _, line := range block.lines {
			compareHex(t, line, message)
		}
	}
}
