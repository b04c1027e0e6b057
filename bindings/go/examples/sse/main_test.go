package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// long is far more than anything here takes.
const long = 60 * time.Second

// ticksProgram builds the Rust producer and gives its path.
func ticksProgram(t *testing.T) string {
	t.Helper()
	build := exec.Command("cargo", "build", "--quiet", "--message-format=json", "-p", "ramway-examples", "--bin", "ticks")
	build.Dir = filepath.Join("..", "..", "..", "..")
	build.Stderr = os.Stderr
	out, err := build.Output()
	if err != nil {
		t.Fatalf("building the Rust producer: %v", err)
	}
	path := ""
	for _, line := range bytes.Split(out, []byte("\n")) {
		var message struct{ Executable string }
		if json.Unmarshal(line, &message) == nil && message.Executable != "" {
			path = message.Executable
		}
	}
	if path == "" {
		t.Fatal("cargo did not say where the producer is")
	}
	return path
}

// produce starts the producer, which the test's end kills at the latest.
func produce(t *testing.T, program, ring string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, "send", ring, "2", "1000000")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	return cmd
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// client is one that reads.
type client struct {
	t     *testing.T
	lines *bufio.Scanner
}

func connect(t *testing.T, url string) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), long)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatal(response.Status, kind)
	}
	return &client{t, bufio.NewScanner(response.Body)}
}

// next is the fields of the next event.
func (c *client) next() map[string]string {
	c.t.Helper()
	fields := map[string]string{}
	for c.lines.Scan() {
		name, value, found := strings.Cut(c.lines.Text(), ": ")
		if !found {
			return fields
		}
		fields[name] = value
	}
	c.t.Fatalf("the stream ended: %v", c.lines.Err())
	return nil
}

// tick is the number of the next event, which must be a tick.
func (c *client) tick() int {
	c.t.Helper()
	fields := c.next()
	number, err := strconv.Atoi(fields["id"])
	var tick struct{ Ns, Cents, Volume int64 }
	if err != nil || fields["event"] != "tick" || json.Unmarshal([]byte(fields["data"]), &tick) != nil || tick.Volume == 0 {
		c.t.Fatalf("not a tick: %q", fields)
	}
	return number
}

// until reads on to an event of this name.
func (c *client) until(name string) map[string]string {
	c.t.Helper()
	for {
		if fields := c.next(); fields["event"] == name {
			return fields
		}
	}
}

func TestTicksReachManyClientsAndSoDoesTheirEnd(t *testing.T) {
	program := ticksProgram(t)
	dir, err := os.MkdirTemp("/dev/shm", "ramway-go-sse-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ring := filepath.Join(dir, "ticks")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, ring) }()
	url := "http://" + listener.Addr().String() + "/ticks"

	producer := produce(t, program, ring)
	// One that never reads, in front of all others.
	lazy, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer lazy.Close()
	if _, err := io.WriteString(lazy, "GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	clients := make([]*client, 20)
	for i := range clients {
		clients[i] = connect(t, url)
	}
	for _, c := range clients {
		last := c.tick()
		for range 20 {
			number := c.tick()
			if number <= last {
				t.Fatalf("tick %d after %d", number, last)
			}
			last = number
		}
	}
	// One of them goes, which the others do not notice.
	leaving, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(leaving, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = response.Body.Close()

	kill(producer)
	for _, c := range clients {
		if end := c.until("end"); end["data"] != "the producer died" {
			t.Fatalf("%q", end)
		}
	}
	// A successor counts on, and the same clients hear it.
	produce(t, program, ring)
	for _, c := range clients {
		c.until("tick")
	}
	stop()
	select {
	case err := <-served:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(long):
		t.Fatal("the service does not end")
	}
}

func TestASlowClientLosesItsOldestEvents(t *testing.T) {
	h := newHub()
	slow, quick := h.join(), h.join()
	for i := range 1000 {
		h.publish(event(strconv.Itoa(i)))
		if got := <-quick; got != event(strconv.Itoa(i)) {
			t.Fatalf("%s instead of %d", got, i)
		}
	}
	for i := 1000 - queued; i < 1000; i++ {
		if got := <-slow; got != event(strconv.Itoa(i)) {
			t.Fatalf("%s instead of %d", got, i)
		}
	}
	h.leave(slow)
	h.publish("more")
	if h.count() != 1 || len(slow) != 0 || len(quick) != 1 {
		t.Fatal(h.count(), len(slow), len(quick))
	}
}
