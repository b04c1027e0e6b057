package ramway

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"
)

// Every segment image of format/vectors, read by this port in this process. How an image and a reader are written
// down is said in the README beside them.

type (
	hexBytes []byte
	run      struct {
		At   int64    `json:"at"`
		Hex  hexBytes `json:"hex"`
		Mask hexBytes `json:"mask"`
	}
	readMessage struct {
		TypeID uint32 `json:"type_id"`
		Tag    string `json:"tag"`
		Len    int    `json:"len"`
		CRC32  uint32 `json:"crc32"`
	}
	vectorReader struct {
		As       string `json:"as"`
		Open     string `json:"open"`
		Attached *struct {
			Epoch     uint32 `json:"epoch"`
			PeerEpoch uint32 `json:"peer_epoch"`
			Capacity  int64  `json:"capacity"`
			Max       int    `json:"max"`
		} `json:"attached"`
		Region *struct {
			Len   int64  `json:"len"`
			CRC32 uint32 `json:"crc32"`
		} `json:"region"`
		Then *struct {
			When   string `json:"when"`
			Bytes  []run  `json:"bytes"`
			HangUp bool   `json:"hang_up"`
		} `json:"then"`
		Messages  []readMessage `json:"messages"`
		Last      string        `json:"last"`
		Send      int           `json:"send"`
		End       string        `json:"end"`
		Leaves    []run         `json:"leaves"`
		NameAfter string        `json:"name_after"`
		Held      string        `json:"held"`
	}
	vector struct {
		Name    string         `json:"name"`
		About   string         `json:"about"`
		Class   string         `json:"class"`
		Kind    string         `json:"kind"`
		Size    int64          `json:"size"`
		Bytes   []run          `json:"bytes"`
		Readers []vectorReader `json:"readers"`
	}
)

func (b *hexBytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

func readVectors(t testing.TB) []vector {
	t.Helper()
	var file struct {
		Format   string   `json:"format"`
		Segments []vector `json:"segments"`
	}
	decoder := json.NewDecoder(bytes.NewReader(repositoryFile(t, "format/vectors/segments.json")))
	// What this test does not know it must not pass over.
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if file.Format != "1.0" || len(file.Segments) == 0 {
		t.Fatalf("format %q with %d segments", file.Format, len(file.Segments))
	}
	return file.Segments
}

func TestVectors(t *testing.T) {
	for _, v := range readVectors(t) {
		for i, r := range v.Readers {
			t.Run(fmt.Sprintf("%s/%d-%s", v.Name, i, r.As), func(t *testing.T) {
				// They mostly wait.
				t.Parallel()
				p := &play{t: t, v: &v, r: &r, dir: newFolder(t)}
				switch {
				case v.Kind == "bus":
					p.bus()
				case r.As == "region":
					p.region()
				case r.As == "listener":
					p.listener()
				default:
					p.ring()
				}
			})
		}
	}
}
