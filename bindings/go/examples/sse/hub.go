package main

import (
	"io"
	"net/http"
	"sync"
)

// event is the text of a server-sent event.
type event string

// queued is how many events a client may be behind before it loses some.
const queued = 64

// hub hands events to any number of clients, none of which it waits for.
type hub struct {
	mu      sync.Mutex
	clients map[chan event]struct{}
}

func newHub() *hub { return &hub{clients: make(map[chan event]struct{})} }

// publish gives an event to every client; one whose queue is full loses its oldest.
func (h *hub) publish(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for queue := range h.clients {
		for {
			select {
			case queue <- e:
			default:
				// Only this goroutine fills the queue, so there is room after one was taken.
				select {
				case <-queue:
				default:
				}
				continue
			}
			break
		}
	}
}

func (h *hub) join() chan event {
	queue := make(chan event, queued)
	h.mu.Lock()
	h.clients[queue] = struct{}{}
	h.mu.Unlock()
	return queue
}

func (h *hub) leave(queue chan event) {
	h.mu.Lock()
	delete(h.clients, queue)
	h.mu.Unlock()
}

// count is how many clients there are.
func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}

// ServeHTTP streams events to one client, until it goes or the service ends.
func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	queue := h.join()
	defer h.leave(queue)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	stream := http.NewResponseController(w)
	if err := stream.Flush(); err != nil {
		return
	}
	for {
		select {
		case e := <-queue:
			if _, err := io.WriteString(w, string(e)); err != nil {
				return
			}
			// What has queued up goes out in one piece.
			if len(queue) > 0 {
				continue
			}
			if err := stream.Flush(); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
