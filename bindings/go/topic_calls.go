package ramway

import (
	"context"
	"time"
)

// Publisher is the one publisher of a topic, in the whole system: a [Sender] whose log many read. Sending waits for the slowest
// reliable subscriber when the log is full, and for nobody where there is none. A subscriber never ends it: no call gives
// ErrClosed or ErrPeerDead because of one.
//
// WaitForPeer waits for a reliable subscriber, and PeerEpoch counts the subscribers that came, went, or began anew.
//
//	pub, err := ramway.OpenOrCreatePublisher("ticks", ramway.TopicOptions{})
//	if err != nil { ... }
//	defer pub.Close()
//	err = pub.Send(ctx, 7, []byte("to everybody"))
type Publisher struct {
	Sender
}

// Subscriber is a subscriber of a topic: a [Receiver] that is one of many. Under the policy Reliable its messages lie in the log
// until they are released, and under the others, or where the publisher may eject it, they are copies. A slice that it gives out
// ([Message.View]) is always a copy, because a slice can be written and the log is mapped read-only; Append, Copy, ReadAt and
// WriteTo read a reliable one's messages where they lie.
//
//	sub, err := ramway.OpenSubscriber("ticks", ramway.TopicOptions{Policy: ramway.Lossy})
//	if err != nil { ... }
//	defer sub.Close()
//	for message := range sub.All(ctx) {
//		fmt.Println(message.Seq(), message.Lost(), string(message.Clone()))
//	}
//	err = sub.Err()
type Subscriber struct {
	Receiver
}

// TopicMeta is what a copied message of a topic was sent with.
type TopicMeta struct {
	Meta
	// Seq, Time and Lost are as [Message.Seq], [Message.Time] and [Message.Lost].
	Seq  uint64
	Time time.Time
	Lost uint64
}

// Lag is how far a subscriber is behind.
type Lag struct {
	// Bytes are published and not released, frame headers and padding included.
	Bytes int64
	// Messages are published and not received.
	Messages uint64
}

// SubscriberInfo is a subscriber, as a publisher sees it at one moment.
type SubscriberInfo struct {
	// Slot is its slot's number, Epoch how often that was taken.
	Slot  int
	Epoch uint32
	// Policy is how it reads.
	Policy Policy
	// Label is empty if it has none.
	Label string
	// Durable: its cursor stays when it goes.
	Durable bool
	// Alive: its process lives and has it open.
	Alive bool
	// Ejected: the publisher has ejected it, and it has not begun anew.
	Ejected bool
	// Lag is how far a reliable one is behind; nil under another policy, which does not say.
	Lag *Lag
	// Lost is how many messages it has lost.
	Lost uint64
	// BlocksFor is for how long it has kept the publisher from going on without reading anything, as far as calls of the
	// publisher have found it; 0 if it does not.
	BlocksFor time.Duration
}

// Subscribers are those who have a slot: every reliable subscriber, and of the others those that could take one. A system call
// for each. nil once the handle is closed.
func (p *Publisher) Subscribers() []SubscriberInfo {
	s, t := &p.Sender, p.topic
	s.enter()
	defer s.leave()
	if s.isClosed() {
		return nil
	}
	all := []SubscriberInfo{}
	newest := t.publishedSeq(s)
	for i := range t.slots {
		one, used := t.slots[i].info(i, s.published, newest, s.at.g, func(position uint64) uint64 { return t.seqAt(s, position) })
		if !used {
			continue
		}
		one.Alive = t.patrol.link.livesAt(byteSlot + int64(i))
		one.BlocksFor = t.patrol.blocksFor(i, &t.slots[i])
		all = append(all, one)
	}
	return all
}

// WaitForSubscribers waits until n reliable subscribers are attached and their processes live; at once if they are there.
// (Others do not count: the publisher does not wait for them.) What was committed unflushed is flushed.
//
// Errors: ErrInvalidArgument if the topic has fewer slots than that; ErrUnsupported if it takes no reliable subscribers; ErrTimedOut or ErrInterrupted with the context; ErrClosed if
// the topic's name was removed, so that nobody can come; ErrCorrupt, ErrDetached.
func (p *Publisher) WaitForSubscribers(ctx context.Context, n int) error {
	s := &p.Sender
	s.enter()
	defer s.leave()
	if s.isShut() {
		return s.refused()
	}
	if n < 0 || n > len(p.topic.slots) {
		return s.failf(InvalidArgument, "waiting for %d subscribers: the topic has %d slots; create it with more", n, len(p.topic.slots))
	}
	if n > 0 && p.topic.flags&topicLossyOnly != 0 {
		return s.failf(Unsupported, "waiting for %d subscribers: the topic takes no reliable ones (its creator said LossyOnly), and others do "+
			"not count", n)
	}
	s.flushAny()
	return p.topic.waitFor(ctx, s, n)
}

func (t *publishing) waitFor(ctx context.Context, s *Sender, n int) error {
	return s.asleepUntil(ctx, &subscribersWait{&s.endpoint, t, n})
}

// subscribersWait is the side of a wait for subscribers.
type subscribersWait struct {
	*endpoint
	t *publishing
	n int
}

// position is for spinning, which this wait never does.
func (w *subscribersWait) position() (*uint64, uint64) { return nil, 0 }

func (w *subscribersWait) await(uint32) bool { return true }

func (w *subscribersWait) ready() (bool, error) { return w.n == 0 || w.t.living() >= w.n, nil }

// Seq is the number of the last published message; 0 before the first, and once the handle is closed.
func (p *Publisher) Seq() uint64 {
	s := &p.Sender
	s.enter()
	defer s.leave()
	if s.isClosed() {
		return 0
	}
	return p.topic.publishedSeq(s)
}

// SkipSeq lets the next message's number be lost higher than it would be: every subscriber then counts that many messages as
// lost before it. For bridges and replays, whose own source has a gap.
//
// Errors: ErrInvalidArgument if no number would be left; ErrCorrupt, ErrDetached.
func (p *Publisher) SkipSeq(lost uint64) error {
	s, t := &p.Sender, p.topic
	s.enter()
	defer s.leave()
	if s.isShut() {
		return s.refused()
	}
	if lost >= 1<<63-t.seq {
		return s.failf(InvalidArgument, "%d messages lost after number %d: no such numbers", lost, t.seq-1)
	}
	t.seq += lost
	return nil
}

// Policy is how this subscriber reads.
func (s *Subscriber) Policy() Policy { return s.topic.policy }

// Label is the label that it was opened with; empty without one, and once the handle is closed.
func (s *Subscriber) Label() string {
	r := &s.Receiver
	r.enter()
	defer r.leave()
	if r.isClosed() {
		return ""
	}
	return s.topic.label
}

// Lost is how many messages this handle has lost so far.
func (s *Subscriber) Lost() uint64 {
	s.enter()
	defer s.leave()
	return s.topic.lost
}

// Lag is how far it is behind. It may have changed when it returns. Zero once the handle is closed.
func (s *Subscriber) Lag() Lag {
	r, t := &s.Receiver, s.topic
	r.enter()
	defer r.leave()
	if r.isClosed() {
		return Lag{}
	}
	lag := Lag{Bytes: int64(t.unread(r))}
	if h, _, some, err := t.newest(); some && err == nil && h.seq >= t.expected {
		lag.Messages = h.seq + 1 - max(t.expected, 1)
	}
	return lag
}

// SkipToNewest moves on so that the next message is the newest one, and gives how many it leaves out. They do not count as lost.
//
// Errors: ErrUnsupported under the policy Latest, which reads the newest one anyway; ErrBusy while a message is out; ErrLagged if
// the publisher has ejected this subscriber; ErrCorrupt, ErrDetached.
func (s *Subscriber) SkipToNewest() (uint64, error) {
	r, t := &s.Receiver, s.topic
	r.enter()
	defer r.leave()
	switch {
	case r.isShut():
		return 0, r.refused()
	case t.policy == Latest:
		return 0, r.failf(Unsupported, "SkipToNewest under the policy Latest, which reads the newest message anyway")
	case r.head != r.released:
		return 0, r.failf(Busy, "a message or batch of this subscriber is out: release it first")
	}
	if _, err := t.ready(r); err != nil {
		return 0, err
	}
	h, end, some, err := t.newest()
	if err != nil {
		return 0, r.corrupt()
	}
	if !some || h.seq < t.expected {
		return 0, nil // it was received
	}
	skipped := h.seq - max(t.expected, 1)
	r.head, r.tail = end-t.sizeOf(&h), end
	t.expected = h.seq
	t.giveBack(r)
	return skipped, nil
}

// Latest is the newest message, whatever was received before: the same one again if there is no newer one. Never waits. Under
// every policy it is a copy; what [Receiver.Recv] gives next stays as it was, but under the policy Latest that waits for a message
// newer than this one.
//
// Errors: ErrEmpty before the first message, or where the publisher overtakes this call again and again; ErrBusy while a message
// is out; ErrCorrupt, ErrDetached.
func (s *Subscriber) Latest() (Message, error) {
	r, t := &s.Receiver, s.topic
	r.enter()
	if err := t.readNewest(r, &r.one); err != nil {
		r.leave()
		return Message{}, err
	}
	t.setAside(r, t.seen)
	return r.loan(), nil
}

// LatestInto is [Subscriber.Latest] by a copy into dst; TopicMeta.Len says how many bytes there are. A message that is longer than
// dst is ErrTooLarge, and TopicMeta says what it is.
func (s *Subscriber) LatestInto(dst []byte) (TopicMeta, error) {
	r, t := &s.Receiver, s.topic
	r.enter()
	defer r.leave()
	t.to, t.into = toBuffer, dst
	f := &r.one
	err := t.readNewest(r, f)
	t.to, t.into = toCopies, nil
	if err != nil {
		return TopicMeta{}, err
	}
	meta := t.metaOf(Meta{TypeID: f.typeID, Tag: f.tag, Len: int(f.len)})
	if meta.Len > len(dst) {
		return meta, r.failf(TooLarge, "the message has %d bytes, the buffer %d; it stays", meta.Len, len(dst))
	}
	return meta, nil
}

// WaitNewer waits for a message that is newer than the one that [Subscriber.Latest] or this gave last: the newest one then. It is
// [Receiver.Recv] in the words of a value that changes.
//
// Errors: ErrUnsupported under another policy, which receives in order; else as for Recv.
func (s *Subscriber) WaitNewer(ctx context.Context) (Message, error) {
	if s.topic.policy != Latest {
		return Message{}, s.failf(Unsupported, "WaitNewer on a subscriber that receives in order: use Recv, or open it with the policy Latest")
	}
	return s.Recv(ctx)
}

// RecvAppend is [Receiver.RecvAppend], and says also what a topic's message has.
func (s *Subscriber) RecvAppend(ctx context.Context, dst []byte) ([]byte, TopicMeta, error) {
	dst, meta, err := s.Receiver.RecvAppend(ctx, dst)
	return dst, s.metaUnless(err, meta), err
}

// RecvInto is [Receiver.RecvInto], and says also what a topic's message has.
func (s *Subscriber) RecvInto(ctx context.Context, dst []byte) (TopicMeta, error) {
	meta, err := s.Receiver.RecvInto(ctx, dst)
	return s.metaUnless(err, meta), err
}

// TryRecvInto is [Receiver.TryRecvInto], and says also what a topic's message has.
func (s *Subscriber) TryRecvInto(dst []byte) (TopicMeta, error) {
	meta, err := s.Receiver.TryRecvInto(dst)
	return s.metaUnless(err, meta), err
}

// metaUnless is the meta of the message received just now, or if it did not fit, of the one that is there.
func (s *Subscriber) metaUnless(err error, meta Meta) TopicMeta {
	if err != nil && kindOf(err) != TooLarge {
		return TopicMeta{}
	}
	return s.topic.metaOf(meta)
}

// metaOf adds what a topic's message has, of the one that was read last.
func (t *subscribing) metaOf(meta Meta) TopicMeta {
	stamp := t.stamps[0]
	return TopicMeta{Meta: meta, Seq: stamp.seq, Time: stamp.when(), Lost: stamp.lost}
}

// Unsubscribe closes a durable subscriber for good: its label and cursor are forgotten, and the publisher no longer waits for it.
// For any other it is Close.
func (s *Subscriber) Unsubscribe() error {
	s.enter()
	if !s.isClosed() {
		s.topic.durable = false
	}
	s.leave()
	return s.Close()
}
