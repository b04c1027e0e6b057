package ramway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

// Both ends of a ring, in two processes in real life. Either may start first.
func Example() {
	tx, err := ramway.OpenOrCreateSender("example", ramway.Options{})
	if err != nil {
		panic(err)
	}
	rx, err := ramway.OpenOrCreateReceiver("example", ramway.Options{})
	if err != nil {
		panic(err)
	}
	defer rx.Close()

	ctx := context.Background()
	_ = tx.Send(ctx, 1, []byte("copied in"))
	slot, err := tx.Reserve(ctx, 8)
	if err != nil {
		panic(err)
	}
	n := copy(slot.Bytes(), "written")
	_ = slot.Commit(2, 7, n)
	_ = tx.Close()

	for m := range rx.All(ctx) {
		m.View(func(b []byte) { fmt.Printf("type %d, tag %d: %s\n", m.TypeID(), m.Tag(), b) })
	}
	fmt.Println("ended by:", rx.Err())
	// Output:
	// type 1, tag 0: copied in
	// type 2, tag 7: written
	// ended by: <nil>
}

// A service that answers every message, with a goroutine for each connection.
func ExampleListen() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	l, err := ramway.Bind("shout", ramway.ListenOptions{Capacity: 1 << 16})
	if err != nil {
		panic(err)
	}
	var clients sync.WaitGroup
	clients.Add(1)
	go func() {
		defer clients.Done()
		for {
			bus, err := l.Accept(ctx)
			if errors.Is(err, ramway.ErrDetached) {
				return // closed
			}
			if err != nil {
				panic(err)
			}
			clients.Add(1)
			go func() {
				defer clients.Done()
				defer bus.Close()
				for m := range bus.All(ctx) {
					_ = bus.Send(ctx, m.TypeID(), []byte(strings.ToUpper(string(m.Clone()))))
				}
			}()
		}
	}()

	// Another process:
	bus, err := ramway.Connect(ctx, "shout", ramway.ConnectOptions{})
	if err != nil {
		panic(err)
	}
	_ = bus.Send(ctx, 1, []byte("anyone there?"))
	answer, err := bus.Recv(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", answer.Clone())
	answer.Release()
	_ = bus.Close()

	_ = l.Close()
	clients.Wait()
	// Output: ANYONE THERE?
}

func ExampleRegion() {
	writer, err := ramway.CreateRegion("config", 100, ramway.Options{})
	if err != nil {
		panic(err)
	}
	defer writer.Close()
	reader, err := ramway.OpenRegion("config", ramway.Options{}) // in another process, say
	if err != nil {
		panic(err)
	}
	defer reader.Close()

	_, _ = writer.WriteAt([]byte("hello"), 10)
	_ = writer.Notify()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := reader.Wait(ctx); err != nil {
		panic(err)
	}
	b := make([]byte, 5)
	_, _ = reader.ReadAt(b, 10)
	fmt.Printf("%s\n", b)
	// Output: hello
}

// Between two goroutines, as streams of bytes.
func ExampleReceiver_Reader() {
	tx, rx, err := ramway.Pair(ramway.Options{Capacity: 1 << 16})
	if err != nil {
		panic(err)
	}
	defer rx.Close()
	ctx := context.Background()
	go func() {
		w := tx.Writer(ctx, 0)
		_, _ = io.WriteString(w, "one li")
		_, _ = w.ReadFrom(strings.NewReader("ne\nand another\n"))
		_ = tx.Close()
	}()
	lines := bufio.NewScanner(rx.Reader(ctx))
	for lines.Scan() {
		fmt.Println(lines.Text())
	}
	fmt.Println(lines.Err())
	// Output:
	// one line
	// and another
	// <nil>
}

func ExampleKind() {
	_, err := ramway.OpenReceiver("nobody-made-this", ramway.Options{})
	switch {
	case errors.Is(err, ramway.ErrNotFound):
		fmt.Println("start the other side first, or use OpenOrCreateReceiver")
	case err != nil:
		fmt.Println(ramway.KindOf(err).String(), err)
	}
	// Output: start the other side first, or use OpenOrCreateReceiver
}

// A server and a client, in two processes in real life.
func ExampleClient() {
	server, err := ramway.BindServer("example-rpc", ramway.ServeOptions{})
	if err != nil {
		panic(err)
	}
	err = server.Handle(7, func(_ context.Context, r *ramway.Request) ([]byte, error) {
		if len(r.Body) == 0 {
			return nil, ramway.Fail(400, "nothing to say")
		}
		return append([]byte("you said "), r.Body...), nil
	})
	if err != nil {
		panic(err)
	}
	var serving sync.WaitGroup
	serving.Add(1)
	go func() {
		defer serving.Done()
		_ = server.Serve(context.Background())
	}()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := ramway.ConnectClient(ctx, "example-rpc", ramway.ClientOptions{})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	reply, err := client.Call(ctx, 7, []byte("hello"))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", reply.Body)
	_, err = client.Call(ctx, 7, nil)
	var failed *ramway.CallError
	fmt.Println(errors.As(err, &failed), failed.Code, failed.Text)
	_ = server.Shutdown(ctx)
	serving.Wait()
	// Output:
	// you said hello
	// true 400 nothing to say
}
