package ramway

import (
	"context"
	"sync"
)

// How the goroutines of a client wait: a leader and its followers. One of them, the pump, receives for all; the others sleep on
// channels of their own. The pump leaves when it has what it waited for, and wakes one follower, which takes its place. Looking whether
// there is a pump and registering as a follower is one step under the lock, so nobody sleeps while nobody receives:
//
//	while there is a follower, there is a pump, or a follower was woken and has not looked yet
//
// Whoever leaves keeps that true: it wakes a follower if there is no pump, also where it was woken itself and does not need it.

// callGoal is what a goroutine waits for.
type callGoal uint8

const (
	// goalDecided: the call has ended.
	goalDecided callGoal = iota
	// goalElement: it holds an element, or has ended.
	goalElement
)

// reached says whether the wait is over.
func (k *clientCall) reached(goal callGoal) bool {
	return k.decided || goal == goalElement && len(k.replies) != 0
}

// callWaiter is a goroutine that follows.
type callWaiter struct {
	// wake has room for one, so that waking never waits.
	wake chan struct{}
	// following is its place among the followers.
	following linkedNode[callWaiter]
}

var waitersPool = sync.Pool{New: func() any {
	w := &callWaiter{wake: make(chan struct{}, 1)}
	w.following.of = w
	return w
}}

func (w *callWaiter) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// tell wakes who waits for a call, of which something is new. With mu.
func (c *Client) tell(k *clientCall) {
	if k.outcome != nil {
		k.outcome.name = c.name
	}
	if k.decided && k.unwatch != nil {
		k.unwatch()
		k.unwatch = nil
	}
	switch {
	case k.waiter != nil:
		k.waiter.wakeUp()
	case k == c.pumping:
		// Its goroutine sleeps for all: somebody else has decided it.
		c.line.interrupt()
	}
}

// wait waits until a call has reached a goal; the error is the context's, with which the call goes on. With mu, which is given up
// meanwhile.
func (c *Client) wait(ctx context.Context, k *clientCall, goal callGoal) error {
	if k.reached(goal) {
		return nil
	}
	done := ctx.Done()
	defer c.passOn()
	for !k.reached(goal) {
		select {
		case <-done:
			return contextError(ctx)
		default:
		}
		if c.pumping == nil {
			c.pumping = k
			c.pump(ctx, done, k, goal)
			c.pumping = nil
			continue
		}
		c.follow(done, k)
	}
	return nil
}

// passOn has a follower receive if nobody does. With mu.
func (c *Client) passOn() {
	if w := c.followers.front(); w != nil && c.pumping == nil {
		w.wakeUp()
	}
}

// follow sleeps until something happens to the call, or there is no pump. With mu, which is given up meanwhile.
func (c *Client) follow(done <-chan struct{}, k *clientCall) {
	w := waitersPool.Get().(*callWaiter)
	k.waiter = w
	c.followers.add(&w.following)
	c.mu.Unlock()
	select {
	case <-w.wake:
	case <-done:
	}
	c.mu.Lock()
	c.followers.remove(&w.following)
	k.waiter = nil
	// Nobody knows it any more: what it was woken for, its owner now looks at.
	select {
	case <-w.wake:
	default:
	}
	waitersPool.Put(w)
}

// pump receives, and sends what waits for room, until the call has reached its goal, the context has ended or the connection has. With mu,
// which is given up meanwhile.
func (c *Client) pump(ctx context.Context, done <-chan struct{}, k *clientCall, goal callGoal) {
	for {
		c.mu.Unlock()
		c.line.poll()
		c.mu.Lock()
		more := c.drain(k, goal)
		if c.ended != nil {
			return
		}
		// What was received may have freed a place, or made a call owe something.
		c.flush()
		if !more || k.reached(goal) {
			return
		}
		select {
		case <-done:
			return
		default:
		}
		w := lineWait{room: c.wantsRoom}
		c.line.begin(w)
		c.mu.Unlock()
		err := c.line.await(ctx, w)
		c.mu.Lock()
		c.line.end()
		if err != nil {
			// Somebody may have left it to this goroutine to send.
			c.flush()
			return
		}
	}
}

// drain receives what is there; false: the goal is reached, or the connection is over. With mu, which is given up meanwhile.
func (c *Client) drain(k *clientCall, goal callGoal) bool {
	for range rpcFramesPerRound {
		c.mu.Unlock()
		var in frameIn
		some, err := c.line.take(&in)
		c.mu.Lock()
		switch {
		case c.ended != nil:
			return false
		case err != nil:
			c.finish(err)
			c.line.close(kindOf(err) != Closed)
			return false
		case !some:
			return true
		}
		if err := c.receive(&in); err != nil {
			c.line.corrupt()
			c.finish(err)
			c.line.close(true)
			return false
		}
		if k.reached(goal) {
			return false
		}
	}
	return true
}
