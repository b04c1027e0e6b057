package ramway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// long is far more than anything here takes, so that a slow machine is no failure and a hang is one.
const long = 60 * time.Second

// Real processes are this test binary again. What one can be is a function by name, which a test file registers in its
// init: helpers["name"] = func(args []string) { ... }.
var helpers = map[string]func(args []string){}

const (
	helperName = "RAMWAY_TEST_HELPER"
	helperArgs = "RAMWAY_TEST_ARGS"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(helperName); name != "" {
		var args []string
		if joined := os.Getenv(helperArgs); joined != "" {
			args = strings.Split(joined, "\n")
		}
		helpers[name](args)
		os.Exit(0)
	}
	os.Exit(inOwnDirectory(m.Run))
}

// inOwnDirectory runs the tests with a RAMWAY_DIR of their own, which the examples use by name.
func inOwnDirectory(run func() int) int {
	where := "/dev/shm"
	if _, err := os.Stat(where); err != nil {
		where = "" // not Linux
	}
	dir, err := os.MkdirTemp(where, "ramway-go-test-")
	must(err)
	defer os.RemoveAll(dir)
	must(os.Setenv("RAMWAY_DIR", dir))
	return run()
}

var parent = bufio.NewReader(os.Stdin)

// say, in a helper, tells the parent something.
func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// told, in a helper, is the parent's next word; "" when it is gone or has nothing more to say.
func told() string {
	line, _ := parent.ReadString('\n')
	return strings.TrimSpace(line)
}

// must, in a helper, ends the process on an error.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(1)
	}
}

// peer is another process.
type peer struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
	ended bool
}

// again is the command that runs this test program again. RAMWAY_TEST_RUNNER holds the words that stand before it, an
// emulator's for example, separated by spaces.
func again(t testing.TB) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words := append(strings.Fields(os.Getenv("RAMWAY_TEST_RUNNER")), exe)
	return exec.Command(words[0], words[1:]...)
}

// startPeer runs a helper; it is killed if the test ends before it does.
func startPeer(t testing.TB, helper string, args ...string) *peer {
	t.Helper()
	return startPeerWith(t, func(*exec.Cmd) {}, helper, args...)
}

// startPeerWith lets the command be changed before it runs.
func startPeerWith(t testing.TB, change func(*exec.Cmd), helper string, args ...string) *peer {
	t.Helper()
	cmd := again(t)
	cmd.Env = append(os.Environ(), helperName+"="+helper, helperArgs+"="+strings.Join(args, "\n"))
	cmd.Stderr = os.Stderr
	change(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, cmd: cmd, stdin: stdin, out: bufio.NewReader(stdout)}
	t.Cleanup(p.kill)
	return p
}

// hear is the next thing that it says. The test fails if it ends first.
func (p *peer) hear() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the other process ended without a word: %v", p.cmd.Wait())
	}
	return strings.TrimSpace(line)
}

func (p *peer) expect(said string) {
	p.t.Helper()
	if heard := p.hear(); heard != said {
		p.t.Fatalf("the other process said %q, expected %q", heard, said)
	}
}

func (p *peer) tell(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) pid() int { return p.cmd.Process.Pid }

// kill ends it by SIGKILL, and returns when it is gone.
func (p *peer) kill() {
	if !p.ended {
		p.ended = true
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// finish lets it run to its own end: its input ends, and it must exit with 0.
func (p *peer) finish() {
	p.t.Helper()
	p.ended = true
	_ = p.stdin.Close()
	_, _ = io.Copy(io.Discard, p.out)
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("the other process: %v", err)
	}
}

// folder is a directory in memory that goes when the test does.
type folder struct {
	t    testing.TB
	path string
}

func newFolder(t testing.TB) *folder {
	t.Helper()
	where := "/dev/shm"
	if _, err := os.Stat(where); err != nil {
		where = "" // not Linux
	}
	path, err := os.MkdirTemp(where, "ramway-go-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return &folder{t, path}
}

// at is a path in it: with a /, so it means the same in every process whatever RAMWAY_DIR is.
func (f *folder) at(name string) string { return filepath.Join(f.path, name) }

// names is what is in it, sorted.
func (f *folder) names() []string {
	f.t.Helper()
	entries, err := os.ReadDir(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func (f *folder) expectNames(names ...string) {
	f.t.Helper()
	if found := f.names(); !slices.Equal(found, names) {
		f.t.Fatalf("the directory holds %q, expected %q", found, names)
	}
}

// expectKind fails unless err is of this kind; 0 is no error.
func expectKind(t testing.TB, err error, kind Kind) {
	t.Helper()
	if KindOf(err) != kind || (kind == 0) != (err == nil) {
		t.Fatalf("%v: %v, expected %v", KindOf(err), err, kind)
	}
}

// expectText fails unless the error's text holds all of these.
func expectText(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Fatalf("%v, expected it to say %q", err, part)
		}
	}
}

// eventually waits until it is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(long); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", long, what)
		}
	}
}

// repositoryFile is a file of the repository that this module is developed in. The published module has only itself: then
// there is nothing to compare with.
func repositoryFile(t testing.TB, path string) []byte {
	t.Helper()
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "bindings", "go", "go.mod")); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is part of Ramway's repository, not of the published module", path)
	}
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
