// Command go is Go's agent: agents/README.md has the protocol.
package main

import (
	"context"
	"os"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

func main() {
	var e ends
	for l := nextLine(); l != nil; l = nextLine() {
		obey(&e, l)
	}
}

// obey ends the agent where a command is not understood, or a message is not what it should be.
func obey(e *ends, l *line) {
	defer func() {
		if refused, is := recover().(refusedError); is {
			event("refused text=%s", refused)
			os.Exit(2)
		}
	}()
	command, known := commands[l.word]
	switch {
	case !known:
		panic(refusedError("no command: " + l.word))
	case command.sends && e.tx == nil && e.socket == nil:
		panic(refusedError("nothing to send to: " + l.word))
	case command.receives && e.rx == nil && e.socket == nil:
		panic(refusedError("nothing to receive from: " + l.word))
	case command.serves && e.server == nil:
		panic(refusedError("no server: " + l.word))
	case command.calls && e.client == nil:
		panic(refusedError("no client: " + l.word))
	}
	err := command.run(e, l)
	if bad, is := err.(badError); is {
		event("bad seq=%d text=%s", bad.seq, bad.what)
		os.Exit(1)
	}
	if err != nil {
		kind := ramway.KindOf(err)
		if kind == 0 {
			kind = ramway.Os
		}
		event("error %s text=%v", named(kind), err)
	}
}

type command struct {
	run func(e *ends, l *line) error
	// What has to be open.
	sends, receives, serves, calls bool
}

var commands = map[string]command{
	"open": {run: open}, "close": {run: closeEnds}, "about": {run: about}, "region": {run: region}, "measure": {run: measure},
	"produce": {run: produce, sends: true}, "last": {run: last, sends: true}, "tensor": {run: sendTensor, sends: true},
	"write": {run: write, sends: true}, "consume": {run: consume, receives: true}, "take": {run: take, receives: true},
	"hold": {run: hold, receives: true}, "echo": {run: echo, sends: true, receives: true}, "ping": {run: ping, sends: true, receives: true},
	"served": {run: served, serves: true}, "gate": {run: openGate, serves: true}, "shutdown": {run: shutdown, serves: true},
	"join": {run: join, serves: true}, "call": {run: call, calls: true}, "start": {run: startCalls, calls: true},
	"collect": {run: collect, calls: true}, "stream": {run: startStreams, calls: true}, "next": {run: next, calls: true},
	"cancel": {run: cancelAll, calls: true}, "health": {run: health, calls: true}, "describe": {run: describe, calls: true},
	"state": {run: state, calls: true},
}

// openTimeout is how long to wait for a name, a role or the other side.
const openTimeout = 10 * time.Second

// ends are both halves of a bus, what a role needs of rings, one side of a topic (its publisher is a sender too, and its
// subscriber a receiver), or a server or a client of RPC.
type ends struct {
	tx     *ramway.Sender
	rx     *ramway.Receiver
	sub    *ramway.Subscriber
	socket *socket
	server *serving
	client *calling
}

func open(e *ends, l *line) error {
	if name := l.text("rpc", ""); name != "" {
		return openRPC(e, l, name)
	}
	consumer, topic := l.text("role", "") == "consumer", l.text("topic", "")
	var err error
	if topic != "" {
		err = openTopic(e, l, topic, consumer)
	} else {
		err = openRings(e, l, consumer)
	}
	if err != nil || e.socket != nil {
		return err
	}
	attached := func(epoch, peerEpoch uint32, capacity int64, longest int) {
		event("attached pid=%d epoch=%d peer_epoch=%d capacity=%d max=%d", os.Getpid(), epoch, peerEpoch, capacity, longest)
	}
	if consumer {
		attached(e.rx.Epoch(), e.rx.PeerEpoch(), e.rx.Capacity(), e.rx.MaxMessageLen())
	} else {
		attached(e.tx.Epoch(), e.tx.PeerEpoch(), e.tx.Capacity(), e.tx.MaxMessageLen())
	}
	return nil
}

// openRings opens what a role needs of rings, or a bus.
func openRings(e *ends, l *line, consumer bool) error {
	over := l.text("over", "")
	to, from := l.text("ring", ""), l.text("back", "")
	listen, connect := l.text("listen", ""), l.text("connect", "")
	create, prefault := l.yes("create"), l.yes("prefault")
	capacity, align, wait := l.number("capacity", 65536), int(l.number("align", 16)), l.wait()
	l.end()
	if consumer {
		to, from = from, to
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	var bus *ramway.Bus
	var err error
	switch {
	case over == "unix":
		e.socket, err = openSocket(listen, connect)
		if err == nil {
			event("attached pid=%d epoch=1 peer_epoch=1 capacity=0 max=0", os.Getpid())
		}
		return err
	case listen != "":
		bus, err = ramway.Listen(ctx, listen, ramway.ListenOptions{Capacity: capacity, Align: align, Wait: wait})
	case connect != "":
		bus, err = ramway.Connect(ctx, connect, ramway.ConnectOptions{Wait: wait})
	default:
		o := ramway.Options{Timeout: openTimeout, Wait: wait, Prefault: prefault}
		makeSender, makeReceiver := ramway.OpenSender, ramway.OpenReceiver
		if create {
			o.Capacity, o.Align = capacity, align
			makeSender, makeReceiver = ramway.CreateSender, ramway.CreateReceiver
		}
		if to != "" {
			if e.tx, err = makeSender(to, o); err != nil {
				e.tx = nil
				return err
			}
		}
		if from != "" {
			if e.rx, err = makeReceiver(from, o); err != nil {
				e.rx = nil
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	if bus != nil {
		e.tx, e.rx = bus.Sender(), bus.Receiver()
	}
	return nil
}

// closeEnds closes in an orderly way. What it says on a bus whose peer is dead does not matter.
func closeEnds(e *ends, l *line) error {
	l.end()
	if e.tx != nil {
		_ = e.tx.Close()
	}
	if e.rx != nil {
		_ = e.rx.Close()
	}
	if e.socket != nil {
		_ = e.socket.conn.Close()
	}
	if e.server != nil {
		e.server.close()
	}
	if e.client != nil {
		e.client.close()
	}
	*e = ends{}
	event("closed")
	return nil
}

func about(_ *ends, l *line) error {
	l.end()
	event("about text=Go")
	return nil
}
