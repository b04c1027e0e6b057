// Code generated from format/facts.toml by `make facts`. DO NOT EDIT.

package ramway

import "time"

// The segment header's values.
const (
	// The first eight bytes of every segment.
	magic = "RAMWAY\r\n"
	// Written in the creator's byte order, so that a reader of the other order sees it swapped.
	byteOrder = 0x0A0B0C0D
	// What a reader of the other byte order sees.
	byteOrderSwapped = 0x0D0C0B0A
	// A reader refuses another major version.
	versionMajor = 1
	// What the creator of a region, ring, bus or listener writes. A reader accepts any minor version: it adds only what an
	// older reader may ignore.
	versionMinor = 0
	// What the creator of a topic writes: the minor version that brought topics.
	versionMinorTopic = 1
	// The required feature bits of everything but an RPC's bus. Any other set bit is AbiMismatch.
	featuresKnown = 0
	// A required feature bit, of a bus's segment and in its handshake: the bus carries RPC frames only. Who opens a plain
	// bus does not know it.
	featureRpc = 1
	// In the segment's flags: the last one out leaves the name in place.
	flagPersistent = 1
)

// The header page.
const (
	// The length of the header page in bytes: a segment's data begins here or later.
	headerSize = 4096
	// Where block 0 begins in the header page.
	block0 = 0x400
	// Where block 1 begins in the header page.
	block1 = 0x800
	// A ring's part of the header page, in bytes.
	ringBlockSize = 0x280
	// A region's part of the header page, in bytes.
	regionBlockSize = 0x100
	// A topic's part of the header page, in bytes.
	topicBlockSize = 0x280
)

// Frames.
const (
	// The length of what precedes every payload: len u32, type id u32, tag u64.
	frameHeader = 16
	// The smallest and default alignment of payloads.
	alignMin = 16
	// The largest alignment of payloads.
	alignMax = 4096
	// No message is longer, whatever the capacity: with its header it stays below 2^31.
	messageMax = 2_147_483_631
	// Type ids from here up are Ramway's own.
	typeIDReserved = 0xFFFF0000
	// The type id of a message that is a tensor frame.
	typeIDTensor = 0xFFFF0001
	// In the `end` of a last-tag record: no frame ends here, because positions are multiples of 16.
	noPosition = 1
)

// Frames of a topic.
const (
	// The length of what precedes every payload of a topic: a ring's header, then seq u64 and time u64.
	topicFrameHeader = 32
	// The smallest and default alignment of a topic's payloads.
	topicAlignMin = 32
	// No message of a topic is longer, whatever the capacity: with its header it stays below 2^31.
	topicMessageMax = 2_147_483_615
)

// A topic's parts.
const (
	// Parts of a topic's data area that have an entry in `starts` each. The publisher announces in advance, in whole
	// parts, what it will overwrite.
	topicChunks = 16
	// A topic has at most this many slots for subscribers.
	topicSlotsMax = 1024
	// In the creator's flags: no subscriber may hold the publisher back.
	topicLossyOnly = 1
	// In the creator's flags: a publisher may eject a subscriber that holds it back, so subscribers copy what they
	// receive.
	topicMayEject = 2
	// The creator's flags that this version knows. Any other set bit is AbiMismatch.
	topicFlagsKnown = 3
)

// A subscriber's slot.
const (
	// The length of a slot in bytes.
	slotSize = 128
	// The longest label of a subscriber, in bytes of UTF-8.
	labelMax = 64
)

// The bits of a slot's state; its epoch is the upper half.
const (
	// A subscriber has the slot.
	slotActive = 1
	// The publisher does not overwrite what lies at the slot's cursor or after it.
	slotGating = 2
	// The slot, its label and its cursor stay when its subscriber goes.
	slotDurable = 4
	// The publisher has ejected the subscriber: it does not gate any more.
	slotEjected = 8
)

// The bits of a slot's flags, which its subscriber writes.
const (
	// As of a role: a real membarrier succeeded in the subscriber's process.
	slotFlagMembarrierCapable = 1
	// As of a role: the subscriber does not fence before it wakes the publisher.
	slotFlagFenceFree = 2
	// The subscriber reads the newest message only: for people who look at the topic.
	slotFlagLatest = 8
)

// The subscribers' shared word, which is accessed as one u64 only.
const (
	// A subscriber sleeps, or is about to. A sleeper sets it; the publisher adds this, which clears it and counts a
	// wake-up.
	wordAsleep = 1
	// Who has to wake all subscribers whether or not one says that it sleeps adds this: it changes what they wait for, and
	// keeps the bit.
	wordWake = 2
	// A subscriber that joins or leaves adds this: the upper half counts changes of the slots.
	wordChange = 4_294_967_296
)

// The bits of a role's flags.
const (
	// A real membarrier succeeded in the holder's process.
	roleMembarrierCapable = 1
	// As a waker, the holder does not fence.
	roleFenceFree = 2
	// The holder closed in an orderly way.
	roleClosed = 4
)

// A region's notification word.
const (
	// The bit that says that somebody waits.
	notifyWaiting = 1
	// What one notification adds: the bits above the first one count.
	notifyOne = 2
)

// The bytes of a segment's file that are locked.
const (
	// Shared: in use by a handle. Exclusive: the last one out, or a cleaner, decides about the name.
	byteInUse = 0
	// Exclusive: the producer's role is held.
	byteProducer = 1
	// Exclusive: the consumer's role is held.
	byteConsumer = 2
	// Exclusive, of a listener's segment: somebody listens.
	byteListener = 1
	// Exclusive, of a topic: the publisher's role is held.
	bytePublisher = 1
	// Exclusive, of a topic: a subscriber with a label looks for its slot.
	byteJoin = 2
	// Exclusive, of a topic: this byte and the slot's number is the life of the slot's subscriber.
	byteSlot = 16
)

// Names and directories.
const (
	// The longest name in the Ramway directory, in bytes.
	nameMax = 80
	// The characters of a name, as error texts show them. A name does not begin with a dot.
	nameCharacters = "A-Z a-z 0-9 . _ -"
	// A listener's socket is NAME and this; no other name ends so.
	socketSuffix = ".sock"
	// Where a path is the socket, its listener's segment is PATH and this.
	lockSuffix = ".lock"
	// How the file of a segment begins that has no name yet, where the file system has no nameless files.
	stagedPrefix = ".ramway-"
	// How such a file ends; 16 hexadecimal digits are in between.
	stagedSuffix = ".new"
	// The environment variable that names the Ramway directory.
	directoryVariable = "RAMWAY_DIR"
)

// The handshake of a bus.
const (
	// The length of every message, in every version.
	handshakeSize = 64
	// The first eight bytes of every message.
	handshakeMagic = "RAMBUS\r\n"
	// Another major version is refused with AbiMismatch.
	handshakeMajor = 1
	// Any minor version is accepted.
	handshakeMinor = 0
	// The required features of a plain bus's handshake. Any other set bit is AbiMismatch.
	handshakeFeatures = 0
)

// RPC: type ids and methods of Ramway's own.
const (
	// The type id of a CALL: client to server.
	typeIDCall = 0xFFFF0010
	// The type id of a REPLY: server to client.
	typeIDReply = 0xFFFF0011
	// The type id of a CANCEL: client to server.
	typeIDCancel = 0xFFFF0012
	// The type id of a CREDIT: client to server.
	typeIDCredit = 0xFFFF0013
	// Bytes of a CALL's and a REPLY's header. Metadata and body follow, each from a multiple of this.
	rpcHeader = 16
	// In a REPLY's flags: an element of a stream, more follow.
	rpcElement = 1
	// Methods from here up are Ramway's own.
	methodReserved = 0xFFFF0000
	// The method that replies with nothing: the server is there and reads.
	methodPing = 0xFFFF0000
	// The method that replies with the numbers and names of the server's methods.
	methodDescribe = 0xFFFF0001
	// The most calls in flight that a server can allow a client.
	rpcInFlightMax = 1_048_576
	// The required features of an RPC's bus, in HELLO, WELCOME and the segment: exactly these.
	rpcFeatures = 1
)

// How a call ended, in a final REPLY.
const (
	// The call succeeded.
	rpcOk = 0
	// The handler replied with an error of its own: a number and a text.
	rpcApplication = 1
	// The server has no such method. The call was not run.
	rpcNoSuchMethod = 2
	// The call's time was over before it was begun. It was not run.
	rpcTimedOut = 3
	// The call was cancelled.
	rpcCancelled = 4
	// A limit of the server was reached. The call was not run.
	rpcOverloaded = 5
	// The call was run, but its reply is longer than the ring or than the server's limit of bytes.
	rpcReplyTooLarge = 6
	// The server is shutting down. The call was not run.
	rpcDraining = 7
	// The handler failed in a way that it did not mean to: a panic, an exception.
	rpcHandlerFailed = 8
)

// Tensor frames.
const (
	// A tensor has at most this many dimensions.
	ndimMax = 32
	// The elements begin on an address that is a multiple of this.
	tensorAlign = 64
)

// How a call waits. A poll takes 25 ns: a load and a PAUSE.
const (
	// Polls before a call sleeps, at most: 75 µs, about what a sleep and the wake-up from it cost (decision 18).
	spinMax = 3000
	// Polls that are left where waits have been long.
	spinMin = 32
	// Polls of a receiver before it enters the general wait: more than a round trip takes.
	firstPolls = 32
	// Found by one poll: a receiver that has taken them backs off before it polls again. To poll at once would take the
	// line of tail away from a sender that is writing (decision 39).
	backOffFew = 8
	// Found by one poll: it backs off for twice as long. Not at all where more than a quarter of the capacity was found:
	// that receiver is behind.
	backOffMany = 32
	// The same in Java and Go, where nothing is as long on every processor.
	backOffPauses = 32
	// Polls that found fewer messages until it backs off for once, to see whether more come then; twice as many after each
	// time.
	backOffTrialMin = 16
	// The most of them.
	backOffTrialMax = 1024
	// Polls of a side that never sleeps between two checks of the clock, the deadline and the peer: 50 µs.
	pollsPerCheck = 2000
	// Polls between two checks whether the wait was cancelled: 1 µs.
	pollsPerCancelCheck = 40
	// Polls, over all waits of a handle, before other goroutines of the same processor run: 200 µs (decision 17).
	yieldPolls = 8000
	// A wait that was over before this, the spinning and the wake-up included, would have been better spent spinning to
	// the end.
	shortWait = 110 * time.Microsecond
	// The longest sleep before another check of the deadline and of whether the peer lives. A blocked side learns of a
	// death within two intervals.
	pollInterval = 100 * time.Millisecond
	// The longest sleep where the waker does not fence and this side cannot make it: the wake-up may be missed, so it is
	// short.
	unorderedInterval = time.Millisecond
	// How long a hybrid wait for a region's notification polls before it sleeps.
	regionSpin = 20 * time.Microsecond
	// Between two polls of a region's handle that cannot write, and so cannot say that it waits.
	regionPollInterval = time.Millisecond
	// The wake-up of a waiting producer is put off until this fraction of the capacity is free (a quarter), or the ring is
	// drained.
	wakeFraction = 4
)

// Topics.
const (
	// A topic's slots for subscribers, by default.
	topicSlotsDefault = 32
	// How often a call that does not wait lets the publisher overtake it before it gives up and says Empty.
	overtakenMax = 16
	// A lossy subscriber that was overtaken resumes at the oldest known frame that is at most this fraction of the
	// capacity (a half) behind `claim`: farther back it would be overtaken again.
	resumeFraction = 2
)

// Listeners and connectors.
const (
	// Handshakes under way at a time: the oldest silent one makes room for the next connector.
	handshakesMax = 64
	// Connectors that one accept turns away for want of descriptors before it reports the failure.
	turnedAwayMax = 1024
	// How long the listening socket is left alone after accepting has failed for want of descriptors.
	acceptPause = 100 * time.Millisecond
	// The default of a listener's deadline for each message of a connector.
	handshakeTimeout = time.Second
	// Connectors that the system lets wait for an accept, by default.
	backlogDefault = 128
	// How long a connector tries, by default.
	connectTimeout = 10 * time.Second
	// The first pause between two attempts to connect; each is twice the one before.
	connectPauseMin = 500 * time.Microsecond
	// The longest pause between two attempts to connect.
	connectPauseMax = 10 * time.Millisecond
	// A socket gets its mode just after its name: a refused permission is final only after this.
	permissionGrace = 200 * time.Millisecond
)

// RPC.
const (
	// Calls in flight that a server allows a client, by default.
	rpcInFlightDefault = 1024
	// Clients that a server takes at a time, by default.
	rpcClientsDefault = 128
	// A server copies at most this many times its capacity for one client, by default, and a client buffers at most this
	// many times the capacity of replies.
	rpcBytesFactor = 4
	// Elements of a stream that may be under way, by default.
	rpcWindowDefault = 16
	// Frames that a server takes from one client before it serves the next one, and looks at deadlines.
	rpcFramesPerRound = 64
)

// Opening and creating.
const (
	// How long a race with another process (a segment that is just going away) is tried again, at least.
	raceTimeout = time.Second
	// The first pause between two such attempts; each is twice the one before.
	racePauseMin = 100 * time.Microsecond
	// The longest pause between two such attempts.
	racePauseMax = 10 * time.Millisecond
	// A ring's capacity in bytes, by default.
	capacityDefault = 1_048_576
)

// Where the fields of the segment header are, from the segment's start.
const (
	// 8 bytes.
	offMagic = 0x00
	// u32: `0x0A0B0C0D`, so the bytes are `0D 0C 0B 0A`.
	offByteOrder = 0x08
	// u16: 1.
	offVersionMajor = 0x0C
	// u16: 0, of a topic 1 (section 15).
	offVersionMinor = 0x0E
	// u32.
	offKind = 0x10
	// u32: bit 0 `PERSISTENT`: the last one out leaves the name in place.
	offFlags = 0x14
	// u32: 0, of an RPC's bus 1 ([section 20](#20-rpc)).
	offFeaturesRequired = 0x18
	// u32: 0.
	offFeaturesOptional = 0x1C
	// u64: length of the whole segment in bytes, header page included.
	offSize = 0x20
	// u64: wall clock at creation, nanoseconds since 1970.
	offCreatedNs = 0x28
	// 16 bytes: the kernel's boot id (`/proc/sys/kernel/random/boot_id`) as 16 raw bytes in the order in which they are
	// printed.
	offBootID = 0x30
)

// Where the fields of a block's geometry are, from the block's start.
const (
	// u64: segment offset of the data area.
	offDataOffset = 0x000
	// u64: bytes of data. Ring: a power of two, ≥ that page, ≥ `align`.
	offCapacity = 0x008
	// u64: region: the length that was asked for.
	offLen = 0x010
	// u32: ring: alignment of payloads, a power of two from 16 to 4096.
	offAlign = 0x018
)

// Where a ring's words are, from the block's start.
const (
	// u64: end of the last published frame.
	offTail = 0x080
	// Two last-tag records: the end and the tag of a published frame.
	offLastTags = 0x088
	// u64: start of the first frame that is not released.
	offHead = 0x100
	// The producer's role line.
	offProducer = 0x180
	// The consumer's role line.
	offConsumer = 0x200
)

// A last-tag record, from its start.
const (
	// The value of `tail` after the frame.
	lastTagEnd = 0x0
	// The frame's tag.
	lastTagTag = 0x8
	// The length of a record.
	lastTagSize = 0x10
)

// A role's words, from the start of its line.
const (
	// The futex: 1 while the holder sleeps or is about to.
	offRoleWait = 0x0
	// The role's flags, written anew at each attach.
	offRoleFlags = 0x4
	// How often the role was attached; 0 = never.
	offRoleEpoch = 0x8
	// Of the consumer: the producer's epoch whose orderly close was delivered; 0 = none.
	offRoleCloseSeen = 0xC
)

// A region's only word, from the block's start.
const (
	// Bit 0: somebody waits; the rest counts notifications.
	offNotify = 0x080
)

// Where a topic's words are, from the block's start. Its data offset, capacity and alignment are where a ring's are.
const (
	// u32: how many slots there are, 1 to 1024.
	offTopicSlots = 0x020
	// u32: bit 0 `LOSSY_ONLY`, bit 1 `MAY_EJECT`.
	offTopicFlags = 0x024
	// u64: segment offset of the subscribers' area.
	offTopicSubsOffset = 0x028
	// u64: end of the last published frame.
	offTopicTail = 0x080
	// u64: start of the last published frame.
	offTopicLast = 0x088
	// u64: everything below `claim − capacity` is overwritten, or may be at any moment.
	offTopicClaim = 0x100
	// u64[16]: for each sixteenth of the data area a position where a frame begins in it.
	offTopicStarts = 0x180
	// The publisher's role line. Its futex word is in the subscribers' area.
	offTopicPublisher = 0x200
	// u64: nanoseconds after which a subscriber that holds the publisher back is ejected.
	offTopicEjectAfter = 0x210
)

// Where the words of a topic's subscribers' area are, from its start.
const (
	// The publisher's futex word.
	offSubsWait = 0x0000
	// u64: low half: the subscribers' futex word (bit 0 = somebody sleeps, the rest counts).
	offSubsWord = 0x0080
	// Slot 0; the others follow.
	offSubsSlots = 0x1000
)

// Where the words of a subscriber's slot are, from its start.
const (
	// u64: start of the first frame that is not released.
	offSlotCursor = 0x00
	// u64: high half: epoch.
	offSlotState = 0x08
	// u32: bit 0 `MEMBARRIER_CAPABLE`, bit 1 `FENCE_FREE`, bit 3 `LATEST`.
	offSlotFlags = 0x10
	// u32: the publisher's epoch whose orderly close was delivered, 0 = none.
	offSlotCloseSeen = 0x14
	// u64: how many messages this subscriber has lost.
	offSlotLost = 0x18
	// u64: `seq` of the frame at the cursor when the subscriber was ejected.
	offSlotEjectSeq = 0x20
	// 64 bytes: UTF-8, padded with zeros, compared whole.
	offSlotLabel = 0x40
)

// A topic's frame's fields, from its start. `len`, `type_id` and `tag` are where a ring's are; the payload follows.
const (
	// The message's number: the first has 1, and it rises.
	topicFrameSeq = 0x10
	// When it was published, or 0.
	topicFrameTime = 0x18
)

// Where the fields of a message of the handshake are.
const (
	// 8 bytes.
	handshakeOffMagic = 0x00
	// u32: `0x0A0B0C0D`.
	handshakeOffByteOrder = 0x08
	// u16: 1.
	handshakeOffMajor = 0x0C
	// u16: 0.
	handshakeOffMinor = 0x0E
	// u32.
	handshakeOffType = 0x10
	// u32: REFUSE and ACK: an error number, 0 = success.
	handshakeOffStatus = 0x14
	// u32: HELLO and WELCOME: 0, of an RPC's bus 1 ([section 20](#20-rpc)).
	handshakeOffFeaturesRequired = 0x18
	// u32: unknown bits are ignored.
	handshakeOffFeaturesOptional = 0x1C
	// u64: WELCOME: bytes of the memory that comes with it.
	handshakeOffSize = 0x20
	// u32: WELCOME of an RPC's bus: how many calls this client may have in flight, ≥ 1.
	handshakeOffMaxInFlight = 0x28
)

// Where the fields of a CALL's header are, from the payload's start.
const (
	// u32: microseconds that the call has left at commit.
	callOffTimeoutUs = 0x00
	// u32: bytes of metadata.
	callOffMetaLen = 0x04
	// u32: which method.
	callOffMethod = 0x08
	// u32: 0: one reply.
	callOffWindow = 0x0C
)

// Where the fields of a REPLY's header are, from the payload's start.
const (
	// u32: of a final REPLY how the call ended.
	replyOffStatus = 0x00
	// u32: bit 0 `ELEMENT`: an element of a stream, more follow.
	replyOffFlags = 0x04
	// u32: with status 1 the application's number.
	replyOffCode = 0x08
	// u32: bytes of metadata.
	replyOffMetaLen = 0x0C
)

// segmentKind is what a segment holds.
type segmentKind uint32

// What a segment holds.
const (
	// Shared bytes with notify and wait; block 0 is the region's.
	kindRegion segmentKind = 1
	// One ring, in block 0.
	kindRing segmentKind = 2
	// Two rings: block 0 from the listener to the connector, block 1 back.
	kindBus segmentKind = 3
	// The lock of a listening socket; no block.
	kindListener segmentKind = 4
	// One log with one publisher and many subscribers; block 0 is the topic's.
	kindTopic segmentKind = 5
)

// By number.
var kindNames = [...]string{
	kindRegion:   "region",
	kindRing:     "ring",
	kindBus:      "bus",
	kindListener: "listener",
	kindTopic:    "topic",
}

// handshakeType is what a message of the handshake is.
type handshakeType uint32

// What a message of the handshake is.
const (
	// The connector's first message.
	hello handshakeType = 1
	// The listener's answer, with the memory.
	welcome handshakeType = 2
	// The listener's answer, with the reason.
	refuse handshakeType = 3
	// The connector's last message: what it found in the memory.
	ack handshakeType = 4
)

// By number.
var handshakeTypeNames = [...]string{
	hello:   "HELLO",
	welcome: "WELCOME",
	refuse:  "REFUSE",
	ack:     "ACK",
}

// The kinds of errors.
const (
	// NotFound: nothing has this name.
	NotFound Kind = 1
	// AlreadyExists: the name is taken: by a live segment, by undelivered messages, or by something that is not Ramway's.
	AlreadyExists Kind = 2
	// InvalidArgument: an argument cannot be right; the message says which and what was expected.
	InvalidArgument Kind = 3
	// Busy: the role, slot or view is taken.
	Busy Kind = 4
	// Full: the ring or topic has no room for this message now.
	Full Kind = 5
	// Empty: the ring has no message now.
	Empty Kind = 6
	// TooLarge: the message can never fit into this ring.
	TooLarge Kind = 7
	// TimedOut: the deadline passed.
	TimedOut Kind = 8
	// Closed: the peer closed, and everything that it had sent has been received; or the name has vanished.
	Closed Kind = 9
	// Detached: this handle is closed, or it belongs to the parent of a forked process.
	Detached Kind = 10
	// PeerDead: the peer's process died without closing, and everything that it had committed has been received.
	PeerDead Kind = 11
	// Corrupt: the shared memory holds what no correct peer writes; the handle stays dead.
	Corrupt Kind = 12
	// AbiMismatch: not Ramway's, or a version, byte order, feature or page size that this side cannot use.
	AbiMismatch Kind = 13
	// PermissionDenied: the operating system, or a check of the peer's user, refuses.
	PermissionDenied Kind = 14
	// NoSpace: not enough memory or file system space.
	NoSpace Kind = 15
	// Interrupted: the wait was interrupted: by a signal whose handler asked for it, or by the program.
	Interrupted Kind = 16
	// Unsupported: this kernel, file system or setting cannot do what was asked.
	Unsupported Kind = 17
	// Os: any other error of the operating system, with its number.
	Os Kind = 18
	// Lagged: the publisher of a topic ejected this subscriber, which was too slow; the error says how many messages were
	// lost.
	Lagged Kind = 19
)

// One error per kind, to be asked for with [errors.Is].
var (
	ErrNotFound         error = NotFound
	ErrAlreadyExists    error = AlreadyExists
	ErrInvalidArgument  error = InvalidArgument
	ErrBusy             error = Busy
	ErrFull             error = Full
	ErrEmpty            error = Empty
	ErrTooLarge         error = TooLarge
	ErrTimedOut         error = TimedOut
	ErrClosed           error = Closed
	ErrDetached         error = Detached
	ErrPeerDead         error = PeerDead
	ErrCorrupt          error = Corrupt
	ErrAbiMismatch      error = AbiMismatch
	ErrPermissionDenied error = PermissionDenied
	ErrNoSpace          error = NoSpace
	ErrInterrupted      error = Interrupted
	ErrUnsupported      error = Unsupported
	ErrOs               error = Os
	ErrLagged           error = Lagged
)

// By number: the name in the format's description, and what Error says where there is no text.
var kinds = [...]struct{ name, summary string }{
	NotFound:         {"NotFound", "nothing has this name"},
	AlreadyExists:    {"AlreadyExists", "the name is taken"},
	InvalidArgument:  {"InvalidArgument", "invalid argument"},
	Busy:             {"Busy", "taken: by another handle, an open slot or a message not yet released"},
	Full:             {"Full", "there is no room for this message now"},
	Empty:            {"Empty", "nothing is there now"},
	TooLarge:         {"TooLarge", "the message is longer than this ring can ever hold"},
	TimedOut:         {"TimedOut", "the deadline passed"},
	Closed:           {"Closed", "the peer closed"},
	Detached:         {"Detached", "this handle is closed or was inherited across a fork"},
	PeerDead:         {"PeerDead", "the peer died without closing"},
	Corrupt:          {"Corrupt", "the shared memory is corrupt"},
	AbiMismatch:      {"AbiMismatch", "not a segment that this version can use"},
	PermissionDenied: {"PermissionDenied", "permission denied"},
	NoSpace:          {"NoSpace", "not enough memory or space"},
	Interrupted:      {"Interrupted", "interrupted"},
	Unsupported:      {"Unsupported", "not supported here"},
	Os:               {"Os", "operating system error"},
	Lagged:           {"Lagged", "messages were lost: the publisher ejected this subscriber"},
}

// The types of elements, as NumPy and ml_dtypes name them.
const (
	// Signed, 8 bits.
	DtypeInt8 Dtype = 0<<8 | 8
	// Signed, 16 bits.
	DtypeInt16 Dtype = 0<<8 | 16
	// Signed, 32 bits.
	DtypeInt32 Dtype = 0<<8 | 32
	// Signed, 64 bits.
	DtypeInt64 Dtype = 0<<8 | 64
	// Unsigned, 8 bits.
	DtypeUint8 Dtype = 1<<8 | 8
	// Unsigned, 16 bits.
	DtypeUint16 Dtype = 1<<8 | 16
	// Unsigned, 32 bits.
	DtypeUint32 Dtype = 1<<8 | 32
	// Unsigned, 64 bits.
	DtypeUint64 Dtype = 1<<8 | 64
	// IEEE 754 binary16.
	DtypeFloat16 Dtype = 2<<8 | 16
	// IEEE 754 binary32.
	DtypeFloat32 Dtype = 2<<8 | 32
	// IEEE 754 binary64.
	DtypeFloat64 Dtype = 2<<8 | 64
	// The upper half of a binary32.
	DtypeBfloat16 Dtype = 4<<8 | 16
	// Two binary32: real part, imaginary part.
	DtypeComplex64 Dtype = 5<<8 | 64
	// Two binary64: real part, imaginary part.
	DtypeComplex128 Dtype = 5<<8 | 128
	// One byte, 0 or 1; a peer can send any byte.
	DtypeBool Dtype = 6<<8 | 8
	// 8 bits: 3 of exponent, 4 of mantissa.
	DtypeFloat8E3M4 Dtype = 7<<8 | 8
	// 8 bits: 4 of exponent, 3 of mantissa, with infinities.
	DtypeFloat8E4M3 Dtype = 8<<8 | 8
	// 8 bits: 4 of exponent with a bias of 11, 3 of mantissa, one NaN.
	DtypeFloat8E4M3B11FNUZ Dtype = 9<<8 | 8
	// 8 bits: 4 of exponent, 3 of mantissa, no infinities.
	DtypeFloat8E4M3FN Dtype = 10<<8 | 8
	// 8 bits: 4 of exponent, 3 of mantissa, one NaN.
	DtypeFloat8E4M3FNUZ Dtype = 11<<8 | 8
	// 8 bits: 5 of exponent, 2 of mantissa, with infinities.
	DtypeFloat8E5M2 Dtype = 12<<8 | 8
	// 8 bits: 5 of exponent, 2 of mantissa, one NaN.
	DtypeFloat8E5M2FNUZ Dtype = 13<<8 | 8
	// 8 bits of exponent: a power of two.
	DtypeFloat8E8M0FNU Dtype = 14<<8 | 8
)

// dtypes is every type and its name, in the order of ABI.md.
var dtypes = []struct {
	dtype Dtype
	name  string
}{
	{DtypeInt8, "int8"},
	{DtypeInt16, "int16"},
	{DtypeInt32, "int32"},
	{DtypeInt64, "int64"},
	{DtypeUint8, "uint8"},
	{DtypeUint16, "uint16"},
	{DtypeUint32, "uint32"},
	{DtypeUint64, "uint64"},
	{DtypeFloat16, "float16"},
	{DtypeFloat32, "float32"},
	{DtypeFloat64, "float64"},
	{DtypeBfloat16, "bfloat16"},
	{DtypeComplex64, "complex64"},
	{DtypeComplex128, "complex128"},
	{DtypeBool, "bool"},
	{DtypeFloat8E3M4, "float8_e3m4"},
	{DtypeFloat8E4M3, "float8_e4m3"},
	{DtypeFloat8E4M3B11FNUZ, "float8_e4m3b11fnuz"},
	{DtypeFloat8E4M3FN, "float8_e4m3fn"},
	{DtypeFloat8E4M3FNUZ, "float8_e4m3fnuz"},
	{DtypeFloat8E5M2, "float8_e5m2"},
	{DtypeFloat8E5M2FNUZ, "float8_e5m2fnuz"},
	{DtypeFloat8E8M0FNU, "float8_e8m0fnu"},
}
