package ramway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"testing"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Every image of a topic of format/vectors, opened by its path as each of its readers.

type topicReader struct {
	As       string  `json:"as"`
	Label    string  `json:"label"`
	Held     []int64 `json:"held"`
	Open     string  `json:"open"`
	Then     []run   `json:"then"`
	Lagged   string  `json:"lagged"`
	Messages []struct {
		readMessage
		Seq  string `json:"seq"`
		Lost string `json:"lost"`
	} `json:"messages"`
	End       string `json:"end"`
	Leaves    []run  `json:"leaves"`
	NameAfter string `json:"name_after"`
}

func TestTopicVectors(t *testing.T) {
	var file struct {
		Format string `json:"format"`
		Topics []struct {
			Name    string        `json:"name"`
			About   string        `json:"about"`
			Class   string        `json:"class"`
			Size    int64         `json:"size"`
			Bytes   []run         `json:"bytes"`
			Readers []topicReader `json:"readers"`
		} `json:"topics"`
	}
	decoder := json.NewDecoder(bytes.NewReader(repositoryFile(t, "format/vectors/topics.json")))
	// What this test does not know it must not pass over.
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if file.Format != "1.1" || len(file.Topics) == 0 {
		t.Fatalf("format %q with %d topics", file.Format, len(file.Topics))
	}
	for _, image := range file.Topics {
		for i, r := range image.Readers {
			t.Run(fmt.Sprintf("%s/%d-%s", image.Name, i, r.As), func(t *testing.T) {
				t.Parallel()
				v := vector{Size: image.Size, Bytes: image.Bytes}
				p := &play{t: t, v: &v, dir: newFolder(t), r: &vectorReader{
					Open: r.Open, End: r.End, Leaves: r.Leaves, NameAfter: r.NameAfter}}
				path := p.make("topic")
				p.hold(r.Held)
				if r.As == "publisher" {
					pub, err := OpenPublisher(path, TopicOptions{})
					if p.opened(err) {
						p.topicEnd(pub.TrySend(1, nil), "sent")
						p.closed(pub.Close())
					}
				} else {
					p.subscriber(path, &r)
				}
				p.nameAfter(path)
			})
		}
	}
}

func (p *play) subscriber(path string, r *topicReader) {
	p.t.Helper()
	o := TopicOptions{Label: r.Label, Durable: r.Label != ""}
	switch r.As {
	case "lossy":
		o.Policy, o.Start = Lossy, FromOldest()
	case "latest":
		o.Policy = Latest
	}
	sub, err := OpenSubscriber(path, o)
	// It may read the frames when it comes, or when it receives.
	if KindOf(err) == Corrupt && r.End == "Corrupt" && r.Then == nil || !p.opened(err) {
		return
	}
	p.poke(r.Then)
	if r.Lagged != "" {
		_, err := sub.TryRecv()
		var lagged *Error
		if !errors.As(err, &lagged) || lagged.Kind != Lagged || strconv.FormatUint(lagged.Lost, 10) != r.Lagged {
			p.t.Fatalf("%v, expected Lagged by %s", err, r.Lagged)
		}
	}
	for i, want := range r.Messages {
		m, err := sub.TryRecv()
		if err != nil {
			p.t.Fatalf("message %d: %v", i, err)
		}
		found := []any{m.TypeID(), strconv.FormatUint(m.Tag(), 10), m.Seq(), m.Lost(), m.Len(), crc32.ChecksumIEEE(m.Clone())}
		wanted := []any{want.TypeID, want.Tag, want.Seq, want.Lost, want.Len, want.CRC32}
		if fmt.Sprint(found) != fmt.Sprint(wanted) {
			p.t.Fatalf("message %d: %v, expected %v", i, found, wanted)
		}
		m.Release()
	}
	receive := sub.TryRecv
	if r.End == "PeerDead" {
		// A death is learned of by a wait.
		receive = func() (Message, error) { return sub.Recv(context.Background()) }
	}
	_, err = receive()
	p.topicEnd(err, "")
	if r.End == "Corrupt" {
		if _, err := sub.TryRecv(); KindOf(err) != Corrupt {
			p.t.Fatalf("it does not stay dead: %v", err)
		}
	}
	p.closed(sub.Close())
}

// hold locks these bytes as others do that live: by another description, to the end of the test.
func (p *play) hold(held []int64) {
	p.t.Helper()
	if len(held) == 0 {
		return
	}
	for _, at := range append([]int64{byteInUse}, held...) {
		mode := sys.Exclusive
		if at == byteInUse {
			mode = sys.Shared
		}
		if got, err := sys.TryLock(int(p.file.Fd()), at, mode); !got || err != nil {
			p.t.Fatal(got, err)
		}
	}
}

// topicEnd compares what the last call gave; without an error it is this.
func (p *play) topicEnd(err error, without string) {
	p.t.Helper()
	if err != nil {
		without = KindOf(err).String()
	}
	if without != p.r.End {
		p.t.Fatalf("it ends with %v (%s), expected %s", err, without, p.r.End)
	}
}
