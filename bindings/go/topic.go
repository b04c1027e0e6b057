package ramway

import (
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"
)

// Topics: how they are made and opened.

// Policy is how a subscriber of a topic reads.
type Policy uint8

const (
	// Reliable: the publisher waits for the subscriber, which gets every message.
	Reliable Policy = iota
	// Lossy: the publisher never waits for it. It gets every message that it is fast enough for, and how many it lost.
	Lossy
	// Latest: the publisher never waits for it. It reads the newest message.
	Latest
)

// String is the policy's name.
func (p Policy) String() string {
	switch p {
	case Reliable:
		return "reliable"
	case Lossy:
		return "lossy"
	case Latest:
		return "latest"
	}
	return "unknown"
}

// Start is where a subscriber begins; the zero value is the default of its policy: Reliable at the oldest message, Lossy now.
type Start struct {
	kind startKind
	n    uint64
}

type startKind uint8

const (
	startDefault startKind = iota
	startOldest
	startNow
	startHistory
	startAfterSeq
	// startAgain: at the message with this number, or the first intact one after it. Where one goes on that was ejected: the
	// oldest message may be one that it has received.
	startAgain
)

// or is the start, or this one in place of the default.
func (s Start) or(kind startKind) Start {
	if s.kind == startDefault {
		s.kind = kind
	}
	return s
}

// FromOldest begins at the oldest message that is intact.
func FromOldest() Start { return Start{kind: startOldest} }

// FromNow begins after the newest message.
func FromNow() Start { return Start{kind: startNow} }

// History begins with up to this many messages that were published before, as many as are intact.
func History(messages uint64) Start { return Start{startHistory, messages} }

// AfterSeq begins after the message with this number, or at the oldest intact one; the first message then says how many were
// lost. A number that the topic has not reached begins after the newest message.
func AfterSeq(seq uint64) Start { return Start{startAfterSeq, seq} }

// TopicOptions say how a topic is to be made or opened, and how its handle waits. The zero value means the defaults. An option
// that the other side has is ErrInvalidArgument.
type TopicOptions struct {
	// Capacity is the topic's size in bytes, frame headers (32 bytes a message) included, rounded up to a power of two of at
	// least a page; 0 is 1 MiB. A message takes at most half of it. An existing topic must have just this capacity if it is
	// said here.
	Capacity int64
	// Align is what each payload's address is a multiple of in the log, in bytes: a power of two from 32 to 4096; 0 is 32. An
	// existing topic must have just this alignment if it is said here.
	Align int
	// Slots is how many reliable subscribers there can be at a time, 1 to 1024; 0 is 32. Others take a free slot of the upper half,
	// so that they are seen, and do without where there is none: so half of the slots, rounded up, are for reliable ones whoever else
	// is there. An existing topic must have just this number if it is said here.
	Slots int
	// LossyOnly: a new topic takes no reliable subscriber, so that its publisher never waits. An existing one must be such.
	LossyOnly bool
	// MayEject: the publisher of a new topic may eject a reliable subscriber that holds it up. An existing one must be such.
	MayEject bool

	// EjectAfter, of a publisher: a reliable subscriber that has kept it waiting for this long without releasing anything is
	// ejected; its next call gives ErrLagged, and it goes on at the oldest message that is left. It asks for MayEject; an existing topic
	// without that is ErrUnsupported. 0: the publisher waits for it as long as its process lives.
	EjectAfter time.Duration
	// Timestamps, of a publisher: every message says when it was sent, by the wall clock (some 40 ns a message).
	Timestamps bool

	// Policy, of a subscriber: how it reads.
	Policy Policy
	// Start, of a subscriber: where it begins. With Latest, which reads the newest message, ErrInvalidArgument.
	Start Start
	// Label, of a subscriber, is a name for those who watch, and what Durable finds its cursor by: at most 64 bytes of UTF-8. A
	// reliable subscriber's is its alone while it is attached (ErrBusy).
	Label string
	// Durable, of a reliable subscriber with a label: its cursor stays when it closes or dies, and the next one with the label
	// goes on there. The publisher waits for it all the while, also when nobody is there: see [Subscriber.Unsubscribe].
	Durable bool
	// ReadOnly, of a subscriber that nobody waits for: it opens the file only for reading, as another user may (mode 0644). It
	// is seen by nobody, and cannot be woken: it checks every millisecond while it waits. With an Open only.
	ReadOnly bool

	// Discard, Persistent, AllowDisk, LockMemory, HugePages, Prefault, NUMANode, Mode, Timeout, Wait and NoMembarrier are as in
	// [Options]. Discard throws away what durable subscribers have not received.
	Discard, Persistent, AllowDisk, LockMemory, HugePages, Prefault bool
	NUMANode                                                        *int
	Mode                                                            fs.FileMode
	Timeout                                                         time.Duration
	Wait                                                            WaitMode
	NoMembarrier                                                    bool
}

// options are those that every named segment and handle has.
func (o *TopicOptions) options() Options {
	return Options{
		Discard: o.Discard, Persistent: o.Persistent, AllowDisk: o.AllowDisk, LockMemory: o.LockMemory, HugePages: o.HugePages,
		Prefault: o.Prefault, NUMANode: o.NUMANode, Mode: o.Mode, Timeout: o.Timeout, Wait: o.Wait, NoMembarrier: o.NoMembarrier,
	}
}

// CreatePublisher makes a topic that must be new, and is its publisher. Names are as for [CreateSender]. The name goes when
// the last handle does, unless a durable subscriber has not received everything, or the topic is persistent: history alone
// keeps no topic.
//
// ErrAlreadyExists if somebody uses the name, if it holds what a durable subscriber has not received (unless
// TopicOptions.Discard), or if something else has it. What dead processes left is replaced. Otherwise as CreateSender.
//
//	pub, err := ramway.CreatePublisher("ticks", ramway.TopicOptions{Capacity: 8 << 20})
func CreatePublisher(name string, o TopicOptions) (*Publisher, error) {
	return attachPublisher(name, howCreate, o)
}

// OpenPublisher is the publisher of a topic that exists, also of one that dead processes left: it goes on after what an earlier
// one published. ErrNotFound if there is none (see TopicOptions.Timeout), ErrBusy if it has a publisher; otherwise as
// [OpenSender].
//
//	pub, err := ramway.OpenPublisher("ticks", ramway.TopicOptions{Timeout: time.Second})
func OpenPublisher(name string, o TopicOptions) (*Publisher, error) {
	return attachPublisher(name, howOpen, o)
}

// OpenOrCreatePublisher opens a topic if it exists, and makes it if not. ErrInvalidArgument if it exists with another capacity,
// alignment or number of slots than was asked for, or without a property that was asked for.
//
//	pub, err := ramway.OpenOrCreatePublisher("ticks", ramway.TopicOptions{})
func OpenOrCreatePublisher(name string, o TopicOptions) (*Publisher, error) {
	return attachPublisher(name, howOpenOrCreate, o)
}

// CreateSubscriber is [CreatePublisher] for the other side: either may create the topic.
//
//	sub, err := ramway.CreateSubscriber("ticks", ramway.TopicOptions{})
func CreateSubscriber(name string, o TopicOptions) (*Subscriber, error) {
	return attachSubscriber(name, howCreate, o)
}

// OpenSubscriber is a subscriber of a topic that exists. ErrBusy if every slot is taken, or a live subscriber has the label, and
// that stays so until TopicOptions.Timeout; ErrUnsupported for a reliable one where the topic is LossyOnly; ErrPermissionDenied for one that may not write the file and
// is not ReadOnly; otherwise as [OpenReceiver].
//
//	sub, err := ramway.OpenSubscriber("ticks", ramway.TopicOptions{Policy: ramway.Lossy, Start: ramway.History(10)})
func OpenSubscriber(name string, o TopicOptions) (*Subscriber, error) {
	return attachSubscriber(name, howOpen, o)
}

// OpenOrCreateSubscriber is [OpenOrCreatePublisher] for the other side.
//
//	sub, err := ramway.OpenOrCreateSubscriber("ticks", ramway.TopicOptions{Label: "recorder", Durable: true})
func OpenOrCreateSubscriber(name string, o TopicOptions) (*Subscriber, error) {
	return attachSubscriber(name, howOpenOrCreate, o)
}

func attachPublisher(name string, how how, o TopicOptions) (*Publisher, error) {
	a, err := o.attach(name, how, bytePublisher, access{true, true, true}, o.checkPublisher)
	if err != nil {
		return nil, err
	}
	return newPublisher(a, &o)
}

func attachSubscriber(name string, how how, o TopicOptions) (*Subscriber, error) {
	check := func() error { return o.checkSubscriber(how) }
	// The data is the publisher's alone: a stray write through a view would reach every other subscriber.
	a, err := o.attach(name, how, noRole, access{area: !o.ReadOnly}, check)
	if err != nil {
		return nil, err
	}
	sub, err := newSubscriber(a, &o)
	if err != nil {
		return nil, about(err, how.verb()+" the topic", name)
	}
	return sub, nil
}

// firstOf is the text of the first option that is not for this side, or not for what was chosen.
func firstOf(wrong ...any) error {
	for i := 0; i < len(wrong); i += 2 {
		if wrong[i].(bool) {
			return failf(InvalidArgument, "%s", wrong[i+1])
		}
	}
	return nil
}

func (o *TopicOptions) checkPublisher() error {
	return firstOf(
		o.Policy != Reliable, "Policy is not for a publisher",
		o.Start != Start{}, "Start is not for a publisher",
		o.Label != "", "Label is not for a publisher",
		o.Durable, "Durable is not for a publisher",
		o.ReadOnly, "ReadOnly is not for a publisher",
		o.EjectAfter < 0, fmt.Sprintf("EjectAfter is %v: expected more than 0, or 0 to wait as long as it takes", o.EjectAfter))
}

func (o *TopicOptions) checkSubscriber(how how) error {
	return firstOf(
		o.EjectAfter != 0, "EjectAfter is not for a subscriber",
		o.Timestamps, "Timestamps is not for a subscriber",
		o.Policy > Latest, fmt.Sprintf("%d is not a policy: expected Reliable, Lossy or Latest", o.Policy),
		len(o.Label) > labelMax || strings.Contains(o.Label, "\x00") || !utf8.ValidString(o.Label),
		fmt.Sprintf("the label %q of %d bytes: expected 1 to %d bytes of UTF-8 without a zero byte", o.Label, len(o.Label), labelMax),
		o.Durable && o.Policy != Reliable, "Durable is for a reliable subscriber: the publisher keeps messages for no other",
		o.Durable && o.Label == "", "a durable subscriber needs a label, by which the next one finds its cursor",
		o.Policy == Latest && o.Start != Start{}, "a subscriber with the policy Latest reads the newest message: it begins nowhere else",
		o.ReadOnly && o.Policy == Reliable, "a reliable subscriber tells the publisher what it has read, so it cannot be ReadOnly",
		o.ReadOnly && o.Label != "", "a ReadOnly subscriber cannot show a label: it writes nothing",
		o.ReadOnly && how != howOpen, "a ReadOnly subscriber creates nothing: open the topic")
}

// topicFlags are the creator's.
func (o *TopicOptions) topicFlags() (flags uint32) {
	if o.LossyOnly {
		flags |= topicLossyOnly
	}
	if o.MayEject || o.EjectAfter != 0 {
		flags |= topicMayEject
	}
	return flags
}

// attach creates or opens the topic, takes the role if there is one, and maps it. It blocks as attachNamed does.
func (o *TopicOptions) attach(name string, how how, roleByte int64, writable access, check func() error) (*attachment, error) {
	tried := how.verb() + " the topic"
	fail := func(err error) (*attachment, error) { return nil, about(err, tried, name) }
	if err := check(); err != nil {
		return fail(err)
	}
	options := o.options()
	if err := options.check(how); err != nil {
		return fail(err)
	}
	flags := o.topicFlags()
	if flags == topicLossyOnly|topicMayEject {
		return fail(failf(InvalidArgument, "a topic that takes no reliable subscribers has nobody to eject: say LossyOnly or MayEject"))
	}
	granule, err := options.granule()
	if err != nil {
		return fail(err)
	}
	capacity := o.Capacity
	if capacity == 0 {
		capacity = capacityDefault
	}
	// Checked here although an existing topic may need none of it: a mistake shows on the first run.
	s, err := topicSpec(capacity, o.Align, o.Slots, flags, granule)
	if err != nil {
		return fail(err)
	}
	q := &request{
		name: name, how: how, kind: kindTopic, spec: s.named(o.Persistent), roleByte: roleByte, readOnly: o.ReadOnly, o: &options,
		check: func(h *header) error { return o.compare(s, &h.blocks[0], roleByte == noRole) },
	}
	opened, err := q.open()
	if err != nil {
		return nil, err
	}
	a, err := attach(opened.file, block0, opened.header.blocks[0], topicLink{opened.link}, &options, writable)
	if err != nil {
		return fail(err)
	}
	a.name = name
	return a, nil
}

// compare says what an existing topic has other than was asked for.
func (o *TopicOptions) compare(s *spec, found *geometry, subscriber bool) error {
	wanted := &s.blocks[0]
	switch {
	case o.Capacity != 0 && found.capacity != wanted.capacity:
		return differs("capacity", wanted.capacity, found.capacity)
	case o.Align != 0 && found.align != wanted.align:
		return differs("alignment", uint64(wanted.align), uint64(found.align))
	case o.Slots != 0 && found.slots != wanted.slots:
		return failf(InvalidArgument, "it exists, and its number of slots is %d, not the %d asked for; leave it out to take what is there",
			found.slots, wanted.slots)
	case o.LossyOnly && found.flags&topicLossyOnly == 0:
		return failf(InvalidArgument, "it exists, and takes reliable subscribers: LossyOnly is decided when a topic is made")
	case o.EjectAfter != 0 && found.flags&topicMayEject == 0:
		return failf(Unsupported, "it exists, and its creator did not allow ejecting subscribers (MayEject): leave EjectAfter out, or "+
			"create the topic anew")
	case o.MayEject && found.flags&topicMayEject == 0:
		return failf(InvalidArgument, "it exists, and subscribers cannot be ejected: MayEject is decided when a topic is made")
	case subscriber && o.Policy == Reliable && found.flags&topicLossyOnly != 0:
		return failf(Unsupported, "the topic takes no reliable subscribers (its creator said LossyOnly): subscribe with the policy Lossy "+
			"or Latest")
	}
	return nil
}
