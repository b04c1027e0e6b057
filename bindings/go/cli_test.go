package ramway

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The Rust side's `ramway` command reads what Go makes, keeps its hands off what Go uses, and cleans up after it; and Go
// does the same with what Rust makes. RAMWAY_CLI says where the command is.

func ramwayCommand(t *testing.T, dir *folder, args ...string) *exec.Cmd {
	t.Helper()
	command := os.Getenv("RAMWAY_CLI")
	if command == "" {
		t.Skip("RAMWAY_CLI does not say where the ramway command is")
	}
	cmd := exec.Command(command, args...)
	cmd.Env = append(os.Environ(), "RAMWAY_DIR="+dir.path)
	cmd.Stderr = os.Stderr
	return cmd
}

// ask runs the command and decodes its JSON.
func ask(t *testing.T, into any, dir *folder, args ...string) {
	t.Helper()
	out, err := ramwayCommand(t, dir, args...).Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
}

type listed struct {
	Name, Kind, State string
	Persistent        bool
}

func list(t *testing.T, dir *folder) (all []listed) {
	t.Helper()
	var found struct{ Segments []listed }
	ask(t, &found, dir, "ls", "--json")
	slices.SortFunc(found.Segments, func(a, b listed) int { return strings.Compare(a.Name, b.Name) })
	return found.Segments
}

func TestTheCommandReadsAndCleansWhatGoMade(t *testing.T) {
	dir := newFolder(t)
	tx, err := CreateSender(dir.at("busy"), Options{Capacity: 4096, Align: 64})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.TrySendTagged(7, 42, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	region, err := CreateRegion(dir.at("region"), 5000, Options{Persistent: true})
	if err != nil {
		t.Fatal(err)
	}
	bell, err := Bind(dir.at("bell"), ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dead := startPeer(t, "holder", dir.at("dead"), "consumer")
	dead.expect("ready")
	dead.kill()
	want := []listed{{"bell.lock", "listener", "live", false}, {"busy", "ring", "live", false}, {"dead", "ring", "stale", false},
		{"region", "region", "live", true}}
	if got := list(t, dir); !slices.Equal(got, want) {
		t.Fatalf("%+v, expected %+v", got, want)
	}
	var seen map[string]any
	ask(t, &seen, dir, "inspect", "--json", dir.at("busy"))
	text, _ := json.Marshal(seen)
	for _, part := range []string{`"capacity":4096`, `"align":64`, `"undelivered_messages":1`, `"last_tag":42`, `"tail":112`, `"role":"sender"`} {
		if !strings.Contains(string(text), part) {
			t.Fatalf("%s does not say %s", text, part)
		}
	}

	if err := ramwayCommand(t, dir, "clean", "--undelivered").Run(); err != nil {
		t.Fatal(err)
	}
	dir.expectNames("bell", "bell.lock", "busy", "region")
	if err := bell.Close(); err != nil {
		t.Fatal(err)
	}
	if err := region.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tx.Close(); err != nil {
		t.Fatal(err)
	}
	dir.expectNames("busy", "region")
	// Undelivered and persistent stay until it is told to take them.
	if err := ramwayCommand(t, dir, "clean").Run(); err != nil {
		t.Fatal(err)
	}
	dir.expectNames("busy", "region")
	if err := ramwayCommand(t, dir, "clean", "--undelivered").Run(); err != nil {
		t.Fatal(err)
	}
	dir.expectNames()
}

func TestGoOpensWhatTheCommandMade(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	send := ramwayCommand(t, dir, "send", "--lines", "--type-id", "9", "--capacity", "64K", "ring")
	send.Stdin = strings.NewReader("one\ntwo\n")
	if err := send.Run(); err != nil {
		t.Fatal(err)
	}
	err := refused(t, name, howCreate, Options{}, consumer)
	expectKind(t, err, AlreadyExists)
	expectText(t, err, "2 undelivered messages (8 bytes)")
	rx, err := OpenReceiver(name, Options{Capacity: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	var got []string
	for m := range rx.All(ctx) {
		got = append(got, string(m.Clone()))
		if m.TypeID() != 9 {
			t.Fatal(m.TypeID())
		}
	}
	if rx.Err() != nil || !slices.Equal(got, []string{"one\n", "two\n"}) {
		t.Fatal(got, rx.Err())
	}
	if err := rx.Close(); err != nil {
		t.Fatal(err)
	}
	dir.expectNames()

	// And the other way round.
	tx, err := CreateSender(name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Send(ctx, 1, []byte("from Go")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := ramwayCommand(t, dir, "recv", "ring").Output(); err != nil || string(out) != "from Go" {
		t.Fatal(string(out), err)
	}
	dir.expectNames()
}

func TestAKilledCommandLeavesItsRole(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	recv := ramwayCommand(t, dir, "recv", "ring")
	if err := recv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = recv.Process.Kill(), recv.Wait() })
	tx := hold(t, name, howOpen, Options{Timeout: long}, producer)
	expectKind(t, refused(t, name, howOpen, Options{}, consumer), Busy)
	expectKind(t, refused(t, name, howCreate, Options{Discard: true}, consumer), AlreadyExists)
	if !tx.link.peerAlive(producer) {
		t.Fatal("it lives")
	}
	if err := recv.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	rx := hold(t, name, howOpen, Options{Timeout: long}, consumer)
	_, _ = rx.release(), tx.release()
	dir.expectNames()
}
