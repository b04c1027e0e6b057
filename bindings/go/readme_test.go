package ramway

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// block is the first block of a language in a text, after a mark.
func block(t *testing.T, text, after, language string) string {
	t.Helper()
	_, text, found := strings.Cut(text, after)
	_, text, begins := strings.Cut(text, "```"+language+"\n")
	text, _, ends := strings.Cut(text, "```\n")
	if !found || !begins || !ends {
		t.Fatalf("README.md has no block of %s after %q", language, after)
	}
	return text
}

// clone runs the lines of a README for a clone, and what belongs to them, in a module with this program.
func clone(t *testing.T, rings *folder, program, before, lines, after string) string {
	t.Helper()
	goCommand := os.Getenv("GO")
	if goCommand == "" {
		goCommand = "go"
	}
	goCommand, err := exec.LookPath(goCommand)
	must(err)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	must(err)
	if strings.Count(lines, "/path/to/ramway") != 1 {
		t.Fatal(lines)
	}
	lines = strings.ReplaceAll(lines, "/path/to/ramway", root)
	module := t.TempDir()
	must(os.WriteFile(filepath.Join(module, "main.go"), []byte(program), 0o600))
	// What it runs for another processor, it starts by the runner of these tests.
	const as = `go() {
	if [ "$1" = run ] && [ -n "${RAMWAY_TEST_RUNNER:-}" ]; then shift; set -- run -exec "$RAMWAY_TEST_RUNNER" "$@"; fi
	"$GO" "$@"
}`
	script := exec.Command("sh", "-ec", strings.Join([]string{as, before, lines, after}, "\n"))
	script.Dir = module
	// What the module needs is there, because this test was built of it.
	script.Env = append(os.Environ(), "GO="+goCommand, "RAMWAY_DIR="+rings.path, "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=-mod=mod",
		"GOWORK=off", helperName+"=")
	said, err := script.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return string(said)
}

// TestReadmesProgram does what the README says: a module of its own, the lines for a clone, and the program in both roles.
func TestReadmesProgram(t *testing.T) {
	text := string(repositoryFile(t, "bindings/go/README.md"))
	rings := newFolder(t)
	output := clone(t, rings, block(t, text, "## Install", "go"), "", block(t, text, "## Install", "sh"), "wait $!")
	if !strings.HasSuffix(output, "message 0\nmessage 1\nmessage 2\n") {
		t.Fatal(output)
	}
	rings.expectNames()
}

// TestReceivingProgram: the README's program that receives what another language sent, in a module made by the same lines.
func TestReceivingProgram(t *testing.T) {
	text := string(repositoryFile(t, "bindings/go/README.md"))
	rings := newFolder(t)
	tx, err := CreateSender(rings.at("hello"), Options{})
	expectKind(t, err, 0)
	expectKind(t, tx.Send(background, 5, []byte("sent")), 0)
	expectKind(t, tx.Close(), 0)
	lines, _, found := strings.Cut(block(t, text, "## Install", "sh"), "go run ")
	if !found {
		t.Fatal(lines)
	}
	output := clone(t, rings, block(t, text, "## Receive from another language", "go"), "", lines, "go run .")
	if !strings.HasSuffix(output, "sent (type 5)\n") {
		t.Fatal(output)
	}
	rings.expectNames()
}

// TestTopicsProgram: the README's program of a topic, in a module made by the same lines.
func TestTopicsProgram(t *testing.T) {
	text := string(repositoryFile(t, "bindings/go/README.md"))
	topics := newFolder(t)
	lines, _, found := strings.Cut(block(t, text, "## Install", "sh"), "go run ")
	if !found {
		t.Fatal(lines)
	}
	output := clone(t, topics, block(t, text, "## A topic", "go"), "", lines, "go run .")
	wanted := ""
	for _, policy := range []Policy{Reliable, Lossy} {
		for i := range 3 {
			wanted += fmt.Sprintf("%v: %d pose %d, 0 lost before it\n", policy, i+1, i)
		}
	}
	if !strings.HasSuffix(output, wanted+"latest: 3 pose 2, 2 lost before it\n") {
		t.Fatal(output)
	}
	topics.expectNames()
}

// TestProgramsOfMany: the README's programs of Select and Merge, of an inbox, of an outbox, and of calls.
func TestProgramsOfMany(t *testing.T) {
	text := string(repositoryFile(t, "bindings/go/README.md"))
	lines, _, found := strings.Cut(block(t, text, "## Install", "sh"), "go run ")
	if !found {
		t.Fatal(lines)
	}
	for after, check := range map[string]func(lines []string) bool{
		"## Many sources, one goroutine": func(lines []string) bool {
			rest := slices.Sorted(slices.Values(lines[1:]))
			return lines[0] == "selected picture 0" &&
				slices.Equal(rest, []string{"0: picture 1", "0: picture 2", "1: command 1", "1: command 2"})
		},
		"## Many producers, one consumer": func(lines []string) bool {
			return slices.Equal(slices.Sorted(slices.Values(lines)),
				[]string{"producer 1: a reading", "producer 1: closed", "producer 2: a reading", "producer 2: closed"})
		},
		"## Many workers": func(lines []string) bool { return slices.Equal(lines, []string{"100 done"}) },
		"## Calls": func(lines []string) bool {
			return slices.Equal(lines, []string{"green", "error 404: no such key", "one", "after", "the", "other"})
		},
	} {
		dir := newFolder(t)
		output := clone(t, dir, block(t, text, after, "go"), "", lines, "echo begins; go run .")
		_, said, _ := strings.Cut(output, "begins\n")
		if !check(strings.Split(strings.TrimSpace(said), "\n")) {
			t.Fatalf("%s: %q", after, output)
		}
		dir.expectNames()
	}
}

// TestAFunctionThatFailsAbandons: the README's pattern, for an error and for a panic.
func TestAFunctionThatFailsAbandons(t *testing.T) {
	ring := newFolder(t).at("ring")
	rx, err := CreateReceiver(ring, Options{Capacity: 4096})
	expectKind(t, err, 0)
	for what, fails := range map[string]func(){"an error": func() {}, "a panic": func() { panic("in the middle") }} {
		func() {
			defer func() { _ = recover() }()
			tx, err := OpenSender(ring, Options{})
			expectKind(t, err, 0)
			whole := false
			defer func() {
				if whole {
					_ = tx.Close()
				} else {
					_ = tx.Abandon()
				}
			}()
			expectKind(t, tx.Send(background, 1, []byte(what)), 0)
			if fails(); what == "" {
				whole = true
			}
		}()
		m, err := rx.Recv(background)
		expectKind(t, err, 0)
		if string(m.Clone()) != what {
			t.Fatal(string(m.Clone()))
		}
		m.Release()
		expectKind(t, receiveOnce(rx)(background), PeerDead)
	}
	expectKind(t, rx.Close(), 0)
}
