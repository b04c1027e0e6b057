package ramway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"testing"
)

// Every image of a topic of format/vectors, opened by its path as each of its readers.

type topicReader struct {
	As       string `json:"as"`
	Label    string `json:"label"`
	Open     string `json:"open"`
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
	if KindOf(err) == Corrupt && r.End == "Corrupt" || !p.opened(err) {
		return
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
	_, err = sub.TryRecv()
	p.topicEnd(err, "")
	if r.End == "Corrupt" {
		if _, err := sub.TryRecv(); KindOf(err) != Corrupt {
			p.t.Fatalf("it does not stay dead: %v", err)
		}
	}
	p.closed(sub.Close())
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
