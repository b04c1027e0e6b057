// Command sse streams the ticks of a producer in another process to browsers, as server-sent events.
//
//	cargo run -p ramway-examples --bin ticks -- send ticks 100 10000 &
//	go run . -ring ticks -listen 127.0.0.1:8080 &
//	curl -N http://127.0.0.1:8080/ticks
//
// One goroutine receives; every client has a short queue of its own, so that a slow one loses ticks and holds up
// nobody. When the producer closes or dies, clients get `event: end` at once, and ticks again when a successor comes.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

func main() {
	ring := flag.String("ring", "ticks", "the ring that the producer sends to")
	listen := flag.String("listen", "127.0.0.1:8080", "the address to serve at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("http://%s/ticks", listener.Addr())
	if err := serve(ctx, listener, *ring); err != nil {
		log.Fatal(err)
	}
}

// serve receives from the ring and serves clients until ctx is done.
func serve(ctx context.Context, listener net.Listener, ring string) error {
	rx, err := ramway.OpenOrCreateReceiver(ring, ramway.Options{Capacity: 1 << 16, Timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer rx.Close()
	clients := newHub()
	mux := http.NewServeMux()
	mux.Handle("GET /ticks", clients)
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		// Requests end with the service: Shutdown would wait for them.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	receiveErr := receive(ctx, rx, clients)
	shutdown, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	closeErr := server.Shutdown(shutdown)
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(receiveErr, closeErr, err)
	}
	return errors.Join(receiveErr, closeErr)
}

// receive hands every tick to the clients, across the ends of producers, until ctx is done.
func receive(ctx context.Context, rx *ramway.Receiver, clients *hub) error {
	for {
		epoch := rx.PeerEpoch()
		for m := range rx.All(ctx) {
			clients.publish(tickEvent(m))
		}
		err := rx.Err()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			clients.publish(event("event: end\ndata: the producer closed\n\n"))
		case errors.Is(err, ramway.ErrPeerDead):
			clients.publish(event("event: end\ndata: the producer died\n\n"))
		default:
			return err
		}
		// On a named ring an end lasts until a successor attaches, which changes the epoch.
		for rx.PeerEpoch() == epoch {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// tickEvent is a tick as an event, made from where it lies.
func tickEvent(m ramway.Message) event {
	var e event
	m.View(func(b []byte) {
		if len(b) < 24 {
			e = "event: unknown\ndata: \n\n"
			return
		}
		le := binary.LittleEndian
		price := int64(le.Uint64(b[8:]))
		e = event(fmt.Sprintf("id: %d\nevent: tick\ndata: {\"ns\":%d,\"cents\":%d,\"volume\":%d}\n\n",
			m.Tag(), le.Uint64(b), price, le.Uint64(b[16:])))
	})
	return e
}
