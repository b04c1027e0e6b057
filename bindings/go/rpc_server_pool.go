package ramway

import "sync"

// handlerPool bounds how many handlers run at a time. Each runs in a goroutine; the others wait, those of each client in their order and the clients
// in turn. While several clients wait, none of them gets more than half of the places, rounded up.
type handlerPool struct {
	mu      sync.Mutex
	limit   int
	running int
	// waiting are the clients that have something that waits. next is whose turn it is.
	waiting []*poolClient
	next    int
}

// poolClient is one client's share. All with the pool's mu.
type poolClient struct {
	running int
	// queue is what waits.
	queue linkedList[poolTask]
}

// poolTask is something that needs a place: a handler that is to begin, or one that goes on.
type poolTask struct {
	client *poolClient
	work   poolWork
	// waits: it is in the client's queue, and there is its place in it.
	waits  bool
	queued linkedNode[poolTask]
}

// poolWork is what a task is for. placed is called once the task has a place, by any goroutine, and must not block.
type poolWork interface{ placed() }

func (p *handlerPool) half() int { return (p.limit + 1) / 2 }

// submit runs a task as soon as it has a place. false: it waits for one.
func (p *handlerPool) submit(t *poolTask) bool {
	p.mu.Lock()
	c := t.client
	// Others wait although there is a place: only because they have their half.
	alone := len(p.waiting) == 0 || len(p.waiting) == 1 && p.waiting[0] == c
	if p.running < p.limit && c.queue.first == nil && (alone || c.running < p.half()) {
		p.running++
		c.running++
		p.mu.Unlock()
		t.work.placed()
		return true
	}
	if c.queue.first == nil {
		p.waiting = append(p.waiting, c)
	}
	t.waits, t.queued.of = true, t
	c.queue.add(&t.queued)
	p.mu.Unlock()
	return false
}

// withdraw takes a task back; false: it has its place already.
func (p *handlerPool) withdraw(t *poolTask) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !t.waits {
		return false
	}
	p.unqueue(t)
	return true
}

// unqueue is with mu.
func (p *handlerPool) unqueue(t *poolTask) {
	c := t.client
	c.queue.remove(&t.queued)
	t.waits = false
	if c.queue.first == nil {
		for i, other := range p.waiting {
			if other == c {
				p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
				if i < p.next {
					p.next--
				}
				break
			}
		}
	}
}

// leave gives a place of a client's back, and runs what waits for one.
func (p *handlerPool) leave(c *poolClient) {
	p.mu.Lock()
	p.running--
	c.running--
	t := p.pick()
	p.mu.Unlock()
	if t != nil {
		t.work.placed()
	}
}

// pick gives a place to the next task that may have one; nil if there is none. With mu.
func (p *handlerPool) pick() *poolTask {
	n := len(p.waiting)
	if n == 0 || p.running >= p.limit {
		return nil
	}
	for i := range n {
		at := (p.next + i) % n
		c := p.waiting[at]
		if n > 1 && c.running >= p.half() {
			continue
		}
		p.next = at + 1
		t := c.queue.front()
		p.unqueue(t)
		p.running++
		c.running++
		return t
	}
	return nil
}

// enter waits for a place, for a handler that goes on.
func (p *handlerPool) enter(c *poolClient) {
	place := make(poolPlace, 1)
	p.submit(&poolTask{client: c, work: place})
	<-place
}

// poolPlace is the place that a goroutine waits for.
type poolPlace chan struct{}

func (p poolPlace) placed() { p <- struct{}{} }
