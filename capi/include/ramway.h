/*
 * Ramway: shared memory between the processes of one machine.
 *
 * Made from capi/src by `make -C capi header`: edit that, not this.
 *
 * - Every call that can fail returns a ramway_status, 0 for success; ramway_last_error() has the story.
 * - A pointer may be null only where a comment says so; elsewhere null is RAMWAY_INVALID_ARGUMENT.
 * - Time-outs are nanoseconds: RAMWAY_FOREVER (-1) waits as long as it takes, RAMWAY_TRY (0) does not wait.
 * - A handle may move between threads and is used by one of them at a time, except where its type says otherwise.
 * - In a fork's child every call on a handle of the parent is RAMWAY_DETACHED; closing it there frees memory only.
 *
 * ramway_inline.h has the calls of rings and topics without a call per message; ramway.hpp is C++.
 */

#ifndef RAMWAY_H
#define RAMWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A ramway_options with every field at its default. */
#define RAMWAY_OPTIONS_INIT {sizeof(ramway_options), 0, 0, 0, 0, 0, 0, 0, 0}

/** A ramway_topic_options with every field at its default. */
#define RAMWAY_TOPIC_OPTIONS_INIT {sizeof(ramway_topic_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/** A ramway_bus_options with every field at its default. */
#define RAMWAY_BUS_OPTIONS_INIT {sizeof(ramway_bus_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/** A ramway_inbox_options with every field at its default. */
#define RAMWAY_INBOX_OPTIONS_INIT {sizeof(ramway_inbox_options), 0, 0, 0, 0, 0, 0, 0, 0, 0}

/** A ramway_outbox_options with every field at its default. */
#define RAMWAY_OUTBOX_OPTIONS_INIT {sizeof(ramway_outbox_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/** A ramway_rpc_client_options with every field at its default. */
#define RAMWAY_RPC_CLIENT_OPTIONS_INIT {sizeof(ramway_rpc_client_options), 0, 0, 0, 0, 0, 0, 0}

/** A ramway_rpc_call_options with every field at its default. */
#define RAMWAY_RPC_CALL_OPTIONS_INIT {sizeof(ramway_rpc_call_options), 0, 0, 0, 0, 0}

/** A ramway_rpc_server_options with every field at its default. */
#define RAMWAY_RPC_SERVER_OPTIONS_INIT {sizeof(ramway_rpc_server_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}


/**
 * What a segment is. Shared bytes with notify and wait; block 0 is the region's.
 */
#define RAMWAY_KIND_REGION 1

/**
 * What a segment is. One ring, in block 0.
 */
#define RAMWAY_KIND_RING 2

/**
 * What a segment is. The lock of a listening socket; no block.
 */
#define RAMWAY_KIND_LISTENER 4

/**
 * What a segment is. One log with one publisher and many subscribers; block 0 is the topic's.
 */
#define RAMWAY_KIND_TOPIC 5

/**
 * A tensor has at most this many dimensions.
 */
#define RAMWAY_NDIM_MAX 32

/**
 * The type id of a message that is a tensor: `ramway_message_tensor` reads it.
 */
#define RAMWAY_TYPE_ID_TENSOR 4294901761

/**
 * The code of int8, int16, int32, int64.
 */
#define RAMWAY_DTYPE_INT 0

/**
 * The code of uint8, uint16, uint32, uint64.
 */
#define RAMWAY_DTYPE_UINT 1

/**
 * The code of float16, float32, float64.
 */
#define RAMWAY_DTYPE_FLOAT 2

/**
 * The upper half of a binary32.
 */
#define RAMWAY_DTYPE_BFLOAT 4

/**
 * The code of complex64, complex128.
 */
#define RAMWAY_DTYPE_COMPLEX 5

/**
 * One byte, 0 or 1; a peer can send any byte.
 */
#define RAMWAY_DTYPE_BOOL 6

/**
 * 8 bits: 3 of exponent, 4 of mantissa.
 */
#define RAMWAY_DTYPE_FLOAT8_E3M4 7

/**
 * 8 bits: 4 of exponent, 3 of mantissa, with infinities.
 */
#define RAMWAY_DTYPE_FLOAT8_E4M3 8

/**
 * 8 bits: 4 of exponent with a bias of 11, 3 of mantissa, one NaN.
 */
#define RAMWAY_DTYPE_FLOAT8_E4M3B11FNUZ 9

/**
 * 8 bits: 4 of exponent, 3 of mantissa, no infinities.
 */
#define RAMWAY_DTYPE_FLOAT8_E4M3FN 10

/**
 * 8 bits: 4 of exponent, 3 of mantissa, one NaN.
 */
#define RAMWAY_DTYPE_FLOAT8_E4M3FNUZ 11

/**
 * 8 bits: 5 of exponent, 2 of mantissa, with infinities.
 */
#define RAMWAY_DTYPE_FLOAT8_E5M2 12

/**
 * 8 bits: 5 of exponent, 2 of mantissa, one NaN.
 */
#define RAMWAY_DTYPE_FLOAT8_E5M2FNUZ 13

/**
 * 8 bits of exponent: a power of two.
 */
#define RAMWAY_DTYPE_FLOAT8_E8M0FNU 14

/**
 * RPC methods from here up are Ramway's own: an application's are below.
 */
#define RAMWAY_METHOD_RESERVED 4294901760

/**
 * How a server says that a call has ended. The call succeeded.
 */
#define RAMWAY_RPC_OK 0

/**
 * How a server says that a call has ended. The handler replied with an error of its own: a number and a text.
 */
#define RAMWAY_RPC_APPLICATION 1

/**
 * How a server says that a call has ended. The server has no such method. The call was not run.
 */
#define RAMWAY_RPC_NO_SUCH_METHOD 2

/**
 * How a server says that a call has ended. The call's time was over before it was begun. It was not run.
 */
#define RAMWAY_RPC_TIMED_OUT 3

/**
 * How a server says that a call has ended. The call was cancelled.
 */
#define RAMWAY_RPC_CANCELLED 4

/**
 * How a server says that a call has ended. A limit of the server was reached. The call was not run.
 */
#define RAMWAY_RPC_OVERLOADED 5

/**
 * How a server says that a call has ended. The call was run, but its reply is longer than the ring or than the
 * server's limit of bytes.
 */
#define RAMWAY_RPC_REPLY_TOO_LARGE 6

/**
 * How a server says that a call has ended. The server is shutting down. The call was not run.
 */
#define RAMWAY_RPC_DRAINING 7

/**
 * How a server says that a call has ended. The handler failed in a way that it did not mean to: a panic, an exception.
 */
#define RAMWAY_RPC_HANDLER_FAILED 8

/**
 * As a time-out: wait as long as it takes. Any other negative number is `RAMWAY_INVALID_ARGUMENT`.
 */
#define RAMWAY_FOREVER -1

/**
 * As a time-out: do not wait.
 */
#define RAMWAY_TRY 0

/**
 * How a handle waits: spin a bounded time, then sleep.
 */
#define RAMWAY_WAIT_DEFAULT 0

/**
 * How a handle waits: never sleep. The shortest latency, for one whole CPU.
 */
#define RAMWAY_WAIT_SPIN 1

/**
 * How a handle waits: spin for up to 75 us, less where waits have been long, then sleep. The default.
 */
#define RAMWAY_WAIT_HYBRID 2

/**
 * How a handle waits: sleep at once. The least CPU time.
 */
#define RAMWAY_WAIT_BLOCK 3

/**
 * Option: start anew even if undelivered messages (or a persistent region's bytes) are there. For the `create` calls
 * only: the others refuse it.
 */
#define RAMWAY_DISCARD 1

/**
 * Option: the name stays when the last handle is gone.
 */
#define RAMWAY_PERSISTENT 2

/**
 * Option: a path on a disk file system is fine. Without it, it is `RAMWAY_UNSUPPORTED`.
 */
#define RAMWAY_ALLOW_DISK 4

/**
 * Option: keep the memory from being swapped out (`mlock`).
 */
#define RAMWAY_LOCK_MEMORY 8

/**
 * Option: huge pages, verified after mapping.
 */
#define RAMWAY_HUGE_PAGES 16

/**
 * Option: touch every page when it is mapped.
 */
#define RAMWAY_PREFAULT 32

/**
 * Option: take the memory from the NUMA node `numa_node`.
 */
#define RAMWAY_NUMA_NODE 64

/**
 * Option: do not register this process with membarrier (up to 12 ms, once, in a process with threads). Sending then
 * costs a fence a message.
 */
#define RAMWAY_NO_MEMBARRIER 128

/**
 * Option: open a region, or a subscriber that the publisher does not wait for, without the right to write.
 */
#define RAMWAY_READ_ONLY 256

/**
 * Bus option: the listener's side only sends.
 */
#define RAMWAY_BUS_SEND_ONLY 512

/**
 * Bus option: the listener's side only receives.
 */
#define RAMWAY_BUS_RECV_ONLY 1024

/**
 * Topic option: a new topic takes no reliable subscriber, so that its publisher never waits. An existing one must be such.
 */
#define RAMWAY_LOSSY_ONLY 2048

/**
 * Topic option: the publisher of a new topic may eject a reliable subscriber that holds it up (`eject_after_ns`, which asks
 * for this). Reliable subscribers then get copies, not views. An existing topic must be such.
 */
#define RAMWAY_MAY_EJECT 4096

/**
 * Publisher option: every message says when it was sent, by the wall clock (some 25 ns a message).
 */
#define RAMWAY_TIMESTAMPS 8192

/**
 * Option of a reliable subscriber with a label: its cursor stays when it closes or dies, and the next one with the label
 * goes on there. The publisher waits for it all the while, also when nobody is there (`ramway_subscriber_unsubscribe`).
 */
#define RAMWAY_DURABLE 16384

/**
 * How a subscriber reads: the publisher waits for it, and it sees every message. The default.
 */
#define RAMWAY_RELIABLE 0

/**
 * How a subscriber reads: the publisher never waits for it. It sees every message that it is fast enough for, and each says
 * how many were lost before it.
 */
#define RAMWAY_LOSSY 1

/**
 * How a subscriber reads: the publisher never waits for it, and it reads the newest message.
 */
#define RAMWAY_LATEST 2

/**
 * Where a subscriber begins: a reliable one at the oldest message that is intact, any other after the newest.
 */
#define RAMWAY_FROM_DEFAULT 0

/**
 * Where a subscriber begins: at the oldest message that is intact.
 */
#define RAMWAY_FROM_OLDEST 1

/**
 * Where a subscriber begins: after the newest message.
 */
#define RAMWAY_FROM_NOW 2

/**
 * Where a subscriber begins: with up to `start_number` messages that were published before, as many as are intact.
 */
#define RAMWAY_HISTORY 3

/**
 * Where a subscriber begins: after the message whose number is `start_number`, or at the oldest intact one; the first message
 * then says how many were lost. A number that the topic has not reached begins after the newest message.
 */
#define RAMWAY_AFTER_SEQ 4

/**
 * `ramway_clean` also removes what nobody uses but somebody could want: undelivered messages, the unseen end of a
 * stream, persistent segments.
 */
#define RAMWAY_CLEAN_UNDELIVERED 1

/**
 * `ramway_clean` only says what it would do.
 */
#define RAMWAY_CLEAN_DRY_RUN 2

/**
 * What `ramway_clean` did with a file: removed it; with `RAMWAY_CLEAN_DRY_RUN` it would have.
 */
#define RAMWAY_CLEAN_REMOVED 1

/**
 * What `ramway_clean` did with a file: left it, and says why.
 */
#define RAMWAY_CLEAN_KEPT 2

/**
 * What `ramway_clean` did with a file: left it alone, as it is not Ramway's.
 */
#define RAMWAY_CLEAN_NOT_RAMWAY 3

/**
 * What `ramway_clean` did with a file: failed, and says why.
 */
#define RAMWAY_CLEAN_FAILED 4

/**
 * Kind of a source: a receiver or a subscriber, ready when `ramway_recv` with `RAMWAY_TRY` has something else to say than
 * `RAMWAY_EMPTY`.
 */
#define RAMWAY_SOURCE_RECEIVER 1

/**
 * Kind of a source: a sender or a publisher, ready when `ramway_reserve` of `len` bytes with `RAMWAY_TRY` has something else to
 * say than `RAMWAY_FULL`.
 */
#define RAMWAY_SOURCE_ROOM 2

/**
 * Kind of a source: a region, ready when `ramway_region_wait` with `RAMWAY_TRY` has something else to say than `RAMWAY_EMPTY`.
 */
#define RAMWAY_SOURCE_REGION 3

/**
 * Kind of a source: a listener, ready when `ramway_listener_accept` with `RAMWAY_TRY` is worth a call.
 */
#define RAMWAY_SOURCE_LISTENER 4

/**
 * Kind of a source: a descriptor of any kind, ready when it is readable, or has an error or a hang-up.
 */
#define RAMWAY_SOURCE_FD 5

/**
 * What an inbox gives: a message, as `ramway_incoming.left` says. Its `data` is valid until `ramway_inbox_release`.
 */
#define RAMWAY_LEFT_NOT 0

/**
 * What an inbox gives: the producer has gone. It closed.
 */
#define RAMWAY_LEFT_CLOSED 1

/**
 * What an inbox gives: the producer has gone. Its process died.
 */
#define RAMWAY_LEFT_DIED 2

/**
 * What an inbox gives: the producer has gone. It wrote what no correct producer writes; its other messages are not read.
 */
#define RAMWAY_LEFT_CORRUPT 3

/**
 * Outbox option: keep a copy of each message until it is given back, so that a worker that writes into what it was given
 * cannot change what another one gets. That takes `prefetch` messages of memory for each worker.
 */
#define RAMWAY_COPIES 1

/**
 * In `ramway_rpc_reply.status`: the server did not say how the call ended; `error` says why.
 */
#define RAMWAY_RPC_NO_STATUS 4294967295

/**
 * The private state that `ramway_inline.h` knows. Where it was compiled against another one, its functions call the
 * library for everything: right, but slower. Raised with every change of the fields or of their meaning.
 */
#define RAMWAY_INLINE_LAYOUT 1381452035

/**
 * The same for the private state of a publisher and of a subscriber.
 */
#define RAMWAY_INLINE_TOPIC_LAYOUT 1381454850

/**
 * What a call returns: 0 for success, else one of the error numbers that all of Ramway's languages share. New
 * numbers may be added at the end.
 */
typedef enum ramway_status {
    /**
     * Success.
     */
    RAMWAY_OK = 0,
    /**
     * Nothing has this name.
     */
    RAMWAY_NOT_FOUND = 1,
    /**
     * The name is taken: by a live segment, by undelivered messages, or by something that is not Ramway's.
     */
    RAMWAY_ALREADY_EXISTS = 2,
    /**
     * An argument cannot be right, a null pointer for example; the message says which and what was expected.
     */
    RAMWAY_INVALID_ARGUMENT = 3,
    /**
     * The role is held by another handle; or a slot is open (`ramway_reserve`), or a message or batch is not released
     * (`ramway_recv`), and the call would need a second one.
     */
    RAMWAY_BUSY = 4,
    /**
     * The ring or topic has no room for this message now, and the call was told not to wait.
     */
    RAMWAY_FULL = 5,
    /**
     * There is no message (connection, notification) now, and the call was told not to wait.
     */
    RAMWAY_EMPTY = 6,
    /**
     * The message can never fit into this ring, or (`ramway_recv_into`) not into this buffer.
     */
    RAMWAY_TOO_LARGE = 7,
    /**
     * The time-out passed.
     */
    RAMWAY_TIMED_OUT = 8,
    /**
     * The peer closed, and everything that it had sent has been received. On a named ring a successor may come.
     */
    RAMWAY_CLOSED = 9,
    /**
     * This handle belongs to the parent of a forked process.
     */
    RAMWAY_DETACHED = 10,
    /**
     * The peer's process died without closing, and everything that it had committed has been received.
     */
    RAMWAY_PEER_DEAD = 11,
    /**
     * The shared memory holds what no correct peer writes; the handle stays dead.
     */
    RAMWAY_CORRUPT = 12,
    /**
     * Not Ramway's, or a version, byte order, feature or page size that this side cannot use.
     */
    RAMWAY_ABI_MISMATCH = 13,
    /**
     * The operating system, or a check of the peer's user, refuses.
     */
    RAMWAY_PERMISSION_DENIED = 14,
    /**
     * Not enough memory or file system space.
     */
    RAMWAY_NO_SPACE = 15,
    /**
     * A signal handler ran while the call waited, and the handle was told to stop for that.
     */
    RAMWAY_INTERRUPTED = 16,
    /**
     * This kernel, file system or setting cannot do what was asked.
     */
    RAMWAY_UNSUPPORTED = 17,
    /**
     * Any other error of the operating system (`ramway_last_errno` has its number), or a bug in Ramway that was caught
     * before it could cross into C.
     */
    RAMWAY_OS = 18,
    /**
     * The publisher of a topic ejected this subscriber, which was too slow; `ramway_last_lost` says how many messages
     * were lost.
     */
    RAMWAY_LAGGED = 19,
} ramway_status;

/**
 * A full-duplex connection to one process: a ring each way, and a socket whose hang-up says that the peer is gone.
 */
typedef struct ramway_bus ramway_bus;

/**
 * Receives from any number of producers, each with a ring of its own: a slow consumer pushes back on each producer by itself,
 * and one that dies takes nothing of the others with it. A producer is an ordinary `ramway_bus_connect` and its sender, in
 * any language.
 *
 * `ramway_inbox_wake` is for any thread. While one thread is in another call, a second one gets `RAMWAY_BUSY`.
 */
typedef struct ramway_inbox ramway_inbox;

/**
 * Accepts connections, each a bus of its own. All calls but closing may be made from any number of threads at once.
 */
typedef struct ramway_listener ramway_listener;

/**
 * Gives each message to one of many workers: to one that sleeps until there is work, else to the one with the fewest messages.
 * A worker is an ordinary `ramway_bus_connect` and its receiver, in any language, and has done its task when it releases the
 * message. What a worker that died or closed had not given back goes to another one: at least once.
 *
 * `ramway_outbox_wake` is for any thread. While one thread is in another call, a second one gets `RAMWAY_BUSY`.
 */
typedef struct ramway_outbox ramway_outbox;

/**
 * The receiving end of a ring: one per ring, in the whole system. Or a subscriber of a topic, one of many, for which these
 * calls are the same: its messages have a number, a time, and how many were lost before them, which
 * `ramway_subscriber_recv` gives too.
 */
typedef struct ramway_receiver ramway_receiver;

/**
 * Named bytes that any number of processes have mapped, with notify and wait. All calls but closing may be made from
 * any number of threads at once.
 */
typedef struct ramway_region ramway_region;

/**
 * Calls the methods of an RPC server. Replies are received, time limits looked at and cancelled calls told to the server inside
 * its calls: who has calls under way and waits elsewhere calls `ramway_rpc_poll` now and then, or when `ramway_rpc_fd` and
 * `ramway_rpc_due_ns` say so. It does not connect again by itself, and repeats no call by itself.
 *
 * `ramway_rpc_wake` is for any thread. While one thread is in another call, a second one gets `RAMWAY_BUSY`.
 */
typedef struct ramway_rpc_client ramway_rpc_client;

/**
 * A call as its handler sees it: the request, and how it is answered.
 *
 * Of `ramway_rpc_server_method` it is valid until the handler returns. Of `ramway_rpc_server_deferred` it is valid until it
 * is answered, and may move between threads; one of them at a time uses it.
 */
typedef struct ramway_rpc_request ramway_rpc_request;

/**
 * Serves calls of any number of clients at a name, in `ramway_rpc_server_run` or `ramway_rpc_server_poll`. A client that
 * writes what no correct client writes is dropped, and no other is disturbed. The calls of a client that is gone are
 * cancelled.
 *
 * `ramway_rpc_server_shutdown` and `ramway_rpc_server_wake` are for any thread. While one thread is in another call, a
 * second one gets `RAMWAY_BUSY`, and so does a handler.
 */
typedef struct ramway_rpc_server ramway_rpc_server;

/**
 * Waits for any of many sources at once: messages, room, notifications, connections, descriptors. It keeps nothing of them
 * between two calls but who was served last, by index.
 *
 * `ramway_select_wake` is for any thread. While one thread is in another call, a second one gets `RAMWAY_BUSY`.
 */
typedef struct ramway_select ramway_select;

/**
 * The sending end of a ring: one per ring, in the whole system. Or the publisher of a topic, for which these calls are the
 * same: where they speak of the receiver, read "the slowest reliable subscriber", and a publisher never gets
 * `RAMWAY_CLOSED` or `RAMWAY_PEER_DEAD` because of one.
 */
typedef struct ramway_sender ramway_sender;

/**
 * Bytes to send: a piece of a message, or one message of a batch.
 */
typedef struct ramway_bytes {
    /**
     * May be null if `len` is 0.
     */
    const void *data;
    /**
     * How many.
     */
    size_t len;
} ramway_bytes;

/**
 * A received message. `data` points into the shared memory and is the caller's to read until `ramway_release`.
 */
typedef struct ramway_message {
    /**
     * The payload, on a multiple of the ring's alignment. Not null, also if `len` is 0.
     */
    const void *data;
    /**
     * Bytes of payload.
     */
    size_t len;
    /**
     * The sender's tag, 0 if it gave none.
     */
    uint64_t tag;
    /**
     * What the sender said the payload is.
     */
    uint32_t type_id;
} ramway_message;

/**
 * What a tensor's elements are: DLPack's type code and the bits of one element.
 */
typedef struct ramway_dtype {
    /**
     * `RAMWAY_DTYPE_INT` and so on.
     */
    uint8_t code;
    /**
     * 8 to 128.
     */
    uint8_t bits;
} ramway_dtype;

/**
 * A received tensor. `data` points into the message that it was read from; the rest are copies.
 */
typedef struct ramway_tensor {
    /**
     * The elements in C order (the last dimension varies fastest), little-endian, on a multiple of 64 bytes.
     */
    const void *data;
    /**
     * Bytes of all elements.
     */
    size_t nbytes;
    /**
     * The dimensions, the outermost first; 0 from `ndim` on.
     */
    uint64_t shape[RAMWAY_NDIM_MAX];
    /**
     * How many dimensions: 0 for a single element without any.
     */
    uint32_t ndim;
    /**
     * What the elements are.
     */
    struct ramway_dtype dtype;
} ramway_tensor;

/**
 * What can be asked for when a ring or region is made or opened. Zero in any field is its default, and so is a null
 * pointer in place of the whole.
 *
 * `ramway_options options = RAMWAY_OPTIONS_INIT; options.capacity = 1 << 20;`
 */
typedef struct ramway_options {
    /**
     * `sizeof(ramway_options)`: `RAMWAY_OPTIONS_INIT` sets it. A library that knows more fields takes their
     * defaults; one that knows fewer refuses (`RAMWAY_UNSUPPORTED`) if one that it does not know is not zero.
     */
    size_t size;
    /**
     * Rings: bytes of data, rounded up to a power of two of at least a page. Default 1 MiB; when opening: any.
     */
    uint64_t capacity;
    /**
     * Rings: every payload begins on a multiple of this, a power of two from 16 to 4096. Default 16; when opening: any.
     */
    uint32_t align;
    /**
     * `RAMWAY_DISCARD` and the other options, or-ed together.
     */
    uint32_t flags;
    /**
     * The file's permission bits. Default 0600.
     */
    uint32_t mode;
    /**
     * `RAMWAY_WAIT_SPIN` and so on.
     */
    uint32_t wait_policy;
    /**
     * How long opening waits for a name that is not there yet, and for a role that is still held, in nanoseconds.
     * Default: not at all. `RAMWAY_FOREVER`: as long as it takes.
     */
    int64_t timeout_ns;
    /**
     * Taken if `RAMWAY_NUMA_NODE` is among the flags.
     */
    uint32_t numa_node;
    /**
     * 0.
     */
    uint32_t reserved;
} ramway_options;

/**
 * What can be asked for when a topic is made or opened. Zero in any field is its default, and so is a null pointer in place
 * of the whole. An option of the other side is `RAMWAY_INVALID_ARGUMENT`.
 *
 * `ramway_topic_options options = RAMWAY_TOPIC_OPTIONS_INIT; options.policy = RAMWAY_LOSSY;`
 */
typedef struct ramway_topic_options {
    /**
     * `sizeof(ramway_topic_options)`: `RAMWAY_TOPIC_OPTIONS_INIT` sets it. Works as in `ramway_options`.
     */
    size_t size;
    /**
     * Bytes of data, frame headers (32 bytes a message) included, rounded up to a power of two of at least a page. A
     * message takes at most half of it. Default 1 MiB; when opening: any.
     */
    uint64_t capacity;
    /**
     * Every payload begins on a multiple of this, a power of two from 32 to 4096. Default 32; when opening: any.
     */
    uint32_t align;
    /**
     * How many reliable subscribers there can be at a time, 1 to 1024. Default 32; when opening: any. (Others take a free
     * slot of the upper half, so that they are seen, and do without where there is none.)
     */
    uint32_t slots;
    /**
     * `RAMWAY_DISCARD` and the other options, or-ed together.
     */
    uint32_t flags;
    /**
     * The file's permission bits. Default 0600.
     */
    uint32_t mode;
    /**
     * `RAMWAY_WAIT_SPIN` and so on.
     */
    uint32_t wait_policy;
    /**
     * Subscribers: `RAMWAY_RELIABLE`, `RAMWAY_LOSSY` or `RAMWAY_LATEST`.
     */
    uint32_t policy;
    /**
     * How long opening waits for a name that is not there yet, and for a role that is still held, in nanoseconds.
     * Default: not at all. `RAMWAY_FOREVER`: as long as it takes.
     */
    int64_t timeout_ns;
    /**
     * Publishers: a reliable subscriber that has kept it waiting for this many nanoseconds without reading anything is
     * ejected; its next call is `RAMWAY_LAGGED`, and it begins anew at the oldest message. Default: the publisher waits for
     * it as long as its process lives.
     */
    int64_t eject_after_ns;
    /**
     * Subscribers: a name for those who watch, and what `RAMWAY_DURABLE` finds the cursor by: 1 to 64 bytes of UTF-8. A
     * reliable subscriber's is its alone while it is attached (`RAMWAY_BUSY`). Default: null, no label.
     */
    const char *label;
    /**
     * For `RAMWAY_HISTORY` and `RAMWAY_AFTER_SEQ`; else 0.
     */
    uint64_t start_number;
    /**
     * Subscribers: `RAMWAY_FROM_OLDEST` and so on.
     */
    uint32_t start;
    /**
     * Taken if `RAMWAY_NUMA_NODE` is among the flags.
     */
    uint32_t numa_node;
} ramway_topic_options;

/**
 * The publisher of a topic: one per topic, in the whole system. Everything that a sender can do (`ramway_send`,
 * `ramway_reserve`, `ramway_send_tensor`, `ramway_flush`, `ramway_sender_close` and so on) it can do too.
 */
typedef struct ramway_sender ramway_publisher;

/**
 * A subscriber of a topic: one of many, each with its own policy. Everything that a receiver can do (`ramway_recv`,
 * `ramway_recv_batch`, `ramway_release`, `ramway_receiver_close` and so on) it can do too.
 *
 * A reliable subscriber's messages are views of the shared memory, where the topic was not made with `RAMWAY_MAY_EJECT`.
 * All others are copies that the handle keeps until `ramway_release`.
 */
typedef struct ramway_receiver ramway_subscriber;

/**
 * A subscriber, as the publisher sees it at one moment. All pointers are valid during the callback only.
 */
typedef struct ramway_subscriber_info {
    /**
     * `sizeof(ramway_subscriber_info)` of the library: a newer one may know more fields, at the end.
     */
    size_t size_of_struct;
    /**
     * Its label; empty if it has none. Never null.
     */
    const char *label;
    /**
     * How far a reliable one is behind: bytes that are published and not released, frame headers and padding included. -1
     * for another policy, which does not say.
     */
    int64_t lag_bytes;
    /**
     * How far a reliable one is behind: messages that are published and not released. -1 for another policy.
     */
    int64_t lag_messages;
    /**
     * Messages that it has lost.
     */
    uint64_t lost;
    /**
     * For how many nanoseconds it has kept the publisher from going on without reading anything; -1 if it does not.
     */
    int64_t blocks_for_ns;
    /**
     * Its slot.
     */
    uint32_t slot;
    /**
     * `RAMWAY_RELIABLE` and so on.
     */
    uint32_t policy;
    /**
     * How often the slot was taken.
     */
    uint32_t epoch;
    /**
     * Its cursor stays when it goes.
     */
    bool durable;
    /**
     * Its process lives and has it open.
     */
    bool alive;
    /**
     * The publisher has ejected it, and it has not begun anew.
     */
    bool ejected;
} ramway_subscriber_info;

/**
 * A received message of a topic: what a ring's says, and what only a topic's does.
 */
typedef struct ramway_topic_message {
    /**
     * The payload, its type id and tag.
     */
    struct ramway_message message;
    /**
     * Its number: the topic's first message has 1, and each later one at least 1 more than the one before.
     */
    uint64_t seq;
    /**
     * When it was sent, in nanoseconds since 1970 by the publisher's wall clock; 0 without `RAMWAY_TIMESTAMPS`.
     */
    uint64_t time;
    /**
     * How many messages this subscriber has lost right before it.
     */
    uint64_t lost;
} ramway_topic_message;

/**
 * What can be asked for when a listener is made or a bus connected. Zero in any field is its default, and so is a
 * null pointer in place of the whole.
 */
typedef struct ramway_bus_options {
    /**
     * `sizeof(ramway_bus_options)`: `RAMWAY_BUS_OPTIONS_INIT` sets it. Works as in `ramway_options`.
     */
    size_t size;
    /**
     * Listeners: bytes of the ring to the connecting side, rounded up to a power of two of at least a page.
     * Default 1 MiB.
     */
    uint64_t capacity;
    /**
     * Listeners: bytes of the ring from the connecting side. Default: as `capacity`.
     */
    uint64_t capacity_back;
    /**
     * Listeners: every payload begins on a multiple of this, a power of two from 16 to 4096. Default 16.
     */
    uint32_t align;
    /**
     * `RAMWAY_NO_MEMBARRIER`; for listeners also `RAMWAY_BUS_SEND_ONLY` or `RAMWAY_BUS_RECV_ONLY`: default is both
     * directions.
     */
    uint32_t flags;
    /**
     * Listeners: the socket's permission bits. Default 0600, or 0666 if `allow_uids` names others.
     */
    uint32_t mode;
    /**
     * `RAMWAY_WAIT_SPIN` and so on.
     */
    uint32_t wait_policy;
    /**
     * Users beside the own one: those that a listener serves, or that a connecting side trusts.
     */
    const uint32_t *allow_uids;
    /**
     * How many `allow_uids` there are.
     */
    uint32_t allow_uid_count;
    /**
     * Listeners: how many may wait to be accepted at a time. Default 128.
     */
    uint32_t backlog;
    /**
     * Listeners: how long a handshake may take, in nanoseconds. Default 1 s. Connecting: how long to try, which
     * includes waiting for a listener that is not there yet. Default 10 s. `RAMWAY_FOREVER`: as long as it takes.
     */
    int64_t timeout_ns;
} ramway_bus_options;

/**
 * A file of the Ramway directory, as `ramway_ls` shows it. All pointers are valid during the callback only.
 */
typedef struct ramway_segment {
    /**
     * `sizeof(ramway_segment)` of the library: a newer one may know more fields, at the end.
     */
    size_t size_of_struct;
    /**
     * Its name in the directory.
     */
    const char *name;
    /**
     * Its path.
     */
    const char *path;
    /**
     * `RAMWAY_OK`, or why it cannot be read as a segment; then the rest is 0.
     */
    enum ramway_status status;
    /**
     * The words for `status`; null if that is `RAMWAY_OK`.
     */
    const char *error;
    /**
     * `RAMWAY_KIND_RING` and so on.
     */
    uint32_t kind;
    /**
     * Rings and topics: what payloads are aligned to.
     */
    uint32_t align;
    /**
     * The whole file in bytes.
     */
    uint64_t size;
    /**
     * Rings, regions and topics: bytes of data.
     */
    uint64_t capacity;
    /**
     * Rings: bytes that are not released, headers and padding included. Regions: bytes that were asked for.
     */
    uint64_t used;
    /**
     * Rings: messages that are not released, as far as they could be counted while the ring moved; else 0.
     */
    uint64_t undelivered;
    /**
     * Somebody uses it.
     */
    bool in_use;
    /**
     * The name stays when the last user goes.
     */
    bool persistent;
    /**
     * Nobody uses it: left by processes that died, or waiting for its next user.
     */
    bool stale;
    /**
     * It has a sender; of a listener: somebody listens; of a topic: somebody publishes.
     */
    bool producer_held;
    /**
     * It has a receiver. Of a topic always false.
     */
    bool consumer_held;
} ramway_segment;

/**
 * What `ramway_select_wait` waits for: made by `ramway_source_receiver` and its siblings, so that the compiler checks that the
 * handle is of the kind. It may be used again and again, as long as the handle is open.
 */
typedef struct ramway_source {
    /**
     * `RAMWAY_SOURCE_RECEIVER` and so on.
     */
    uint32_t kind;
    /**
     * With `RAMWAY_SOURCE_FD`: the descriptor.
     */
    int fd;
    /**
     * With the other kinds: the handle.
     */
    void *handle;
    /**
     * With `RAMWAY_SOURCE_ROOM`: the bytes of payload that there shall be room for.
     */
    size_t len;
} ramway_source;

/**
 * What can be asked for when an inbox is made. Zero in any field is its default, and so is a null pointer in place of the
 * whole.
 */
typedef struct ramway_inbox_options {
    /**
     * `sizeof(ramway_inbox_options)`: `RAMWAY_INBOX_OPTIONS_INIT` sets it. Works as in `ramway_options`.
     */
    size_t size;
    /**
     * Bytes of the ring of every producer, rounded up to a power of two of at least a page. Default 1 MiB.
     */
    uint64_t capacity;
    /**
     * Every payload begins on a multiple of this, a power of two from 16 to 4096. Default 16.
     */
    uint32_t align;
    /**
     * How many producers there may be at a time; one beyond is refused (`RAMWAY_BUSY`). Default 128.
     */
    uint32_t max_peers;
    /**
     * The socket's permission bits. Default 0600, or 0666 if `allow_uids` names others.
     */
    uint32_t mode;
    /**
     * `RAMWAY_WAIT_SPIN` and so on.
     */
    uint32_t wait_policy;
    /**
     * Users beside the own one that may connect.
     */
    const uint32_t *allow_uids;
    /**
     * How many `allow_uids` there are.
     */
    uint32_t allow_uid_count;
    /**
     * 0.
     */
    uint32_t reserved;
    /**
     * How long a handshake may take, in nanoseconds. Default 1 s. `RAMWAY_FOREVER`: as long as it takes.
     */
    int64_t timeout_ns;
} ramway_inbox_options;

/**
 * A process that is connected to an inbox or to an outbox.
 */
typedef struct ramway_peer {
    /**
     * Counts up from 1 with each that connects.
     */
    uint64_t id;
    /**
     * Its effective user.
     */
    uint32_t uid;
    /**
     * Its process when it connected, 0 if it has no number here. It says who asked; numbers are used again.
     */
    uint32_t pid;
} ramway_peer;

/**
 * What an inbox gives: a message, or that a producer has gone.
 */
typedef struct ramway_incoming {
    /**
     * Who sent it, or has gone.
     */
    struct ramway_peer peer;
    /**
     * The message; of a producer that has gone null and zeros.
     */
    struct ramway_message message;
    /**
     * `RAMWAY_LEFT_NOT` for a message; else how the producer has gone, after its last message. Its place is free.
     */
    uint32_t left;
} ramway_incoming;

/**
 * What can be asked for when an outbox is made. Zero in any field is its default, and so is a null pointer in place of the
 * whole.
 */
typedef struct ramway_outbox_options {
    /**
     * `sizeof(ramway_outbox_options)`: `RAMWAY_OUTBOX_OPTIONS_INIT` sets it. Works as in `ramway_options`.
     */
    size_t size;
    /**
     * Bytes of the ring of every worker, rounded up to a power of two of at least a page. Default 1 MiB.
     */
    uint64_t capacity;
    /**
     * Every payload begins on a multiple of this, a power of two from 16 to 4096. Default 16.
     */
    uint32_t align;
    /**
     * How many workers there may be at a time; one beyond is refused (`RAMWAY_BUSY`). Default 128.
     */
    uint32_t max_peers;
    /**
     * The socket's permission bits. Default 0600, or 0666 if `allow_uids` names others.
     */
    uint32_t mode;
    /**
     * `RAMWAY_WAIT_SPIN` and so on.
     */
    uint32_t wait_policy;
    /**
     * Users beside the own one that may connect.
     */
    const uint32_t *allow_uids;
    /**
     * How many `allow_uids` there are.
     */
    uint32_t allow_uid_count;
    /**
     * `RAMWAY_COPIES`, or 0.
     */
    uint32_t flags;
    /**
     * How long a handshake may take, in nanoseconds. Default 1 s. `RAMWAY_FOREVER`: as long as it takes.
     */
    int64_t timeout_ns;
    /**
     * How many messages a worker may have at a time. Default 1. With more it need not wait for the next one, and another
     * that is free may wait meanwhile.
     */
    uint32_t prefetch;
    /**
     * To how many workers a message is given before `ramway_outbox_take_undelivered` gives it. Default 3.
     */
    uint32_t max_deliveries;
} ramway_outbox_options;

/**
 * A message that no worker has given back.
 */
typedef struct ramway_undelivered {
    /**
     * The payload: valid until the next `ramway_outbox_take_undelivered`, and as long as the handle. Not null, also if `len` is
     * 0.
     */
    const void *data;
    /**
     * Bytes of payload.
     */
    size_t len;
    /**
     * As it was sent with.
     */
    uint64_t tag;
    /**
     * As it was sent with.
     */
    uint32_t type_id;
    /**
     * To how many workers it was given.
     */
    uint32_t deliveries;
} ramway_undelivered;

/**
 * How a call ended, or an element of its stream. A call of this library that takes one fills it however it ends: free it by
 * `ramway_rpc_reply_free` also after a failure, whose text it may hold.
 */
typedef struct ramway_rpc_reply {
    /**
     * The reply's bytes: a copy, valid until `ramway_rpc_reply_free`; in a callback valid until it returns. Null where there is
     * no reply.
     */
    const void *body;
    /**
     * Bytes of body.
     */
    size_t len;
    /**
     * The reply's metadata: bytes that the application defines.
     */
    const void *meta;
    /**
     * Bytes of metadata.
     */
    size_t meta_len;
    /**
     * What went wrong, with a final 0: with `RAMWAY_RPC_APPLICATION` and `RAMWAY_RPC_HANDLER_FAILED` what the server wrote.
     * Never null; empty where nothing went wrong.
     */
    const char *text;
    /**
     * `RAMWAY_RPC_OK` and so on: what the server said. `RAMWAY_RPC_NO_STATUS` if this side ended the call, or the connection
     * is over.
     */
    uint32_t status;
    /**
     * With `RAMWAY_RPC_APPLICATION` the application's number; else 0.
     */
    uint32_t code;
    /**
     * With `RAMWAY_RPC_NO_STATUS`: why there is none; else `RAMWAY_OK`.
     */
    enum ramway_status error;
    /**
     * Of a call that failed: whether the server may have begun it. If not, it can be made again without being made twice.
     */
    bool may_have_run;
    /**
     * This is an element of a stream, and it goes on. Without it a stream with `RAMWAY_RPC_OK` is complete.
     */
    bool more;
    /**
     * What `ramway_rpc_reply_free` frees.
     */
    void *owner;
} ramway_rpc_reply;

/**
 * What can be asked for when a client connects. Zero in any field is its default, and so is a null pointer in place of the
 * whole.
 */
typedef struct ramway_rpc_client_options {
    /**
     * `sizeof(ramway_rpc_client_options)`: `RAMWAY_RPC_CLIENT_OPTIONS_INIT` sets it. Works as in `ramway_options`.
     */
    size_t size;
    /**
     * Bytes of replies, headers and metadata included, that nobody has taken yet, all calls together. A reply beyond fails its
     * call (`RAMWAY_TOO_LARGE`). Default 4 times the ring's capacity.
     */
    uint64_t max_buffered;
    /**
     * Users beside the own one whose servers will do.
     */
    const uint32_t *allow_uids;
    /**
     * How many `allow_uids` there are.
     */
    uint32_t allow_uid_count;
    /**
     * `RAMWAY_WAIT_SPIN` and so on: how calls wait.
     */
    uint32_t wait_policy;
    /**
     * How long to try, which includes waiting for a server that is not there yet, in nanoseconds. Default 10 s.
     * `RAMWAY_FOREVER`: as long as it takes.
     */
    int64_t timeout_ns;
    /**
     * `RAMWAY_NO_MEMBARRIER`, or 0.
     */
    uint32_t flags;
    /**
     * 0.
     */
    uint32_t reserved;
} ramway_rpc_client_options;

/**
 * What can be asked for with a call. Zero in any field is its default, and so is a null pointer in place of the whole.
 */
typedef struct ramway_rpc_call_options {
    /**
     * `sizeof(ramway_rpc_call_options)`: `RAMWAY_RPC_CALL_OPTIONS_INIT` sets it. Works as in `ramway_options`.
     */
    size_t size;
    /**
     * The call's time limit in nanoseconds, from the moment of the call: here, and of what is left when the call is sent, at the
     * server. Default, and `RAMWAY_FOREVER`: none.
     */
    int64_t timeout_ns;
    /**
     * Metadata of the request: bytes that the application defines (a trace, a token). Default none.
     */
    const void *meta;
    /**
     * Bytes of metadata.
     */
    size_t meta_len;
    /**
     * Of a stream: how many elements may be under way. Default 16.
     */
    uint32_t window;
    /**
     * 0.
     */
    uint32_t reserved;
} ramway_rpc_call_options;

/**
 * What can be asked for when a server is made. Zero in any field is its default, and so is a null pointer in place of the whole.
 */
typedef struct ramway_rpc_server_options {
    /**
     * `sizeof(ramway_rpc_server_options)`: `RAMWAY_RPC_SERVER_OPTIONS_INIT` sets it. Works as in `ramway_options`.
     */
    size_t size;
    /**
     * Bytes of both rings of every client, rounded up to a power of two of at least a page. Default 1 MiB. The longest
     * request and the longest reply are 32 bytes shorter.
     */
    uint64_t capacity;
    /**
     * Every payload begins on a multiple of this, a power of two from 16 to 4096. Default 16.
     */
    uint32_t align;
    /**
     * How many clients there may be at a time; one beyond is refused (`RAMWAY_BUSY`). Default 128. A client that is gone
     * counts until its handlers have ended.
     */
    uint32_t max_clients;
    /**
     * The socket's permission bits. Default 0600, or 0666 if `allow_uids` names others.
     */
    uint32_t mode;
    /**
     * `RAMWAY_WAIT_SPIN` and so on.
     */
    uint32_t wait_policy;
    /**
     * Users beside the own one that may connect.
     */
    const uint32_t *allow_uids;
    /**
     * How many `allow_uids` there are.
     */
    uint32_t allow_uid_count;
    /**
     * How many calls a client may have in flight, up to 1048576; those beyond wait in the client. Default 1024.
     */
    uint32_t max_in_flight;
    /**
     * How long a handshake may take, in nanoseconds. Default 1 s. `RAMWAY_FOREVER`: as long as it takes.
     */
    int64_t timeout_ns;
    /**
     * Bytes of requests and replies that are copied for one client at a time. A request beyond is answered with
     * `RAMWAY_RPC_OVERLOADED`, a reply beyond with `RAMWAY_RPC_REPLY_TOO_LARGE`. Default 4 times the capacity.
     */
    uint64_t max_bytes;
} ramway_rpc_server_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * One sentence for a status number, in English, forever valid. Never null: an unknown number says that it is one.
 *
 * Any thread.
 */
const char *ramway_strerror(int status);

/**
 * The name of a status number as the documentation spells it, `"PeerDead"` for example, forever valid. Never null.
 *
 * Any thread.
 */
const char *ramway_status_name(int status);

/**
 * What the last failed call of the calling thread has to say: what was tried, on which name, what was expected and
 * what to do. Never null. Valid until the next call that fails in this thread. Calls that succeed leave it alone, so
 * read it only after a failure.
 */
const char *ramway_last_error(void);

/**
 * The status of the last failed call of the calling thread, for calls that return something else; `RAMWAY_OK` if
 * none has failed.
 */
enum ramway_status ramway_last_status(void);

/**
 * The operating system's `errno` behind the last failed call of the calling thread, 0 if it had no part in it.
 */
int ramway_last_errno(void);

/**
 * How many messages were lost, where the last failed call of the calling thread was `RAMWAY_LAGGED`; else 0.
 */
uint64_t ramway_last_lost(void);

/**
 * Sends a message: copies it into the ring and makes it visible at once. It is delivered even if this process is
 * killed right after.
 *
 * `type_id` is the application's, below 0xFFFF0000; `tag` too (a correlation id, a time stamp, a key; 0 if unused).
 * `timeout_ns` is how long to wait for room: `RAMWAY_FOREVER`, `RAMWAY_TRY` or nanoseconds. Allocates nothing, and
 * enters the kernel only if it waits or wakes somebody who does.
 *
 * `RAMWAY_FULL` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`, `RAMWAY_TOO_LARGE`, `RAMWAY_CLOSED`, `RAMWAY_PEER_DEAD`,
 * `RAMWAY_BUSY` while a slot is open, `RAMWAY_CORRUPT`, `RAMWAY_DETACHED`: nothing of this message was sent.
 */
enum ramway_status ramway_send(struct ramway_sender *sender,
                               uint32_t type_id,
                               uint64_t tag,
                               const void *data,
                               size_t len,
                               int64_t timeout_ns);

/**
 * `ramway_send` of one message that is gathered from `count` pieces.
 */
enum ramway_status ramway_send_vectored(struct ramway_sender *sender,
                                        uint32_t type_id,
                                        uint64_t tag,
                                        const struct ramway_bytes *pieces,
                                        size_t count,
                                        int64_t timeout_ns);

/**
 * Sends `count` messages, all with the same type and tag, and makes them visible together, or earlier where the ring fills up and it has to wait for
 * room. `*sent` (may be null) is how many were sent.
 *
 * Fails only if the first message fails. A later failure ends the batch, and the next call meets the error. The
 * time-out is for the whole batch.
 */
enum ramway_status ramway_send_batch(struct ramway_sender *sender,
                                     uint32_t type_id,
                                     uint64_t tag,
                                     const struct ramway_bytes *messages,
                                     size_t count,
                                     int64_t timeout_ns,
                                     size_t *sent);

/**
 * Opens a slot: room for one message of up to `len` bytes, at `*out`, to be written in place and then committed or
 * aborted. The room holds whatever an earlier message left there. One slot at a time: `RAMWAY_BUSY` otherwise.
 *
 * Nothing of it is visible before the commit. `timeout_ns` and errors as for `ramway_send`; on failure `*out` is
 * null.
 */
enum ramway_status ramway_reserve(struct ramway_sender *sender, size_t len, int64_t timeout_ns, void **out);

/**
 * Sends the first `len` bytes of the open slot as a message, visible at once.
 *
 * `RAMWAY_INVALID_ARGUMENT` if no slot is open, `len` is more than was reserved, or `type_id` is reserved: the slot,
 * if any, stays open.
 */
enum ramway_status ramway_commit(struct ramway_sender *sender,
                                 uint32_t type_id,
                                 uint64_t tag,
                                 size_t len);

/**
 * `ramway_commit`, but the message becomes visible only with the next `ramway_flush` or flushed message, or when
 * the sender has to wait, finds the ring full, or closes.
 */
enum ramway_status ramway_commit_unflushed(struct ramway_sender *sender,
                                           uint32_t type_id,
                                           uint64_t tag,
                                           size_t len);

/**
 * Gives the open slot up; nothing of it remains. Succeeds if none is open.
 */
enum ramway_status ramway_abort(struct ramway_sender *sender);

/**
 * Makes everything that was committed unflushed visible. Never waits.
 */
enum ramway_status ramway_flush(struct ramway_sender *sender);

/**
 * Flushes, tells the receiver that this was all, and frees the handle, whatever it returns. An open slot is given up.
 *
 * `RAMWAY_CORRUPT` or `RAMWAY_DETACHED` if the handle was dead of that; `RAMWAY_INVALID_ARGUMENT` (and nothing
 * happens) for the sender of a bus: close the bus.
 */
enum ramway_status ramway_sender_close(struct ramway_sender *sender);

/**
 * Frees the handle *without* telling the receiver that this was all: it gets `RAMWAY_PEER_DEAD` after what was
 * flushed, as if this process had died. For a sender that cannot go on, so that half a stream does not pass for a whole one.
 * `RAMWAY_INVALID_ARGUMENT` (and nothing happens) for the sender of a bus: split it first.
 */
enum ramway_status ramway_sender_abandon(struct ramway_sender *sender);

/**
 * Bytes of the data area; a message takes 16 bytes more than its payload (of a topic 32), rounded up to the alignment. 0
 * for a null handle.
 */
uint64_t ramway_sender_capacity(const struct ramway_sender *sender);

/**
 * Every payload begins on a multiple of this many bytes. 0 for a null handle.
 */
uint32_t ramway_sender_align(const struct ramway_sender *sender);

/**
 * The longest payload that ever fits, min(capacity - 16, 2^31 - 17): it fits whenever the ring is empty. Of a topic
 * min(capacity / 2 - 32, 2^31 - 33). 0 for a null handle.
 */
uint64_t ramway_sender_max_message_len(const struct ramway_sender *sender);

/**
 * Bytes, headers and padding included, that the receiver has not released, or the slowest reliable subscriber; can be stale
 * when it returns. 0 for a null handle.
 */
uint64_t ramway_sender_len(const struct ramway_sender *sender);

/**
 * Whether a receiver is attached and its process lives: one system call, of a publisher one for each reliable subscriber
 * (one of them is enough). A stopped process is alive.
 */
bool ramway_sender_is_peer_alive(const struct ramway_sender *sender);

/**
 * How often a receiver has attached, 0 = never yet. A change means that a successor took over. Of a publisher: how often a
 * subscriber came, went, or began anew.
 */
uint32_t ramway_sender_peer_epoch(const struct ramway_sender *sender);

/**
 * How often a sender has attached, this one included: 1 = the first. 0 for a null handle.
 */
uint32_t ramway_sender_epoch(const struct ramway_sender *sender);

/**
 * The tag of the last message that is visible to receivers, by whichever sender of this ring: a restarted sender
 * asks this where to go on. False, and `*tag` untouched, before the first message.
 */
bool ramway_sender_last_tag(const struct ramway_sender *sender, uint64_t *tag);

/**
 * How this handle waits for room from now on: `RAMWAY_WAIT_SPIN` and so on.
 */
enum ramway_status ramway_sender_set_wait_policy(struct ramway_sender *sender, uint32_t policy);

/**
 * A descriptor that becomes readable when `ramway_send` or `ramway_reserve` with `RAMWAY_TRY` has something else to say
 * than the last `RAMWAY_FULL`: there is room, or the receiver is gone. For poll, epoll and event loops: not to be read
 * or closed, and valid as long as the handle. Made at the first call; from then on calls that wait use it too. Try
 * first, and poll only after `RAMWAY_FULL`: only that makes it unreadable.
 *
 * -1 on failure, of which `ramway_last_status` says why: `RAMWAY_UNSUPPORTED`, `RAMWAY_OS`, `RAMWAY_DETACHED`.
 */
int ramway_sender_readiness_fd(struct ramway_sender *sender);

/**
 * Whether a call that waits returns `RAMWAY_INTERRUPTED` when a signal handler ran. Default: it goes on waiting.
 */
enum ramway_status ramway_sender_set_interruptible(struct ramway_sender *sender, bool yes);

/**
 * Waits until a receiver is attached that has not closed and whose process lives; `*epoch` (may be null) is then how
 * often one has attached. At once if there is one already; `timeout_ns` of 0 checks once. After `RAMWAY_PEER_DEAD` or
 * `RAMWAY_CLOSED` on a named ring this waits for the successor. A publisher waits for a reliable subscriber.
 *
 * `RAMWAY_TIMED_OUT`; `RAMWAY_CLOSED` or `RAMWAY_PEER_DEAD` at once where an end is final (a bus, a pair);
 * `RAMWAY_CLOSED` if the ring's name was removed; `RAMWAY_INTERRUPTED`, `RAMWAY_DETACHED`.
 */
enum ramway_status ramway_sender_wait_for_peer(struct ramway_sender *sender,
                                               int64_t timeout_ns,
                                               uint32_t *epoch);

/**
 * Any thread, while the handle is open: the call that waits in another thread now, or, if none does, the next one that
 * would, returns `RAMWAY_INTERRUPTED`, unless what it waits for is there or has ended.
 */
enum ramway_status ramway_sender_wake(const struct ramway_sender *sender);

/**
 * The name that the ring or bus was opened by, valid as long as the handle; null for one without a name.
 */
const char *ramway_sender_name(const struct ramway_sender *sender);

/**
 * Takes the next message, in place: `out->data` is valid until `ramway_release`, which gives it back. One message or
 * batch at a time: `RAMWAY_BUSY` before that. If this process is killed before it releases, the next receiver of a
 * named ring gets the message again; of a topic the next one with the same label, where it is durable.
 *
 * `timeout_ns` is how long to wait: `RAMWAY_FOREVER`, `RAMWAY_TRY` or nanoseconds. Allocates nothing, and enters the
 * kernel only if it waits or wakes somebody who does. A peer that is not trusted could rewrite a message while it is
 * read: `ramway_recv_into` is safe against that.
 *
 * `RAMWAY_EMPTY` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`; after the last message `RAMWAY_CLOSED` if the sender
 * closed and `RAMWAY_PEER_DEAD` if it died, which on a named ring or a topic end when a successor attaches; `RAMWAY_LAGGED`
 * (of a topic, see `ramway_subscriber_recv`); `RAMWAY_CORRUPT`, `RAMWAY_DETACHED`. `*out` is then untouched.
 */
enum ramway_status ramway_recv(struct ramway_receiver *receiver,
                               int64_t timeout_ns,
                               struct ramway_message *out);

/**
 * Takes up to `max` messages, in place, which `ramway_release` gives back together; `*count` is how many. Waits for
 * the first one only, so at least one comes with `RAMWAY_OK`. Otherwise as `ramway_recv`, and `*count` is 0.
 */
enum ramway_status ramway_recv_batch(struct ramway_receiver *receiver,
                                     int64_t timeout_ns,
                                     struct ramway_message *out,
                                     size_t max,
                                     size_t *count);

/**
 * Gives the message or batch that was received last back to the sender. Succeeds if there is none.
 */
enum ramway_status ramway_release(struct ramway_receiver *receiver);

/**
 * Copies the next message to `buffer`, which has room for `size` bytes, and releases it. Each byte is read once, so
 * a peer that rewrites what it sent can do no harm. `out` (may be null) gets its length, type and tag, and
 * `out->data` is `buffer`.
 *
 * `RAMWAY_TOO_LARGE` if it is longer than `size`: it stays the next message, and `out->len` says how long it is.
 * Otherwise as `ramway_recv`.
 */
enum ramway_status ramway_recv_into(struct ramway_receiver *receiver,
                                    int64_t timeout_ns,
                                    void *buffer,
                                    size_t size,
                                    struct ramway_message *out);

/**
 * Tells the sender that nothing more will be read, and frees the handle, whatever it returns. What is not released
 * stays for the next receiver of a named ring.
 *
 * `RAMWAY_CORRUPT` or `RAMWAY_DETACHED` if the handle was dead of that; `RAMWAY_INVALID_ARGUMENT` (and nothing
 * happens) for the receiver of a bus: close the bus.
 */
enum ramway_status ramway_receiver_close(struct ramway_receiver *receiver);

/**
 * Bytes of the data area. 0 for a null handle.
 */
uint64_t ramway_receiver_capacity(const struct ramway_receiver *receiver);

/**
 * Every payload begins on a multiple of this many bytes. 0 for a null handle.
 */
uint32_t ramway_receiver_align(const struct ramway_receiver *receiver);

/**
 * Bytes, headers and padding included, that are sent and not released; can be stale when it returns. 0 for a null
 * handle.
 */
uint64_t ramway_receiver_len(const struct ramway_receiver *receiver);

/**
 * Whether a sender is attached and its process lives: one system call. A stopped process is alive.
 */
bool ramway_receiver_is_peer_alive(const struct ramway_receiver *receiver);

/**
 * How often a sender has attached, 0 = never yet. A change means that a successor took over.
 */
uint32_t ramway_receiver_peer_epoch(const struct ramway_receiver *receiver);

/**
 * How often a receiver has attached, this one included: 1 = the first. Of a subscriber, how often its slot was taken. 0 for
 * a null handle.
 */
uint32_t ramway_receiver_epoch(const struct ramway_receiver *receiver);

/**
 * How this handle waits for messages from now on: `RAMWAY_WAIT_SPIN` and so on.
 */
enum ramway_status ramway_receiver_set_wait_policy(struct ramway_receiver *receiver, uint32_t policy);

/**
 * A descriptor that becomes readable when `ramway_recv` with `RAMWAY_TRY` has something to say: a message, or that the
 * sender is gone. Otherwise as `ramway_sender_readiness_fd`: only `RAMWAY_EMPTY` makes it unreadable.
 */
int ramway_receiver_readiness_fd(struct ramway_receiver *receiver);

/**
 * Whether a call that waits returns `RAMWAY_INTERRUPTED` when a signal handler ran. Default: it goes on waiting.
 */
enum ramway_status ramway_receiver_set_interruptible(struct ramway_receiver *receiver, bool yes);

/**
 * Waits until a sender is attached that has not closed and whose process lives; `*epoch` (may be null) is then how
 * often one has attached. At once if there is one already; `timeout_ns` of 0 checks once. After `RAMWAY_PEER_DEAD` or
 * `RAMWAY_CLOSED` on a named ring this waits for the successor.
 *
 * `RAMWAY_TIMED_OUT`; `RAMWAY_CLOSED` or `RAMWAY_PEER_DEAD` at once where an end is final (a bus, a pair);
 * `RAMWAY_CLOSED` if the ring's name was removed; `RAMWAY_INTERRUPTED`, `RAMWAY_DETACHED`.
 */
enum ramway_status ramway_receiver_wait_for_peer(struct ramway_receiver *receiver,
                                                 int64_t timeout_ns,
                                                 uint32_t *epoch);

/**
 * Any thread, while the handle is open: the call that waits in another thread now, or, if none does, the next one that
 * would, returns `RAMWAY_INTERRUPTED`, unless what it waits for is there or has ended.
 */
enum ramway_status ramway_receiver_wake(const struct ramway_receiver *receiver);

/**
 * The name that the ring or bus was opened by, valid as long as the handle; null for one without a name.
 */
const char *ramway_receiver_name(const struct ramway_receiver *receiver);

/**
 * Sends a tensor: its elements are copied, in C order, behind a header with their type and shape. `shape` has `ndim`
 * dimensions, the outermost first (it may be null if `ndim` is 0, a single element); `nbytes` is for certainty: what
 * type and shape amount to. It becomes visible at once, as a message with the type id `RAMWAY_TYPE_ID_TENSOR`.
 *
 * `RAMWAY_INVALID_ARGUMENT` for a type that there is not, more than `RAMWAY_NDIM_MAX` dimensions, another `nbytes`,
 * or 2^63 bytes and more. `RAMWAY_TOO_LARGE` where the longest message is less than `nbytes + 8 * ndim + 71`. The
 * others of `ramway_send`, and `timeout_ns` as there.
 */
enum ramway_status ramway_send_tensor(struct ramway_sender *sender,
                                      struct ramway_dtype dtype,
                                      const uint64_t *shape,
                                      size_t ndim,
                                      uint64_t tag,
                                      const void *data,
                                      size_t nbytes,
                                      int64_t timeout_ns);

/**
 * Opens a slot for a tensor: `*out` is where its elements are to be written in place, on a multiple of 64 bytes, and
 * `*nbytes` (may be null) how many bytes they take. To be committed by `ramway_commit_tensor`, or aborted by
 * `ramway_abort`; one slot of any kind at a time.
 *
 * Errors as for `ramway_send_tensor`, `timeout_ns` as for `ramway_send`; on failure `*out` is null.
 */
enum ramway_status ramway_reserve_tensor(struct ramway_sender *sender,
                                         struct ramway_dtype dtype,
                                         const uint64_t *shape,
                                         size_t ndim,
                                         int64_t timeout_ns,
                                         void **out,
                                         size_t *nbytes);

/**
 * Sends the tensor whose slot is open, visible at once. `RAMWAY_INVALID_ARGUMENT` if none is.
 */
enum ramway_status ramway_commit_tensor(struct ramway_sender *sender, uint64_t tag);

/**
 * `ramway_commit_tensor`, but visible only as `ramway_commit_unflushed` has it.
 */
enum ramway_status ramway_commit_tensor_unflushed(struct ramway_sender *sender, uint64_t tag);

/**
 * Reads a message as a tensor, in place: `out->data` points into the message and is valid as long as that.
 *
 * `RAMWAY_INVALID_ARGUMENT`, with what is wrong, if it is none: its type id is another, or its bytes are not what a
 * tensor's are. `*out` is then untouched, the message is as it was and the ring is fine. Every number was checked:
 * `shape`, `dtype` and `nbytes` agree. Not checked is that `data` lies on a multiple of 64: in a copy of a message
 * (`ramway_recv_into`) it need not.
 */
enum ramway_status ramway_message_tensor(const struct ramway_message *message, struct ramway_tensor *out);

/**
 * Makes the ring `name` and takes its sending end.
 *
 * `name` is `[A-Za-z0-9._-]`, 1 to 80 of them, not starting with a dot, not ending in `.sock`, below the directory
 * `RAMWAY_DIR` (`/dev/shm/ramway-UID`); with a `/` in it, it is a path. `options` may be null. On failure `*out` is
 * null.
 *
 * `RAMWAY_ALREADY_EXISTS` if somebody holds the name or undelivered messages are there (`RAMWAY_DISCARD` drops
 * them); `RAMWAY_NO_SPACE`, `RAMWAY_UNSUPPORTED`, `RAMWAY_PERMISSION_DENIED`, `RAMWAY_INVALID_ARGUMENT`.
 */
enum ramway_status ramway_sender_create(const char *name,
                                        const struct ramway_options *options,
                                        struct ramway_sender **out);

/**
 * Takes the sending end of the ring `name`, also of one that dead processes left, and goes on after its last
 * message. `options.timeout_ns` is how long to wait for a ring that is not there yet.
 *
 * `RAMWAY_NOT_FOUND`; `RAMWAY_BUSY` if it has a sender; `RAMWAY_INVALID_ARGUMENT` if a capacity or alignment was
 * asked for that it does not have; `RAMWAY_ABI_MISMATCH` if it is something else.
 */
enum ramway_status ramway_sender_open(const char *name,
                                      const struct ramway_options *options,
                                      struct ramway_sender **out);

/**
 * `ramway_sender_open`, or `ramway_sender_create` if there is no such ring: for two sides of which either may start
 * first.
 */
enum ramway_status ramway_sender_open_or_create(const char *name,
                                                const struct ramway_options *options,
                                                struct ramway_sender **out);

/**
 * Makes the ring `name` and takes its receiving end. As `ramway_sender_create`.
 */
enum ramway_status ramway_receiver_create(const char *name,
                                          const struct ramway_options *options,
                                          struct ramway_receiver **out);

/**
 * Takes the receiving end of the ring `name`, and goes on with the first message that no receiver has released. As
 * `ramway_sender_open`; `RAMWAY_BUSY` if it has a receiver.
 */
enum ramway_status ramway_receiver_open(const char *name,
                                        const struct ramway_options *options,
                                        struct ramway_receiver **out);

/**
 * `ramway_receiver_open`, or `ramway_receiver_create` if there is no such ring.
 */
enum ramway_status ramway_receiver_open_or_create(const char *name,
                                                  const struct ramway_options *options,
                                                  struct ramway_receiver **out);

/**
 * Makes a ring without a name, for two threads of this process. `capacity` is rounded up to a power of two of at
 * least a page. On failure both are null.
 */
enum ramway_status ramway_ring_pair(uint64_t capacity,
                                    struct ramway_sender **sender,
                                    struct ramway_receiver **receiver);

/**
 * Writes a ring's header into memory that the caller has mapped `MAP_SHARED`, from a file that both sides can map:
 * a header page, then as much data as the largest power of two that fits, which is `*capacity` (may be null).
 *
 * The memory begins on a page, is all the caller's own during this call, and is not used by any ring. `align` is a
 * power of two from 16 to 4096, or 0 for 16.
 */
enum ramway_status ramway_ring_format(void *memory, size_t len, uint32_t align, uint64_t *capacity);

/**
 * Takes the sending end of the ring in memory that the caller has mapped `MAP_SHARED` (`ramway_ring_format`). The
 * caller sees to it that there is one sender, and that the memory stays mapped at least until this returns: the
 * handle has mappings of its own. Nobody can tell whether the peer's process lives, only whether it closed.
 */
enum ramway_status ramway_sender_attach(void *memory, size_t len, struct ramway_sender **out);

/**
 * Takes the receiving end of the ring in memory that the caller has mapped; as `ramway_sender_attach`.
 */
enum ramway_status ramway_receiver_attach(void *memory, size_t len, struct ramway_receiver **out);

/**
 * Makes a ring without a name for a child process, takes no role of it, and gives its descriptor, which the caller
 * closes. It is close-on-exec: clear that in the child. Each process takes its role with `ramway_sender_from_fd` or
 * `ramway_receiver_from_fd`. Of `options` (may be null) capacity, align, huge pages and NUMA node have a meaning here.
 * Nothing is left behind when the last process goes. On failure `*fd` is -1.
 */
enum ramway_status ramway_ring_unnamed(const struct ramway_options *options,
                                       int *fd);

/**
 * Takes the sending end of the ring behind a descriptor (`ramway_ring_unnamed`), which stays the caller's and may be
 * closed after that. `options` may be null. `RAMWAY_BUSY` if it has a sender; `RAMWAY_INVALID_ARGUMENT`,
 * `RAMWAY_ABI_MISMATCH` or `RAMWAY_CORRUPT` for what is no such ring.
 */
enum ramway_status ramway_sender_from_fd(int fd,
                                         const struct ramway_options *options,
                                         struct ramway_sender **out);

/**
 * Takes the receiving end of the ring behind a descriptor; as `ramway_sender_from_fd`.
 */
enum ramway_status ramway_receiver_from_fd(int fd,
                                           const struct ramway_options *options,
                                           struct ramway_receiver **out);

/**
 * Makes the topic `name` and becomes its publisher. Names are as for `ramway_sender_create`; `options` may be null. The
 * name goes when the last handle does, unless a durable subscriber has not read everything, or the topic is persistent.
 * On failure `*out` is null.
 *
 * `RAMWAY_ALREADY_EXISTS` if somebody uses the name, or if it holds what a durable subscriber has not read
 * (`RAMWAY_DISCARD` drops it); `RAMWAY_NO_SPACE`, `RAMWAY_UNSUPPORTED`, `RAMWAY_PERMISSION_DENIED`,
 * `RAMWAY_INVALID_ARGUMENT`, also for a subscriber's option.
 */
enum ramway_status ramway_publisher_create(const char *name,
                                           const struct ramway_topic_options *options,
                                           ramway_publisher **out);

/**
 * Becomes the publisher of the topic `name`, also of one that dead processes left, and goes on after its last message.
 * `options.timeout_ns` is how long to wait for a topic that is not there yet.
 *
 * `RAMWAY_NOT_FOUND`; `RAMWAY_BUSY` if it has a publisher; `RAMWAY_INVALID_ARGUMENT` if the topic is not as was asked or the
 * name is no topic's, or for a subscriber's option; `RAMWAY_UNSUPPORTED` for `eject_after_ns` where the topic was made without `RAMWAY_MAY_EJECT`;
 * `RAMWAY_ABI_MISMATCH` if it is not Ramway's.
 */
enum ramway_status ramway_publisher_open(const char *name,
                                         const struct ramway_topic_options *options,
                                         ramway_publisher **out);

/**
 * `ramway_publisher_open`, or `ramway_publisher_create` if there is no such topic.
 */
enum ramway_status ramway_publisher_open_or_create(const char *name,
                                                   const struct ramway_topic_options *options,
                                                   ramway_publisher **out);

/**
 * Makes the topic `name` and subscribes to it. As `ramway_publisher_create` and `ramway_subscriber_open`.
 */
enum ramway_status ramway_subscriber_create(const char *name,
                                            const struct ramway_topic_options *options,
                                            ramway_subscriber **out);

/**
 * Subscribes to the topic `name`, also to one that dead processes left. `options.timeout_ns` is how long to wait for a topic
 * that is not there yet.
 *
 * `RAMWAY_NOT_FOUND`; `RAMWAY_BUSY` if every slot is taken or a live subscriber has the label; `RAMWAY_UNSUPPORTED` for a
 * reliable one where the topic was made with `RAMWAY_LOSSY_ONLY`; `RAMWAY_PERMISSION_DENIED` for one that may not write the
 * file (`RAMWAY_READ_ONLY`); `RAMWAY_INVALID_ARGUMENT` if the topic is not as was asked or the name is no topic's, for a
 * publisher's option, or for one that the policy does not have; `RAMWAY_ABI_MISMATCH` if it is not Ramway's.
 */
enum ramway_status ramway_subscriber_open(const char *name,
                                          const struct ramway_topic_options *options,
                                          ramway_subscriber **out);

/**
 * `ramway_subscriber_open`, or `ramway_subscriber_create` if there is no such topic.
 */
enum ramway_status ramway_subscriber_open_or_create(const char *name,
                                                    const struct ramway_topic_options *options,
                                                    ramway_subscriber **out);

/**
 * Calls `each` for every subscriber that has a slot, with `user` as it is: every reliable one, and of the others those that
 * could take one. A system call for each subscriber.
 *
 * `RAMWAY_INVALID_ARGUMENT` for the sender of a ring.
 */
enum ramway_status ramway_publisher_subscribers(const ramway_publisher *publisher,
                                                void (*each)(const struct ramway_subscriber_info *subscriber,
                                                             void *user),
                                                void *user);

/**
 * Waits until `count` reliable subscribers are attached and their processes live. At once if they are there already;
 * `timeout_ns` of 0 checks once. Others do not count: the publisher does not wait for them.
 *
 * `RAMWAY_TIMED_OUT`; `RAMWAY_CLOSED` if the topic's name was removed, so that nobody can come; `RAMWAY_INVALID_ARGUMENT` if
 * the topic has fewer slots than that, or for the sender of a ring; `RAMWAY_INTERRUPTED`, `RAMWAY_DETACHED`.
 */
enum ramway_status ramway_publisher_wait_for_subscribers(ramway_publisher *publisher,
                                                         size_t count,
                                                         int64_t timeout_ns);

/**
 * The number of the last message that is visible to subscribers, by whichever publisher; 0 before the first, and for what is
 * no publisher.
 */
uint64_t ramway_publisher_seq(const ramway_publisher *publisher);

/**
 * Lets the next message's number be `lost` higher than it would be: every subscriber then counts that many messages as lost
 * before it. For bridges and replays, whose own source has a gap.
 *
 * `RAMWAY_INVALID_ARGUMENT` if no number would be left, or for the sender of a ring; `RAMWAY_CORRUPT`, `RAMWAY_DETACHED`.
 */
enum ramway_status ramway_publisher_skip_seq(ramway_publisher *publisher,
                                             uint64_t lost);

/**
 * `ramway_recv` of a subscriber, with the message's number and time, and how many were lost before it. The same time-outs and
 * errors; also `RAMWAY_LAGGED`, once, if the publisher has ejected this subscriber: `ramway_last_lost` is then how many were
 * lost, and the next call goes on with the oldest message. `RAMWAY_INVALID_ARGUMENT` for the receiver of a ring.
 */
enum ramway_status ramway_subscriber_recv(ramway_subscriber *subscriber,
                                          int64_t timeout_ns,
                                          struct ramway_topic_message *out);

/**
 * `ramway_recv_batch` of a subscriber; what is more about it, as for `ramway_subscriber_recv`.
 */
enum ramway_status ramway_subscriber_recv_batch(ramway_subscriber *subscriber,
                                                int64_t timeout_ns,
                                                struct ramway_topic_message *out,
                                                size_t max,
                                                size_t *count);

/**
 * `ramway_recv_into` of a subscriber; what is more about it, as for `ramway_subscriber_recv`. For one that the publisher does
 * not wait for this is the shortest way: one copy, from the shared memory to `buffer`.
 */
enum ramway_status ramway_subscriber_recv_into(ramway_subscriber *subscriber,
                                               int64_t timeout_ns,
                                               void *buffer,
                                               size_t size,
                                               struct ramway_topic_message *out);

/**
 * Copies the newest message to `buffer`, which has room for `size` bytes, whatever was received before: the same one again
 * if there is no newer one. Never waits, allocates nothing, and writes nothing that others share. `out` (may be null) gets
 * what is said of it, and `out->message.data` is `buffer`; `out->lost` is 0.
 *
 * Under every policy. What `ramway_recv` gives next stays as it was, but for `RAMWAY_LATEST`: there it waits for a message
 * that is newer than this one.
 *
 * `RAMWAY_EMPTY` before the first message, and where the publisher overwrites the newest one each of 16 times that this copies
 * it (what none does that sends less often than a message is copied); `RAMWAY_TOO_LARGE` if it is longer than `size`, and `out->message.len` says how
 * long it is; `RAMWAY_INVALID_ARGUMENT` for the receiver of a ring; `RAMWAY_CORRUPT`, `RAMWAY_DETACHED`.
 */
enum ramway_status ramway_subscriber_latest(ramway_subscriber *subscriber,
                                            void *buffer,
                                            size_t size,
                                            struct ramway_topic_message *out);

/**
 * Waits for a message that is newer than the one that `ramway_subscriber_latest` or this gave last, and copies the newest
 * one: `ramway_subscriber_recv_into` for a subscriber with `RAMWAY_LATEST`, in the words of a value that changes.
 *
 * `RAMWAY_UNSUPPORTED` under another policy, which receives in order.
 */
enum ramway_status ramway_subscriber_wait_newer(ramway_subscriber *subscriber,
                                                int64_t timeout_ns,
                                                void *buffer,
                                                size_t size,
                                                struct ramway_topic_message *out);

/**
 * How it reads: `RAMWAY_RELIABLE`, `RAMWAY_LOSSY` or `RAMWAY_LATEST`. `UINT32_MAX` for what is no subscriber.
 */
uint32_t ramway_subscriber_policy(const ramway_subscriber *subscriber);

/**
 * The label that it was opened with, valid as long as the handle; null without one, and for what is no subscriber.
 */
const char *ramway_subscriber_label(const ramway_subscriber *subscriber);

/**
 * Messages that this handle has lost so far: the sum of what its messages say. 0 for what is no subscriber.
 */
uint64_t ramway_subscriber_lost(const ramway_subscriber *subscriber);

/**
 * How far it is behind: bytes that are published and not released, frame headers and padding included, and messages that
 * are published and not received. Either pointer may be null. Can be stale when it returns.
 *
 * `RAMWAY_INVALID_ARGUMENT` for the receiver of a ring.
 */
enum ramway_status ramway_subscriber_lag(const ramway_subscriber *subscriber,
                                         uint64_t *bytes,
                                         uint64_t *messages);

/**
 * Moves on so that the next message is the newest one; `*skipped` (may be null) is how many that leaves out. They do not
 * count as lost. Messages that are not released are released.
 *
 * `RAMWAY_UNSUPPORTED` for `RAMWAY_LATEST`, which reads the newest one anyway; `RAMWAY_INVALID_ARGUMENT` for the receiver of
 * a ring; `RAMWAY_CORRUPT`, `RAMWAY_DETACHED`.
 */
enum ramway_status ramway_subscriber_skip_to_newest(ramway_subscriber *subscriber,
                                                    uint64_t *skipped);

/**
 * Closes a subscriber for good and frees the handle: the label and the cursor of a durable one are forgotten, and the
 * publisher no longer waits for it. For any other it is `ramway_receiver_close`.
 *
 * `RAMWAY_INVALID_ARGUMENT` (and nothing happens) for the receiver of a ring; else as `ramway_receiver_close`.
 */
enum ramway_status ramway_subscriber_unsubscribe(ramway_subscriber *subscriber);

/**
 * Begins to listen at `name` (as in `ramway_sender_create`; a path is the socket's). `options` may be null. On failure
 * `*out` is null.
 *
 * `RAMWAY_ALREADY_EXISTS` if a live listener has the name, or something that is not Ramway's to remove.
 */
enum ramway_status ramway_listener_bind(const char *name,
                                        const struct ramway_bus_options *options,
                                        struct ramway_listener **out);

/**
 * Waits for a process to connect, and gives the bus to it. One that is silent, breaks the handshake or is another
 * user's is refused and does not disturb the others. `timeout_ns` as in `ramway_recv`. On failure `*out` is null.
 *
 * `RAMWAY_EMPTY` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`, `RAMWAY_NO_SPACE`.
 */
enum ramway_status ramway_listener_accept(const struct ramway_listener *listener,
                                          int64_t timeout_ns,
                                          struct ramway_bus **out);

/**
 * A descriptor that is readable when `ramway_listener_accept` with `RAMWAY_TRY` may get somewhere, for event loops:
 * not to be read or closed, and valid as long as the listener. -1 for a null handle.
 */
int ramway_listener_fd(const struct ramway_listener *listener);

/**
 * The path of the listening socket, valid as long as the listener. Null for a null handle.
 */
const char *ramway_listener_path(const struct ramway_listener *listener);

/**
 * How many connectors have been refused or have given up so far.
 */
uint64_t ramway_listener_refused(const struct ramway_listener *listener);

/**
 * Why the last connector was refused, for logs: writes the text to `buffer`, which has room for `size` bytes, cut off
 * where it is longer and always with a final 0 (unless `size` is 0). Gives the whole text's length without that 0: 0 if
 * none was refused.
 */
size_t ramway_listener_last_refusal(const struct ramway_listener *listener,
                                    char *buffer,
                                    size_t size);

/**
 * Stops listening, removes the name and frees the handle. Buses that it accepted live on.
 */
enum ramway_status ramway_listener_close(struct ramway_listener *listener);

/**
 * Listens at `name`, takes one peer within the time-out, and removes the name again. `options` may be null. On
 * failure `*out` is null.
 */
enum ramway_status ramway_bus_listen(const char *name,
                                     const struct ramway_bus_options *options,
                                     int64_t timeout_ns,
                                     struct ramway_bus **out);

/**
 * Connects to the listener at `name`, waiting for one that is not there yet or is busy, for `options->timeout_ns`
 * (default 10 s). `options` may be null; the listener chooses capacities and alignment. On failure `*out` is null.
 *
 * `RAMWAY_NOT_FOUND` if no listener came, `RAMWAY_TIMED_OUT` if it was busy all the time, `RAMWAY_PERMISSION_DENIED`,
 * `RAMWAY_ABI_MISMATCH`, `RAMWAY_CORRUPT`, or why the listener refused.
 */
enum ramway_status ramway_bus_connect(const char *name,
                                      const struct ramway_bus_options *options,
                                      struct ramway_bus **out);

/**
 * The bus's sending end, valid as long as the bus. Sender and receiver may be used by two threads at once. Null if
 * the listener gave that direction no capacity (`RAMWAY_UNSUPPORTED` is then the last error), and for a null handle.
 */
struct ramway_sender *ramway_bus_sender(const struct ramway_bus *bus);

/**
 * The bus's receiving end; as `ramway_bus_sender`.
 */
struct ramway_receiver *ramway_bus_receiver(const struct ramway_bus *bus);

/**
 * Frees the bus and gives its two ends, each to be closed by itself: null for a direction that does not exist. The
 * peer sees a hang-up when both are closed.
 */
enum ramway_status ramway_bus_split(struct ramway_bus *bus,
                                    struct ramway_sender **sender,
                                    struct ramway_receiver **receiver);

/**
 * Flushes, tells the peer that this was all, and frees the bus and both of its ends.
 */
enum ramway_status ramway_bus_close(struct ramway_bus *bus);

/**
 * The user that the peer acted as when the connection was made, as the kernel recorded it. `UINT32_MAX` for a null
 * handle.
 */
uint32_t ramway_bus_peer_uid(const struct ramway_bus *bus);

/**
 * The peer's process when the connection was made, 0 if it has no number here. It says who asked; numbers are used
 * again.
 */
uint32_t ramway_bus_peer_pid(const struct ramway_bus *bus);

/**
 * Whether the peer still holds an end of the bus: up to two system calls.
 */
bool ramway_bus_is_peer_alive(const struct ramway_bus *bus);

/**
 * Makes a region of `len` bytes, all zero, under a name as in `ramway_sender_create`. It lives until its last handle
 * is gone, in whichever process, or on with `RAMWAY_PERSISTENT`. `options` may be null. On failure `*out` is null.
 *
 * `RAMWAY_INVALID_ARGUMENT` for a length of 0, `RAMWAY_ALREADY_EXISTS`, `RAMWAY_NO_SPACE`.
 */
enum ramway_status ramway_region_create(const char *name,
                                        uint64_t len,
                                        const struct ramway_options *options,
                                        struct ramway_region **out);

/**
 * Opens the region `name`, for reading and writing, or with `RAMWAY_READ_ONLY` for reading.
 *
 * `RAMWAY_NOT_FOUND`, `RAMWAY_PERMISSION_DENIED`, `RAMWAY_ABI_MISMATCH` if it is something else.
 */
enum ramway_status ramway_region_open(const char *name,
                                      const struct ramway_options *options,
                                      struct ramway_region **out);

/**
 * Opens the region `name`, or makes it. `RAMWAY_INVALID_ARGUMENT` if it is there with another length.
 */
enum ramway_status ramway_region_open_or_create(const char *name,
                                                uint64_t len,
                                                const struct ramway_options *options,
                                                struct ramway_region **out);

/**
 * Unmaps the region and frees the handle. Nothing uses its bytes any more.
 */
enum ramway_status ramway_region_close(struct ramway_region *region);

/**
 * The first of the region's bytes, at the start of a page, until the handle is closed. Ramway brings no order into
 * what processes write there: use atomics, or notify and wait. Not to be written through a read-only handle. Null
 * for a null handle.
 */
void *ramway_region_data(const struct ramway_region *region);

/**
 * The length that the region was created with. 0 for a null handle.
 */
uint64_t ramway_region_len(const struct ramway_region *region);

/**
 * The bytes that are mapped: the length rounded up to a page, or to a huge page. 0 for a null handle.
 */
uint64_t ramway_region_capacity(const struct ramway_region *region);

/**
 * Whether this handle may not write.
 */
bool ramway_region_is_read_only(const struct ramway_region *region);

/**
 * Copies `len` bytes out, from `offset` on. Others may write meanwhile: each aligned 8-byte word comes out whole.
 *
 * `RAMWAY_INVALID_ARGUMENT` if the range does not lie within the region.
 */
enum ramway_status ramway_region_read_at(const struct ramway_region *region, uint64_t offset, void *to, size_t len);

/**
 * Copies `len` bytes in, from `offset` on. To others each aligned 8-byte word appears whole, in no particular order.
 *
 * `RAMWAY_INVALID_ARGUMENT` if the range does not lie within the region, `RAMWAY_PERMISSION_DENIED` if it is
 * read-only.
 */
enum ramway_status ramway_region_write_at(const struct ramway_region *region,
                                          uint64_t offset,
                                          const void *from,
                                          size_t len);

/**
 * Tells everyone who waits that something has changed, after everything that this thread wrote before. Never blocks;
 * a system call only if somebody sleeps.
 */
enum ramway_status ramway_region_notify(const struct ramway_region *region);

/**
 * Waits until somebody notifies. A notification since the last wait of this handle that succeeded, or since it was
 * opened, counts even if it came before this call; any number of them count as one. `timeout_ns` as in
 * `ramway_recv`.
 *
 * `RAMWAY_EMPTY` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`; `RAMWAY_CLOSED` if the name was removed meanwhile.
 */
enum ramway_status ramway_region_wait(const struct ramway_region *region, int64_t timeout_ns);

/**
 * A descriptor that becomes readable when `ramway_region_wait` with `RAMWAY_TRY` would succeed, or the name is gone.
 * Otherwise as `ramway_sender_readiness_fd`; `RAMWAY_UNSUPPORTED` for a read-only handle, which cannot be woken.
 */
int ramway_region_readiness_fd(const struct ramway_region *region);

/**
 * A number that changes with each notification, for `ramway_region_wait_since`. 0 for a null handle.
 */
uint32_t ramway_region_notifications(const struct ramway_region *region);

/**
 * Waits until the number of notifications is not `*count`, and stores what it is then: for several threads that must
 * each see every notification on one handle. Otherwise as `ramway_region_wait`.
 */
enum ramway_status ramway_region_wait_since(const struct ramway_region *region,
                                            uint32_t *count,
                                            int64_t timeout_ns);

/**
 * Calls `each` for everything in `directory` (null: where names stand, `RAMWAY_DIR`) that could be a segment, sorted
 * by name, with `user` as it is. Takes no lock and disturbs nobody. A directory that does not exist is empty; what is
 * wrong with one file is said in its record.
 */
enum ramway_status ramway_ls(const char *directory,
                             void (*each)(const struct ramway_segment *segment, void *user),
                             void *user);

/**
 * Removes the segment `name` that nobody uses, whatever it holds: persistent or with undelivered messages too. A
 * listener's socket goes with it.
 *
 * `RAMWAY_BUSY` if somebody uses it, `RAMWAY_NOT_FOUND`; `RAMWAY_ABI_MISMATCH`, `RAMWAY_CORRUPT` or
 * `RAMWAY_INVALID_ARGUMENT` for what is no segment of this version, which stays as it is.
 */
enum ramway_status ramway_unlink(const char *name);

/**
 * Removes the segments of `directory` (null: where names stand) that nobody uses and nobody could want, and calls
 * `each` (may be null) for each regular file with what became of it: `RAMWAY_CLEAN_REMOVED` and so on, and why (null if
 * there is nothing to say). `flags` is `RAMWAY_CLEAN_UNDELIVERED` and `RAMWAY_CLEAN_DRY_RUN`, or-ed together. Never
 * removes what somebody uses, nor what is not Ramway's.
 */
enum ramway_status ramway_clean(const char *directory,
                                uint32_t flags,
                                void (*each)(const char *name, uint32_t outcome, const char *why, void *user),
                                void *user);

/**
 * A receiver or a subscriber, for `ramway_select_wait`: ready when `ramway_recv` has something to say.
 *
 * Any thread.
 */
struct ramway_source ramway_source_receiver(struct ramway_receiver *receiver);

/**
 * Room for a message of `len` bytes in a sender or a publisher, for `ramway_select_wait`.
 *
 * Any thread.
 */
struct ramway_source ramway_source_room(struct ramway_sender *sender, size_t len);

/**
 * A region, for `ramway_select_wait`: ready when somebody has notified. Any number of threads may wait for one.
 *
 * Any thread.
 */
struct ramway_source ramway_source_region(const struct ramway_region *region);

/**
 * A listener, for `ramway_select_wait`: ready when `ramway_listener_accept` is worth a call. Any number of threads may wait for
 * one.
 *
 * Any thread.
 */
struct ramway_source ramway_source_listener(const struct ramway_listener *listener);

/**
 * An open descriptor of any kind, for `ramway_select_wait`: ready when it is readable, or has an error or a hang-up.
 *
 * Any thread.
 */
struct ramway_source ramway_source_fd(int fd);

/**
 * Makes a select. On failure `*out` is null.
 */
enum ramway_status ramway_select_new(struct ramway_select **out);

/**
 * Frees the handle. The sources that it waited for are not touched.
 *
 * `RAMWAY_BUSY` (and nothing happens) while another thread is in a call on it.
 */
enum ramway_status ramway_select_free(struct ramway_select *select);

/**
 * How this handle waits from now on: `RAMWAY_WAIT_SPIN` and so on.
 */
enum ramway_status ramway_select_set_wait_policy(struct ramway_select *select, uint32_t policy);

/**
 * Waits until one of the `count` sources is ready, and puts the indices of all that are ready then into `ready`, which has
 * room for `count`; `*ready_count` is how many. A message, room, a close and a death (within 200 ms) make a source ready: then
 * make the call that does not wait. The one that came first in the last answer comes last. While some have messages, room or
 * news, the end of another, or a descriptor, may be left out of up to 15 answers in a row.
 *
 * It checks all of them for a bounded time, then sleeps once for all. `timeout_ns` as in `ramway_recv`. The handles are used
 * as if this thread called each of them, until it returns, and as always after that: closing one between two calls is fine.
 * The same index should mean the same source from call to call, for the order.
 *
 * `RAMWAY_EMPTY` (`RAMWAY_TRY` only) and `RAMWAY_TIMED_OUT` if none is ready; `RAMWAY_INTERRUPTED` by `ramway_select_wake`;
 * `RAMWAY_BUSY` for a receiver with messages that are not released, a sender with an open slot, a handle that is named twice,
 * that another thread waits for, or that has a readiness descriptor (wait by that), and for a select that another thread
 * uses; `RAMWAY_INVALID_ARGUMENT` for no source and `RAMWAY_FOREVER`; `RAMWAY_DETACHED`. `*ready_count` is then 0.
 */
enum ramway_status ramway_select_wait(struct ramway_select *select,
                                      const struct ramway_source *sources,
                                      size_t count,
                                      int64_t timeout_ns,
                                      size_t *ready,
                                      size_t *ready_count);

/**
 * Any thread, and a signal handler, while the handle is open: the `ramway_select_wait` that waits now, or, if none does, the
 * next one that would, returns `RAMWAY_INTERRUPTED`, unless a source is ready. Several calls before that end one wait.
 */
enum ramway_status ramway_select_wake(const struct ramway_select *select);

/**
 * Begins to listen for producers at `name` (as in `ramway_listener_bind`). `options` may be null. On failure `*out` is null.
 *
 * `RAMWAY_ALREADY_EXISTS` if a live listener has the name, or something that is not Ramway's to remove.
 */
enum ramway_status ramway_inbox_bind(const char *name,
                                     const struct ramway_inbox_options *options,
                                     struct ramway_inbox **out);

/**
 * Takes the next message of any producer, in place, or the news that one has gone: `out->left` says which, `out->peer` whose.
 * A message's `data` is valid until `ramway_inbox_release`; one at a time: `RAMWAY_BUSY` before that. Messages of one producer
 * come in order; producers are served in rotation, message by message. `timeout_ns` as in `ramway_recv`.
 *
 * A producer need not be trusted, but could rewrite a message while it is read: copy what must not change.
 *
 * `RAMWAY_EMPTY` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`; `RAMWAY_CLOSED` once the inbox was closed and every producer has
 * gone; `RAMWAY_INTERRUPTED` by `ramway_inbox_wake`; `RAMWAY_NO_SPACE` or `RAMWAY_OS` if a producer could not be taken for want
 * of memory or descriptors: it was told, and the next call goes on; `RAMWAY_DETACHED`. `*out` is then untouched.
 */
enum ramway_status ramway_inbox_recv(struct ramway_inbox *inbox,
                                     int64_t timeout_ns,
                                     struct ramway_incoming *out);

/**
 * Gives the message that was received last back to its producer. Succeeds if there is none.
 */
enum ramway_status ramway_inbox_release(struct ramway_inbox *inbox);

/**
 * Calls `each` for every producer that is connected, with `user` as it is. The pointer is valid during the callback only, and
 * the callback cannot use the inbox (`RAMWAY_BUSY`). A producer is among them once a call to receive has taken it.
 */
enum ramway_status ramway_inbox_peers(struct ramway_inbox *inbox,
                                      void (*each)(const struct ramway_peer *peer, void *user),
                                      void *user);

/**
 * The path of the listening socket, which producers can be given in place of the name; valid as long as the handle. Null for
 * a null handle, and once closed.
 */
const char *ramway_inbox_path(struct ramway_inbox *inbox);

/**
 * Any thread, and a signal handler, while the handle is open: the `ramway_inbox_recv` that waits now, or, if none does, the
 * next one that would, returns `RAMWAY_INTERRUPTED`, unless there is something to give.
 */
enum ramway_status ramway_inbox_wake(const struct ramway_inbox *inbox);

/**
 * Takes no new producer, and tells those that are there that nothing more is wanted: their next send gives `RAMWAY_CLOSED`.
 * What they have sent before is still received, and each one's departure, until `ramway_inbox_recv` gives `RAMWAY_CLOSED`. A
 * message that is sent while this runs may be lost. The handle stays open: `ramway_inbox_free` frees it.
 *
 * `RAMWAY_BUSY` while a message is not released.
 */
enum ramway_status ramway_inbox_close(struct ramway_inbox *inbox);

/**
 * Closes and frees the handle, whatever was received. What was not received is lost, and a message that is not released is
 * gone.
 *
 * `RAMWAY_BUSY` (and nothing happens) while another thread is in a call on it.
 */
enum ramway_status ramway_inbox_free(struct ramway_inbox *inbox);

/**
 * Begins to listen for workers at `name` (as in `ramway_listener_bind`). `options` may be null. On failure `*out` is null.
 *
 * `RAMWAY_ALREADY_EXISTS` if a live listener has the name, or something that is not Ramway's to remove.
 */
enum ramway_status ramway_outbox_bind(const char *name,
                                      const struct ramway_outbox_options *options,
                                      struct ramway_outbox **out);

/**
 * Gives a message to a worker: copies it into the ring of one that may have another message. What has to be given again goes
 * first. `type_id` and `tag` as in `ramway_send`; `timeout_ns` is how long to wait for such a worker: `RAMWAY_FOREVER`,
 * `RAMWAY_TRY` or nanoseconds.
 *
 * `RAMWAY_FULL` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`; `RAMWAY_TOO_LARGE` if it can never fit; `RAMWAY_INTERRUPTED` by
 * `ramway_outbox_wake`; `RAMWAY_NO_SPACE` or `RAMWAY_OS` if a worker could not be taken for want of memory or descriptors;
 * `RAMWAY_DETACHED`. Nothing of this message was given then.
 */
enum ramway_status ramway_outbox_send(struct ramway_outbox *outbox,
                                      uint32_t type_id,
                                      uint64_t tag,
                                      const void *data,
                                      size_t len,
                                      int64_t timeout_ns);

/**
 * Waits until every message was given back or taken out. Deaths are seen, and messages given again, inside the calls of an
 * outbox only. `timeout_ns` of 0 checks once.
 *
 * `RAMWAY_TIMED_OUT`; else as `ramway_outbox_send`.
 */
enum ramway_status ramway_outbox_drain(struct ramway_outbox *outbox,
                                       int64_t timeout_ns);

/**
 * Takes a message that no worker has given back, and that is given to nobody any more: the oldest one.
 *
 * `RAMWAY_EMPTY` if there is none; `*out` is then untouched.
 */
enum ramway_status ramway_outbox_take_undelivered(struct ramway_outbox *outbox, struct ramway_undelivered *out);

/**
 * How many messages are given to somebody and not given back, or wait to be given again. 0 for a null handle.
 */
size_t ramway_outbox_outstanding(struct ramway_outbox *outbox);

/**
 * Calls `each` for every worker that is connected, with how many messages it has and `user` as it is. The pointer is valid
 * during the callback only, and the callback cannot use the outbox (`RAMWAY_BUSY`). A worker is among them once another call
 * has taken it.
 */
enum ramway_status ramway_outbox_workers(struct ramway_outbox *outbox,
                                         void (*each)(const struct ramway_peer *worker, size_t messages, void *user),
                                         void *user);

/**
 * The path of the listening socket, which workers can be given in place of the name; valid as long as the handle. Null for a
 * null handle.
 */
const char *ramway_outbox_path(struct ramway_outbox *outbox);

/**
 * Any thread, and a signal handler, while the handle is open: the call that waits now, or, if none does, the next one that
 * would, returns `RAMWAY_INTERRUPTED`.
 */
enum ramway_status ramway_outbox_wake(const struct ramway_outbox *outbox);

/**
 * Tells the workers that this was all, and frees the handle. They still get what they were given; nothing is given again:
 * `ramway_outbox_drain` first.
 *
 * `RAMWAY_BUSY` (and nothing happens) while another thread is in a call on it.
 */
enum ramway_status ramway_outbox_free(struct ramway_outbox *outbox);

/**
 * The number of a method's name, UTF-8: FNV-1a of 32 bits, kept below `RAMWAY_METHOD_RESERVED`. The same in every language.
 * `UINT32_MAX`, which is no application's method, for a null pointer.
 *
 * Any thread.
 */
uint32_t ramway_rpc_method_id(const char *name);

/**
 * Frees what a reply holds, and makes it an empty one. Nothing happens to an empty one, or to null.
 */
void ramway_rpc_reply_free(struct ramway_rpc_reply *reply);

/**
 * Makes a reply last that a callback was given: `*kept` is it, with bytes of its own, which `ramway_rpc_reply_free` frees. `*reply`
 * stays readable until the callback returns.
 *
 * `RAMWAY_INVALID_ARGUMENT` for null, and where both are the same.
 */
enum ramway_status ramway_rpc_reply_keep(struct ramway_rpc_reply *reply,
                                         struct ramway_rpc_reply *kept);

/**
 * The name of a status of RPC as the documentation spells it, `"Overloaded"` for example, forever valid. Never null: an unknown
 * number is `"Unknown"`, and `RAMWAY_RPC_NO_STATUS` is `"None"`.
 *
 * Any thread.
 */
const char *ramway_rpc_status_name(uint32_t status);

/**
 * Connects to the RPC server at `name` (as in `ramway_bus_connect`), waiting for one that is not there yet or is busy, for
 * `options->timeout_ns` (default 10 s). `options` may be null. On failure `*out` is null.
 *
 * `RAMWAY_NOT_FOUND` if no server came, `RAMWAY_ABI_MISMATCH` where a plain listener is, `RAMWAY_BUSY` or `RAMWAY_TIMED_OUT`
 * if the server has as many clients as it takes, `RAMWAY_PERMISSION_DENIED`, `RAMWAY_CORRUPT`.
 */
enum ramway_status ramway_rpc_connect(const char *name,
                                      const struct ramway_rpc_client_options *options,
                                      struct ramway_rpc_client **out);

/**
 * Sends a request to the method with this number and waits for its reply, as long as it takes or `options->timeout_ns` allows.
 * `options` may be null. `*reply` is filled however the call ends, and freed by `ramway_rpc_reply_free`.
 *
 * `RAMWAY_OK` if the server replied. Else `reply->status` says how the server ended the call, and the result is the error
 * that is nearest to that: `RAMWAY_OS` for an error of the application or a failed handler, `RAMWAY_NOT_FOUND` if there is
 * no such method, `RAMWAY_TIMED_OUT`, `RAMWAY_INTERRUPTED` if it was cancelled, `RAMWAY_FULL` if a limit of the server is
 * reached, `RAMWAY_TOO_LARGE` for a reply beyond its limits, `RAMWAY_CLOSED` if it is shutting down. Or it is
 * `RAMWAY_RPC_NO_STATUS`, and the result, as `reply->error`, is how this side ended the call: `RAMWAY_TIMED_OUT`;
 * `RAMWAY_TOO_LARGE` for a request that the server's rings cannot hold, or a reply beyond `max_buffered`; `RAMWAY_CLOSED` if
 * the server closed (the call was not run) and `RAMWAY_PEER_DEAD` if it died; `RAMWAY_CORRUPT` if it broke the rules, which
 * ends all calls; `RAMWAY_INTERRUPTED` by `ramway_rpc_wake`, which cancels the call; `RAMWAY_DETACHED`;
 * `RAMWAY_INVALID_ARGUMENT`; `RAMWAY_BUSY`.
 */
enum ramway_status ramway_rpc_call(struct ramway_rpc_client *client,
                                   uint32_t method,
                                   const void *body,
                                   size_t len,
                                   const struct ramway_rpc_call_options *options,
                                   struct ramway_rpc_reply *reply);

/**
 * Sends a request and gives the call that is under way: `*call` is its number. It does not wait: what cannot be sent yet,
 * because the server's limit of calls in flight is reached or the ring is full, is kept, and sent in order.
 *
 * Its end is told to `done`, once, with `user` as it is, by `ramway_rpc_poll`. `reply` is valid during the callback, and its
 * bytes may lie in the ring, where the server wrote them: what is decided on is to be copied first where the server is not
 * trusted. `ramway_rpc_reply_keep` makes it last. Or `done` is null, and `ramway_rpc_wait` gives it. With a callback `call`
 * may be null. Every call that was started is to be waited for, polled for, or cancelled.
 *
 * `RAMWAY_TOO_LARGE`, or how the connection ended. The call was not made then, and `done` is not called.
 */
enum ramway_status ramway_rpc_start(struct ramway_rpc_client *client,
                                    uint32_t method,
                                    const void *body,
                                    size_t len,
                                    const struct ramway_rpc_call_options *options,
                                    void (*done)(uint64_t call, struct ramway_rpc_reply *reply, void *user),
                                    void *user,
                                    uint64_t *call);

/**
 * `ramway_rpc_start` for a call whose reply is a stream. `done` is called for each element, and last for the end
 * (`ramway_rpc_reply.more`). The server sends at most `options->window` elements before they are taken: who reads slowly
 * stops the server's handler, and nothing else.
 */
enum ramway_status ramway_rpc_start_stream(struct ramway_rpc_client *client,
                                           uint32_t method,
                                           const void *body,
                                           size_t len,
                                           const struct ramway_rpc_call_options *options,
                                           void (*done)(uint64_t call, struct ramway_rpc_reply *reply, void *user),
                                           void *user,
                                           uint64_t *call);

/**
 * Waits for a call that was started without a callback, for at most `timeout_ns` (`RAMWAY_FOREVER`, `RAMWAY_TRY` or
 * nanoseconds): for its reply; of a stream for its next element, and then for its end (`reply->more`). After its end the
 * call's number means nothing.
 *
 * `RAMWAY_EMPTY` if nothing has come within the time: the call goes on. `RAMWAY_INTERRUPTED` by `ramway_rpc_wake`: with
 * `reply->status` of `RAMWAY_RPC_NO_STATUS`, and the call goes on. Else as `ramway_rpc_call`, and the call has ended: its
 * own time limit is `RAMWAY_TIMED_OUT`. `RAMWAY_INVALID_ARGUMENT` for a number that means nothing, or a call with a
 * callback.
 */
enum ramway_status ramway_rpc_wait(struct ramway_rpc_client *client,
                                   uint64_t call,
                                   int64_t timeout_ns,
                                   struct ramway_rpc_reply *reply);

/**
 * Cancels a call, and tells the server at once. Its number means nothing from now on, and its callback is not called. A call
 * that the server has begun goes on until its handler ends or sees that it was cancelled. Succeeds if the call has ended.
 */
enum ramway_status ramway_rpc_cancel(struct ramway_rpc_client *client,
                                     uint64_t call);

/**
 * Runs the callbacks of the calls that have ended, and of elements of streams, of which there is something now; if there is
 * nothing, waits for it for at most `timeout_ns`. In a callback calls may be started and cancelled; what waits, and closing,
 * is `RAMWAY_BUSY` there.
 *
 * `RAMWAY_OK` if a callback was run. `RAMWAY_EMPTY` if none was, with `RAMWAY_TRY`, and at once if no call with a callback
 * is under way; `RAMWAY_TIMED_OUT`; `RAMWAY_INTERRUPTED` by `ramway_rpc_wake`; `RAMWAY_DETACHED`. The end of the connection
 * ends every call, so that their callbacks are told.
 */
enum ramway_status ramway_rpc_poll(struct ramway_rpc_client *client,
                                   int64_t timeout_ns);

/**
 * Waits until the server has answered: it is there and reads. `options` may be null; of them only the time limit is looked at.
 *
 * As `ramway_rpc_call`.
 */
enum ramway_status ramway_rpc_ping(struct ramway_rpc_client *client,
                                   const struct ramway_rpc_call_options *options);

/**
 * Calls `each` for every method of the server, in the order of their numbers, with `user` as it is. `name` is null for a
 * method without one, and valid during the callback only. The callback cannot use the client (`RAMWAY_BUSY`). `options` may
 * be null.
 *
 * As `ramway_rpc_call`.
 */
enum ramway_status ramway_rpc_describe(struct ramway_rpc_client *client,
                                       const struct ramway_rpc_call_options *options,
                                       void (*each)(uint32_t number, const char *name, void *user),
                                       void *user);

/**
 * How many calls the server lets this client have in flight. Those beyond wait in the client, in their order. 0 for a null
 * handle.
 */
uint32_t ramway_rpc_max_in_flight(struct ramway_rpc_client *client);

/**
 * How many calls are sent and have no final reply: also those that were cancelled, until the server has ended them. 0 for a
 * null handle.
 */
size_t ramway_rpc_in_flight(struct ramway_rpc_client *client);

/**
 * Receives what is there; then, whether a call that is made now is sent at once, as far as the server's limit and the calls
 * before it go. Never waits. Of a connection that is over it is true: a call says how it ended. False for a null handle.
 */
bool ramway_rpc_is_ready(struct ramway_rpc_client *client);

/**
 * The longest request: its metadata, rounded up to 16 bytes, and its body together. 0 for a null handle.
 */
size_t ramway_rpc_max_request_len(struct ramway_rpc_client *client);

/**
 * A descriptor for event loops: readable when there is something to receive, or the server is gone; not to be read or
 * closed, and valid as long as the handle. Poll it for at most `ramway_rpc_due_ns`; then call `ramway_rpc_poll` with
 * `RAMWAY_TRY` until it gives `RAMWAY_EMPTY`. -1 on failure.
 */
int ramway_rpc_fd(struct ramway_rpc_client *client);

/**
 * In how many nanoseconds `ramway_rpc_poll` is to be called although the descriptor is not readable, because a call times
 * out then, or there may be room for one that could not be sent; `RAMWAY_FOREVER`: never. `RAMWAY_FOREVER` on failure.
 */
int64_t ramway_rpc_due_ns(struct ramway_rpc_client *client);

/**
 * How calls wait from now on: `RAMWAY_WAIT_SPIN` and so on.
 */
enum ramway_status ramway_rpc_set_wait_policy(struct ramway_rpc_client *client, uint32_t policy);

/**
 * Whether a call that waits returns `RAMWAY_INTERRUPTED` when a signal handler ran. Default: it goes on waiting.
 */
enum ramway_status ramway_rpc_set_interruptible(struct ramway_rpc_client *client, bool yes);

/**
 * Any thread, and a signal handler, while the handle is open: the call that waits now, or, if none does, the next one that
 * would, returns `RAMWAY_INTERRUPTED`.
 */
enum ramway_status ramway_rpc_wake(const struct ramway_rpc_client *client);

/**
 * The user that the server acted as when the connection was made, as the kernel recorded it. `UINT32_MAX` for a null handle.
 */
uint32_t ramway_rpc_peer_uid(struct ramway_rpc_client *client);

/**
 * The server's process when the connection was made, 0 if it has no number here. It says who it was; numbers are used again.
 */
uint32_t ramway_rpc_peer_pid(struct ramway_rpc_client *client);

/**
 * Whether the server's process holds its end of the connection (one system call). A stopped process does.
 */
bool ramway_rpc_is_peer_alive(struct ramway_rpc_client *client);

/**
 * Ends the connection and frees the handle: the server cancels what is under way, and no callback is called any more.
 * Replies that were given stay valid until they are freed.
 *
 * `RAMWAY_BUSY` (and nothing happens) while another thread is in a call on it, and in a callback.
 */
enum ramway_status ramway_rpc_close(struct ramway_rpc_client *client);

/**
 * The method's number. `UINT32_MAX` for null.
 */
uint32_t ramway_rpc_request_method(struct ramway_rpc_request *request);

/**
 * The request's bytes, `*len` of them, valid as long as the request: until the handler returns, or the request is answered.
 * Null on failure.
 */
const void *ramway_rpc_request_body(struct ramway_rpc_request *request,
                                    size_t *len);

/**
 * The request's metadata; as `ramway_rpc_request_body`.
 */
const void *ramway_rpc_request_meta(struct ramway_rpc_request *request, size_t *len);

/**
 * The client.
 */
enum ramway_status ramway_rpc_request_peer(struct ramway_rpc_request *request, struct ramway_peer *out);

/**
 * How much time the call has left, in nanoseconds; `RAMWAY_FOREVER` without a limit, and for null.
 */
int64_t ramway_rpc_request_remaining_ns(struct ramway_rpc_request *request);

/**
 * Whether the call was cancelled, its time is over or its client is gone: nobody wants the reply any more, but the request
 * is still to be answered. A handler of `ramway_rpc_server_method` sees only that the time is over. False for null.
 */
bool ramway_rpc_request_is_cancelled(struct ramway_rpc_request *request);

/**
 * Whether the caller wants a stream. False for null.
 */
bool ramway_rpc_request_is_stream(struct ramway_rpc_request *request);

/**
 * Metadata of the reply, or of the next element of a stream: bytes that the application defines. Before the reply.
 */
enum ramway_status ramway_rpc_request_set_reply_meta(struct ramway_rpc_request *request,
                                                     const void *meta,
                                                     size_t len);

/**
 * Answers the request with these bytes. Of a stream they are the last element. The request is over.
 *
 * `RAMWAY_INVALID_ARGUMENT` if it was answered before, in a handler of `ramway_rpc_server_method`. A reply that is too long
 * is no error here: the caller gets `RAMWAY_RPC_REPLY_TOO_LARGE`.
 */
enum ramway_status ramway_rpc_request_reply(struct ramway_rpc_request *request,
                                            const void *body,
                                            size_t len);

/**
 * `ramway_rpc_request_reply` that has the reply written in place, where there is room: `write` gets `len` bytes that hold
 * anything, and says how many of them, from the first one on, are the reply. It is called before this returns, or not at all
 * if a reply of `len` bytes can never be sent: the caller gets `RAMWAY_RPC_REPLY_TOO_LARGE` then. Where it gives `SIZE_MAX`
 * the request is not answered, and this is `RAMWAY_INTERRUPTED`.
 */
enum ramway_status ramway_rpc_request_reply_with(struct ramway_rpc_request *request,
                                                 size_t len,
                                                 size_t (*write)(void *to, size_t len, void *user),
                                                 void *user);

/**
 * Ends the call with an error of the application, `RAMWAY_RPC_APPLICATION`: a number and a text in UTF-8, which the caller
 * gets. The request is over.
 */
enum ramway_status ramway_rpc_request_fail(struct ramway_rpc_request *request,
                                           uint32_t code,
                                           const char *text);

/**
 * Ends the call with `RAMWAY_RPC_HANDLER_FAILED` and a text in UTF-8: the handler failed in a way that it did not mean to.
 * The request is over.
 */
enum ramway_status ramway_rpc_request_fail_unexpectedly(struct ramway_rpc_request *request,
                                                        const char *text);

/**
 * Sends an element of a stream, waiting for at most `timeout_ns` (`RAMWAY_FOREVER`, `RAMWAY_TRY` or nanoseconds) until the
 * caller has room for it. The request goes on: `ramway_rpc_request_finish` completes the stream. A thread that serves must
 * not wait here: it is what receives the news of room.
 *
 * `RAMWAY_FULL` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`; `RAMWAY_INTERRUPTED` if nobody wants the stream any more;
 * `RAMWAY_INVALID_ARGUMENT` if the caller wants one reply, or the request is not of `ramway_rpc_server_deferred`;
 * `RAMWAY_DETACHED`. An element that is too long ends the stream with `RAMWAY_RPC_REPLY_TOO_LARGE`.
 */
enum ramway_status ramway_rpc_request_send(struct ramway_rpc_request *request,
                                           const void *body,
                                           size_t len,
                                           int64_t timeout_ns);

/**
 * Completes a stream, without another element; a caller that wants one reply gets an empty one. The request is over.
 */
enum ramway_status ramway_rpc_request_finish(struct ramway_rpc_request *request);

/**
 * Has `changed` called whenever the call is cancelled or another element can be sent, with `user` as it is, on the thread
 * that serves, which it must not block. It replaces an earlier one. For event loops: call this first, and check
 * `ramway_rpc_request_is_cancelled` and send with `RAMWAY_TRY` then, and at each change. `changed` may run while another
 * thread answers the request, and once more behind that: what it uses is not the request, or is kept from that by the
 * caller. `dropped`, which may be null, is called once `changed` will not be any more, on either thread.
 *
 * `RAMWAY_INVALID_ARGUMENT` if the request is not of `ramway_rpc_server_deferred`; neither is called then.
 */
enum ramway_status ramway_rpc_request_on_change(struct ramway_rpc_request *request,
                                                void (*changed)(void *user),
                                                void (*dropped)(void *user),
                                                void *user);

/**
 * Begins to listen for clients at `name` (as in `ramway_listener_bind`). `options` may be null. On failure `*out` is null.
 * Nothing is served before `ramway_rpc_server_run`.
 *
 * `RAMWAY_ALREADY_EXISTS` if a live listener has the name, or something that is not Ramway's to remove.
 */
enum ramway_status ramway_rpc_server_bind(const char *name,
                                          const struct ramway_rpc_server_options *options,
                                          struct ramway_rpc_server **out);

/**
 * Has `handler` called for every call of the method with this number, below `RAMWAY_METHOD_RESERVED`, with `user` as it is,
 * on the thread that serves. `name` is shown to clients that ask (`ramway_rpc_describe`), and may be null; for those who
 * call methods by name `number` is `ramway_rpc_method_id(name)`.
 *
 * The handler reads the request where the client wrote it, and answers it before it returns, in place where there is room:
 * by `ramway_rpc_request_reply` or one of its siblings. A request that is not answered ends with
 * `RAMWAY_RPC_HANDLER_FAILED`. All other clients wait as long as it takes; time limits and cancelling are seen behind it.
 * For what takes long: `ramway_rpc_server_deferred`. A client need not be trusted, but could rewrite its request while it is
 * read: copy what is decided on.
 *
 * `RAMWAY_ALREADY_EXISTS` if the server has a method with this number; `RAMWAY_INVALID_ARGUMENT` for a number that is
 * Ramway's, or a name with control characters.
 */
enum ramway_status ramway_rpc_server_method(struct ramway_rpc_server *server,
                                            uint32_t number,
                                            const char *name,
                                            void (*handler)(struct ramway_rpc_request *request, void *user),
                                            void *user);

/**
 * `ramway_rpc_server_method` for calls that are answered later: the handler gets a copy of the request, which is its own
 * until it is answered, by any thread, also before the handler returns. Every request is to be answered, also one that was
 * cancelled: only then its client has its place back.
 *
 * For streams too: `ramway_rpc_request_send`.
 */
enum ramway_status ramway_rpc_server_deferred(struct ramway_rpc_server *server,
                                              uint32_t number,
                                              const char *name,
                                              void (*handler)(struct ramway_rpc_request *request, void *user),
                                              void *user);

/**
 * Serves for `timeout_ns` (`RAMWAY_FOREVER` or nanoseconds), or until it is shut down.
 *
 * `RAMWAY_OK` once it was shut down; `RAMWAY_TIMED_OUT`, and `RAMWAY_INTERRUPTED` by `ramway_rpc_server_wake`: the next call
 * goes on. `RAMWAY_OS` if there are no more descriptors to wait with; `RAMWAY_DETACHED`. That a client could not be taken
 * for want of memory or descriptors is no error here: it was told.
 */
enum ramway_status ramway_rpc_server_run(struct ramway_rpc_server *server,
                                         int64_t timeout_ns);

/**
 * Does what there is to do without waiting, for event loops: see `ramway_rpc_server_fd`.
 *
 * `RAMWAY_CLOSED` once it was shut down; as `ramway_rpc_server_run`.
 */
enum ramway_status ramway_rpc_server_poll(struct ramway_rpc_server *server);

/**
 * A descriptor for event loops: readable when `ramway_rpc_server_poll` has something to do; not to be read or closed, and
 * valid as long as the handle. Poll it for at most `ramway_rpc_server_due_ns`. -1 on failure.
 */
int ramway_rpc_server_fd(struct ramway_rpc_server *server);

/**
 * In how many nanoseconds `ramway_rpc_server_poll` is to be called although the descriptor is not readable;
 * `RAMWAY_FOREVER`: never. `RAMWAY_FOREVER` on failure.
 */
int64_t ramway_rpc_server_due_ns(struct ramway_rpc_server *server);

/**
 * Any thread, a handler and a signal handler, while the handle is open: the server takes no new client and no new call, goes
 * on with those that run for at most `limit_ns` (nanoseconds, or `RAMWAY_FOREVER`), cancels the rest, which has 100 ms to
 * end, and closes. It does that in `ramway_rpc_server_run`, which then returns `RAMWAY_OK`. A client all of whose calls are
 * answered learns `RAMWAY_CLOSED`, of the others those calls may have run (`RAMWAY_PEER_DEAD`). Of two limits the shorter
 * one counts.
 */
enum ramway_status ramway_rpc_server_shutdown(const struct ramway_rpc_server *server,
                                              int64_t limit_ns);

/**
 * Any thread, a handler and a signal handler, while the handle is open: the `ramway_rpc_server_run` that runs now, or, if
 * none does, the next one, returns `RAMWAY_INTERRUPTED`. The server stays as it is.
 */
enum ramway_status ramway_rpc_server_wake(const struct ramway_rpc_server *server);

/**
 * How many clients are connected. A client is among them once the server has run since it came. 0 for a null handle.
 */
size_t ramway_rpc_server_clients(struct ramway_rpc_server *server);

/**
 * The path of the listening socket, which clients can be given in place of the name; valid as long as the handle. Null for a
 * null handle.
 */
const char *ramway_rpc_server_path(struct ramway_rpc_server *server);

/**
 * Cancels what runs, closes and frees the handle. A client with calls that have no reply learns that they may have run: shut
 * down first (`ramway_rpc_server_shutdown`). Requests of `ramway_rpc_server_deferred` that are not answered stay valid, and
 * are still to be answered.
 *
 * `RAMWAY_BUSY` (and nothing happens) while another thread is in a call on it, and in a handler.
 */
enum ramway_status ramway_rpc_server_close(struct ramway_rpc_server *server);

/**
 * For `ramway_inline.h`: the slow half of a publish whose fast half it did. Reads what the receiver says of
 * itself and wakes it.
 */
enum ramway_status ramway_inline_after_publish(struct ramway_sender *sender);

/**
 * For `ramway_inline.h`: the slow half of a release whose fast half it did. Reads what the sender says of itself
 * and wakes it.
 */
enum ramway_status ramway_inline_after_release(struct ramway_receiver *receiver);

/**
 * The library's version, `"0.2.0"` for example, forever valid.
 */
const char *ramway_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RAMWAY_H */
