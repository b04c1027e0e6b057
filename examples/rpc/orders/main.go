// Command orders takes the orders of a shop: the server of its clients, and itself a client of the stock. It is one of three programs in
// three languages, which the guide (docs/guides/rpc.md) starts in three terminals.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	ramway "github.com/ramway/ramway/bindings/go"
)

// drain is how long calls that run may go on when the server ends.
const drain = 5 * time.Second

// cents is what a piece costs.
var cents = map[string]int{"apple": 50, "pear": 60, "plum": 20}

type order struct {
	Item  string `json:"item"`
	Count int    `json:"count"`
}

type placed struct {
	Order int64 `json:"order"`
	Cents int   `json:"cents"`
	Left  int   `json:"left"`
}

// stock is the other service.
type stock struct {
	mu     sync.Mutex
	client *ramway.Client
}

// connected gives a client for the server that is there now.
func (s *stock) connected(ctx context.Context) (*ramway.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil && s.client.PeerAlive() {
		return s.client, nil
	}
	if s.client != nil {
		_ = s.client.Close()
	}
	var err error
	s.client, err = ramway.ConnectClient(ctx, "stock", ramway.ClientOptions{Timeout: 10 * time.Second})
	return s.client, err
}

// take says how many are left. The context's deadline is the caller's, and goes on to the stock.
func (s *stock) take(ctx context.Context, body []byte) (left int, err error) {
	for {
		client, err := s.connected(ctx)
		if err != nil {
			return 0, ramway.Fail(503, "the stock cannot be reached: "+err.Error())
		}
		reply, err := client.Call(ctx, ramway.MethodID("Stock.Take"), body)
		var failed *ramway.CallError
		switch {
		case err == nil:
			var taken struct{ Left int }
			err = json.Unmarshal(reply.Body, &taken)
			return taken.Left, err
		case !errors.As(err, &failed):
			return 0, err
		case failed.Status == ramway.StatusApplication:
			return 0, ramway.Fail(failed.Code, failed.Text)
		case errors.Is(err, ramway.ErrPeerDead):
			// The stock may have been taken from: whoever has ordered decides what to do about that.
			return 0, ramway.Fail(503, "the stock has died, perhaps after it was taken from")
		case failed.MayHaveRun() || ctx.Err() != nil:
			return 0, err
		}
		// It was not run: again, by the next server.
	}
}

func serve(ctx context.Context) error {
	server, err := ramway.BindServer("orders", ramway.ServeOptions{})
	if err != nil {
		return err
	}
	var stock stock
	var number atomic.Int64
	place := func(ctx context.Context, r *ramway.Request) ([]byte, error) {
		var wanted order
		if err := json.Unmarshal(r.Body, &wanted); err != nil {
			return nil, ramway.Fail(400, err.Error())
		}
		left, err := stock.take(ctx, r.Body)
		if err != nil {
			return nil, err
		}
		return json.Marshal(placed{Order: number.Add(1), Cents: wanted.Count * cents[wanted.Item], Left: left})
	}
	if err := server.HandleNamed("Orders.Place", place); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(context.Background()) }()
	fmt.Println("serving at", server.Path())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		log.Print(err) // some calls took longer, and were cancelled
	}
	err = <-ended
	fmt.Println("closed")
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx); err != nil {
		log.Fatal(err)
	}
}
