/*
 * The hot path of a ring, and (ramway/inline_topic.h, which this includes) of a topic, as static inline functions, so that
 * C and C++ pay no call per message.
 *
 *     ramway_inline_send        ramway_inline_reserve     ramway_inline_commit     ramway_inline_commit_unflushed
 *     ramway_inline_flush       ramway_inline_abort
 *     ramway_inline_recv        ramway_inline_recv_batch  ramway_inline_release
 *
 * do what the functions of ramway.h without `inline_` do, over the same handles, with the same results, and may be
 * mixed with them. (Given the handle of a publisher or a subscriber they call the library: a topic has inline functions of
 * its own.) Whatever is not the common case (no room, no message, an argument that is wrong, a dead handle, a
 * peer that sleeps) is handed to the library, from unchanged state.
 *
 * C11 and C++20, for compilers with the __atomic builtins (gcc, clang). Programs and library need not be of the same
 * version: where the library's private state is not the one mirrored here, every function calls the library.
 *
 * The order of memory accesses is the whole point of this file. Each one that matters says which reordering it
 * forbids; docs/ABI.md, sections 5 and 7, has the protocol.
 */
#ifndef RAMWAY_INLINE_H
#define RAMWAY_INLINE_H

#include "ramway.h"
#include "ramway/facts.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#define RAMWAY_STATIC_ASSERT static_assert
#else
#define RAMWAY_STATIC_ASSERT _Static_assert
#endif

#define RAMWAY_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define RAMWAY_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* The private state below is that of a library whose RAMWAY_INLINE_LAYOUT is this number. */
#define RAMWAY_INLINE_KNOWS 0x52574903
RAMWAY_STATIC_ASSERT(RAMWAY_INLINE_KNOWS == RAMWAY_INLINE_LAYOUT, "ramway.h and ramway_inline.h are not of one version");

/* ---- the words that both processes share: docs/ABI.md, section 3 ---- */

/* One end's words. `wait` is the futex: not 0 while that end sleeps or is about to. */
struct ramway_role_line {
    uint32_t wait;
    uint32_t flags;
    uint32_t epoch;
    uint32_t close_seen;
    uint8_t pad[112];
};

struct ramway_last_tag {
    uint64_t end;
    uint64_t tag;
};

struct ramway_tail_line {
    uint64_t tail;
    struct ramway_last_tag last_tags[2];
    uint8_t pad[88];
};

struct ramway_head_line {
    uint64_t head;
    uint8_t pad[120];
};

struct ramway_ring_block {
    uint8_t geometry[128];
    struct ramway_tail_line tail;
    struct ramway_head_line head;
    struct ramway_role_line producer;
    struct ramway_role_line consumer;
};

/* ---- each end's private state: core/src/ring/producer.rs and consumer.rs ---- */

struct ramway_producer {
    struct ramway_ring_block *block;
    uint8_t *data;       /* mapped twice back to back: 2 * capacity bytes */
    uint64_t capacity;   /* a power of two */
    uint64_t max_len;    /* of a payload */
    uint64_t tail;       /* end of the last committed frame: tail - head <= capacity, wrapping */
    uint64_t unflushed;  /* what the shared tail holds while frames are committed and not published, else ALL_FLUSHED */
    uint64_t head;       /* the shared head as last seen: never ahead of the real one */
    uint64_t slot;       /* bytes reserved by the open slot, or RAMWAY_NO_SLOT */
    uint64_t tag;        /* of the last committed frame */
    uint32_t align;
    uint32_t state;      /* 0, or the status that this handle is dead of */
    uint32_t peer_flags; /* the receiver's flags as last acted upon */
    uint16_t fences;     /* 0: publish without a fence, the receiver makes up for it with membarrier; else fence and count down */
    uint16_t woken;
    uint32_t next_last_tag; /* which of the two last-tag records is written next */
    uint32_t more[3];
};

struct ramway_consumer {
    struct ramway_ring_block *block;
    const uint8_t *data;
    uint64_t capacity;
    uint64_t head;       /* start of the next frame: released <= head <= tail, wrapping */
    uint64_t released;   /* what the shared head holds: from here to head is lent out */
    uint64_t tail;       /* the shared tail as last seen: never ahead of the real one */
    uint32_t align;
    uint32_t state;
    uint32_t peer_flags;
    uint16_t fences;
    uint16_t woken;
    uint32_t more[2];
};

/* What the handles begin with. */
struct ramway_inline_sender {
    struct ramway_producer *hot;
    uint32_t layout;
};
struct ramway_inline_receiver {
    struct ramway_consumer *hot;
    uint32_t layout;
};

/* The Rust side asserts the same numbers, so neither can move without the other. */
#define RAMWAY_AT(type, field, offset) \
    RAMWAY_STATIC_ASSERT(offsetof(struct type, field) == (offset), #type "." #field " is not where the library has it")
RAMWAY_AT(ramway_inline_sender, hot, 0);
RAMWAY_AT(ramway_inline_sender, layout, 8);
RAMWAY_AT(ramway_inline_receiver, hot, 0);
RAMWAY_AT(ramway_inline_receiver, layout, 8);
RAMWAY_AT(ramway_producer, block, 0);
RAMWAY_AT(ramway_producer, data, 8);
RAMWAY_AT(ramway_producer, capacity, 16);
RAMWAY_AT(ramway_producer, max_len, 24);
RAMWAY_AT(ramway_producer, tail, 32);
RAMWAY_AT(ramway_producer, unflushed, 40);
RAMWAY_AT(ramway_producer, head, 48);
RAMWAY_AT(ramway_producer, slot, 56);
RAMWAY_AT(ramway_producer, tag, 64);
RAMWAY_AT(ramway_producer, align, 72);
RAMWAY_AT(ramway_producer, state, 76);
RAMWAY_AT(ramway_producer, peer_flags, 80);
RAMWAY_AT(ramway_producer, fences, 84);
RAMWAY_AT(ramway_producer, next_last_tag, 88);
RAMWAY_AT(ramway_consumer, block, 0);
RAMWAY_AT(ramway_consumer, data, 8);
RAMWAY_AT(ramway_consumer, capacity, 16);
RAMWAY_AT(ramway_consumer, head, 24);
RAMWAY_AT(ramway_consumer, released, 32);
RAMWAY_AT(ramway_consumer, tail, 40);
RAMWAY_AT(ramway_consumer, align, 48);
RAMWAY_AT(ramway_consumer, state, 52);
RAMWAY_AT(ramway_consumer, peer_flags, 56);
RAMWAY_AT(ramway_consumer, fences, 60);
RAMWAY_AT(ramway_ring_block, geometry, 0);
RAMWAY_AT(ramway_ring_block, tail, 128);
RAMWAY_AT(ramway_ring_block, head, 256);
RAMWAY_AT(ramway_ring_block, producer, 384);
RAMWAY_AT(ramway_ring_block, consumer, 512);
RAMWAY_STATIC_ASSERT(sizeof(struct ramway_producer) == 104, "ramway_producer is not the library's");
RAMWAY_STATIC_ASSERT(sizeof(struct ramway_consumer) == 72, "ramway_consumer is not the library's");
RAMWAY_STATIC_ASSERT(sizeof(struct ramway_ring_block) == RAMWAY_RING_BLOCK_SIZE &&
                         offsetof(struct ramway_ring_block, tail) == RAMWAY_OFF_TAIL &&
                         offsetof(struct ramway_ring_block, tail.last_tags) == RAMWAY_OFF_LAST_TAGS &&
                         offsetof(struct ramway_ring_block, head) == RAMWAY_OFF_HEAD &&
                         offsetof(struct ramway_ring_block, producer) == RAMWAY_OFF_PRODUCER &&
                         offsetof(struct ramway_ring_block, consumer) == RAMWAY_OFF_CONSUMER,
                     "ramway_ring_block is not the format's");
RAMWAY_STATIC_ASSERT(offsetof(struct ramway_role_line, wait) == RAMWAY_OFF_ROLE_WAIT &&
                         offsetof(struct ramway_role_line, flags) == RAMWAY_OFF_ROLE_FLAGS &&
                         offsetof(struct ramway_role_line, epoch) == RAMWAY_OFF_ROLE_EPOCH &&
                         offsetof(struct ramway_role_line, close_seen) == RAMWAY_OFF_ROLE_CLOSE_SEEN,
                     "ramway_role_line is not the format's");
RAMWAY_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "version 1 of the format is little-endian");

#define RAMWAY_NO_SLOT UINT64_MAX
#define RAMWAY_ALL_FLUSHED 1u /* no position: those are multiples of 16 */

/* The private state of a handle that works; NULL for any other, and for a library with another layout. */
static inline struct ramway_producer *ramway_inline_producer(ramway_sender *sender) {
    struct ramway_inline_sender *handle = (struct ramway_inline_sender *)(void *)sender;
    if (RAMWAY_UNLIKELY(handle == NULL || handle->layout != RAMWAY_INLINE_KNOWS)) {
        return NULL;
    }
    /* Relaxed: stored by this thread only, or before this thread began (a fork). */
    if (RAMWAY_UNLIKELY(__atomic_load_n(&handle->hot->state, __ATOMIC_RELAXED) != 0)) {
        return NULL;
    }
    return handle->hot;
}

static inline struct ramway_consumer *ramway_inline_consumer(ramway_receiver *receiver) {
    struct ramway_inline_receiver *handle = (struct ramway_inline_receiver *)(void *)receiver;
    if (RAMWAY_UNLIKELY(handle == NULL || handle->layout != RAMWAY_INLINE_KNOWS)) {
        return NULL;
    }
    if (RAMWAY_UNLIKELY(__atomic_load_n(&handle->hot->state, __ATOMIC_RELAXED) != 0)) {
        return NULL;
    }
    return handle->hot;
}

/* Bytes that a frame with a payload of `len` takes; `len` is at most RAMWAY_MESSAGE_MAX, so nothing overflows. */
static inline uint64_t ramway_inline_frame_size(uint64_t len, uint32_t align) {
    uint64_t mask = (uint64_t)align - 1;
    return (RAMWAY_FRAME_HEADER + len + mask) & ~mask;
}

/* Asks for the line at `address`, to write to it: a hint, which no address makes fault. `PREFETCHW` is in every x86-64
 * processor of AMD's, and a prefetch or a NOP in every one of Intel's; the builtin would ask for a line to read. */
static inline void ramway_inline_want_to_write(const uint8_t *address) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*address));
#else
    __builtin_prefetch(address, 1, 3);
#endif
}

/* Asks for what will be written a few messages later, after a message of `len` bytes was published; `next` is where the next
 * payload will begin. The other processor has those lines, and a sender that only stores waits for as many of them at a time
 * as its store buffer holds. */
static inline void ramway_inline_ask_ahead(const uint8_t *next, size_t len) {
    if (len > 64) {
        ramway_inline_want_to_write(next);
        ramway_inline_want_to_write(next + 64);
        ramway_inline_want_to_write(next + 128);
    }
    ramway_inline_want_to_write(next + 192);
}

/* Where a payload of `len` bytes goes; NULL if the library is to be asked. Nothing has changed. */
static inline uint8_t *ramway_inline_room(struct ramway_producer *hot, size_t len) {
    /* Relaxed: flags that changed are a hint that something is to be looked into; the library looks properly. */
    if (RAMWAY_LIKELY(hot != NULL && hot->slot == RAMWAY_NO_SLOT && len <= hot->max_len &&
                      __atomic_load_n(&hot->block->consumer.flags, __ATOMIC_RELAXED) == hot->peer_flags) &&
        RAMWAY_LIKELY(ramway_inline_frame_size(len, hot->align) <= hot->capacity - (hot->tail - hot->head))) {
        /* The mirrored mapping: a frame that begins below `capacity` is contiguous. */
        return hot->data + (hot->tail & (hot->capacity - 1)) + RAMWAY_FRAME_HEADER;
    }
    return NULL;
}

/* ramway_reserve */
static inline ramway_status ramway_inline_reserve(ramway_sender *sender, size_t len, int64_t timeout_ns, void **out) {
    struct ramway_producer *hot = ramway_inline_producer(sender);
    uint8_t *to = out != NULL ? ramway_inline_room(hot, len) : NULL;
    if (RAMWAY_LIKELY(to != NULL)) {
        hot->slot = len;
        *out = to;
        return RAMWAY_OK;
    }
    /* No room by the cached head: the library loads the shared one, checks it, and waits if it may. */
    return ramway_reserve(sender, len, timeout_ns, out);
}

/* Publishes everything that is committed, the last of it with this tag, and wakes the receiver if it says that it
 * sleeps. */
static inline ramway_status ramway_inline_publish(ramway_sender *sender, struct ramway_producer *hot, uint64_t tag) {
    struct ramway_ring_block *block = hot->block;
    int decide = 0;
    if (tag != 0) {
        struct ramway_last_tag *record = &block->tail.last_tags[hot->next_last_tag & 1];
        /* Relaxed: only a later producer reads these records, after the role's lock has passed to it. They go before `tail`
         * (release, below): a kill in between leaves this record not matching `tail`. */
        __atomic_store_n(&record->end, hot->tail, __ATOMIC_RELAXED);
        __atomic_store_n(&record->tag, tag, __ATOMIC_RELAXED);
        hot->next_last_tag ^= 1;
    }
    /* Release: forbids the stores of the frames, headers and payloads, to sink below the position that publishes them.
     * Pairs with the receiver's acquire load of `tail`. */
    __atomic_store_n(&block->tail.tail, hot->tail, __ATOMIC_RELEASE);
    if (RAMWAY_LIKELY(hot->fences == 0)) {
        /* Forbids the compiler to move the two loads below above the store of `tail`. The processor may still do so;
         * the sleeper's membarrier, between its store to `wait` and its second look at `tail`, undoes that. */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } else {
        /* Forbids store(tail) and load(wait) to pass each other, which they may after a mere release store: then the
         * receiver would sleep through this message. Pairs with the sleeper's fence. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        /* Counted down: the library decides anew whether this side fences. */
        decide = --hot->fences == 0;
    }
    /* Relaxed: ordered by the fence above. */
    if (RAMWAY_UNLIKELY(__atomic_load_n(&block->consumer.wait, __ATOMIC_RELAXED) != 0 ||
                        __atomic_load_n(&block->consumer.flags, __ATOMIC_RELAXED) != hot->peer_flags || decide)) {
        return ramway_inline_after_publish(sender);
    }
    return RAMWAY_OK;
}

/* Makes `len` bytes from `to`, where ramway_inline_room found room for them, a message, and publishes it if asked to:
 * then with as few private stores as can be, because they take places in the store buffer. */
static inline ramway_status ramway_inline_frame(ramway_sender *sender, struct ramway_producer *hot, uint8_t *to,
                                                size_t len, uint32_t type_id, uint64_t tag, int flush) {
    uint64_t word = (uint64_t)len | (uint64_t)type_id << 32;
    ramway_status status = RAMWAY_OK;
    /* Plain stores: nobody reads them before `tail` is published with release. */
    memcpy(to - RAMWAY_FRAME_HEADER, &word, sizeof word);
    memcpy(to - sizeof tag, &tag, sizeof tag);
    if (flush) {
        if (RAMWAY_UNLIKELY(hot->unflushed != RAMWAY_ALL_FLUSHED)) {
            hot->unflushed = RAMWAY_ALL_FLUSHED;
        }
        hot->tail += ramway_inline_frame_size(len, hot->align);
        status = ramway_inline_publish(sender, hot, tag);
    } else {
        if (RAMWAY_UNLIKELY(hot->unflushed == RAMWAY_ALL_FLUSHED)) {
            hot->unflushed = hot->tail;
        }
        if (hot->tag != tag) {
            hot->tag = tag;
        }
        hot->tail += ramway_inline_frame_size(len, hot->align);
    }
    ramway_inline_ask_ahead(hot->data + (hot->tail & (hot->capacity - 1)) + RAMWAY_FRAME_HEADER, len);
    return status;
}

/* Whether the first `len` bytes of the open slot can be made a message; if not, the library says why. */
static inline int ramway_inline_may_commit(struct ramway_producer *hot, size_t len, uint32_t type_id) {
    return hot != NULL && hot->slot != RAMWAY_NO_SLOT && len <= hot->slot && type_id < RAMWAY_TYPE_ID_RESERVED;
}

/* ramway_commit */
static inline ramway_status ramway_inline_commit(ramway_sender *sender, uint32_t type_id, uint64_t tag, size_t len) {
    struct ramway_producer *hot = ramway_inline_producer(sender);
    if (RAMWAY_UNLIKELY(!ramway_inline_may_commit(hot, len, type_id))) {
        return ramway_commit(sender, type_id, tag, len);
    }
    hot->slot = RAMWAY_NO_SLOT;
    return ramway_inline_frame(sender, hot, hot->data + (hot->tail & (hot->capacity - 1)) + RAMWAY_FRAME_HEADER, len,
                               type_id, tag, 1);
}

/* ramway_commit_unflushed */
static inline ramway_status ramway_inline_commit_unflushed(ramway_sender *sender, uint32_t type_id, uint64_t tag,
                                                           size_t len) {
    struct ramway_producer *hot = ramway_inline_producer(sender);
    if (RAMWAY_UNLIKELY(!ramway_inline_may_commit(hot, len, type_id))) {
        return ramway_commit_unflushed(sender, type_id, tag, len);
    }
    hot->slot = RAMWAY_NO_SLOT;
    return ramway_inline_frame(sender, hot, hot->data + (hot->tail & (hot->capacity - 1)) + RAMWAY_FRAME_HEADER, len,
                               type_id, tag, 0);
}

/* ramway_flush */
static inline ramway_status ramway_inline_flush(ramway_sender *sender) {
    struct ramway_producer *hot = ramway_inline_producer(sender);
    if (RAMWAY_UNLIKELY(hot == NULL)) {
        return ramway_flush(sender);
    }
    if (hot->unflushed == RAMWAY_ALL_FLUSHED) {
        return RAMWAY_OK;
    }
    hot->unflushed = RAMWAY_ALL_FLUSHED;
    return ramway_inline_publish(sender, hot, hot->tag);
}

/* ramway_abort */
static inline ramway_status ramway_inline_abort(ramway_sender *sender) {
    struct ramway_producer *hot = ramway_inline_producer(sender);
    if (RAMWAY_UNLIKELY(hot == NULL)) {
        return ramway_abort(sender);
    }
    hot->slot = RAMWAY_NO_SLOT;
    return RAMWAY_OK;
}

/* ramway_send */
static inline ramway_status ramway_inline_send(ramway_sender *sender, uint32_t type_id, uint64_t tag, const void *data,
                                               size_t len, int64_t timeout_ns) {
    struct ramway_producer *hot = ramway_inline_producer(sender);
    uint8_t *to = ramway_inline_room(hot, len);
    if (RAMWAY_UNLIKELY(to == NULL || (data == NULL && len != 0) || type_id >= RAMWAY_TYPE_ID_RESERVED)) {
        return ramway_send(sender, type_id, tag, data, len, timeout_ns);
    }
    if (len != 0) {
        memcpy(to, data, len);
    }
    return ramway_inline_frame(sender, hot, to, len, type_id, tag, 1);
}

/* Loads the shared tail; 1 if frames are there now. 0 also for a tail that cannot be: the library looks again and says
 * so. It may only move forward, up to released + capacity, in whole alignment steps. */
static inline int ramway_inline_refresh(struct ramway_consumer *hot) {
    /* Acquire: forbids the loads of the frames to rise above this load. Pairs with the sender's release store. */
    uint64_t tail = __atomic_load_n(&hot->block->tail.tail, __ATOMIC_ACQUIRE);
    uint64_t moved = tail - hot->tail;
    if (moved == 0 || RAMWAY_UNLIKELY(moved > hot->capacity - (hot->tail - hot->released) ||
                                      (moved & ((uint64_t)hot->align - 1)) != 0)) {
        return 0;
    }
    hot->tail = tail;
    return 1;
}

/* The next frame, if there is one and it lies within what was published; else 0, and nothing has changed. */
static inline int ramway_inline_next(struct ramway_consumer *hot, ramway_message *out) {
    const uint8_t *frame;
    uint64_t word, tag, len, size;
    if (hot->head == hot->tail && !ramway_inline_refresh(hot)) {
        return 0;
    }
    frame = hot->data + (hot->head & (hot->capacity - 1));
    /* Relaxed atomic loads: each number is read exactly once, so that a peer that rewrites it cannot pass the check
     * with one value and be used with another. The acquire load of `tail` orders them. */
    word = __atomic_load_n((const uint64_t *)(const void *)frame, __ATOMIC_RELAXED);
    tag = __atomic_load_n((const uint64_t *)(const void *)(frame + 8), __ATOMIC_RELAXED);
    len = word & UINT32_MAX;
    size = ramway_inline_frame_size(len, hot->align);
    if (RAMWAY_UNLIKELY(size > hot->tail - hot->head || len > RAMWAY_MESSAGE_MAX)) {
        return 0;
    }
    hot->head += size;
    out->data = frame + RAMWAY_FRAME_HEADER;
    out->len = (size_t)len;
    out->tag = tag;
    out->type_id = (uint32_t)(word >> 32);
    return 1;
}

/* ramway_recv */
static inline ramway_status ramway_inline_recv(ramway_receiver *receiver, int64_t timeout_ns, ramway_message *out) {
    struct ramway_consumer *hot = ramway_inline_consumer(receiver);
    if (RAMWAY_LIKELY(hot != NULL && out != NULL && hot->head == hot->released && ramway_inline_next(hot, out))) {
        return RAMWAY_OK;
    }
    return ramway_recv(receiver, timeout_ns, out);
}

/* ramway_recv_batch */
static inline ramway_status ramway_inline_recv_batch(ramway_receiver *receiver, int64_t timeout_ns, ramway_message *out,
                                                     size_t max, size_t *count) {
    struct ramway_consumer *hot = ramway_inline_consumer(receiver);
    if (RAMWAY_LIKELY(hot != NULL && out != NULL && count != NULL && max != 0 && hot->head == hot->released)) {
        size_t taken = 0;
        while (taken < max && ramway_inline_next(hot, &out[taken])) {
            taken++;
        }
        if (RAMWAY_LIKELY(taken != 0)) {
            *count = taken;
            return RAMWAY_OK;
        }
    }
    return ramway_recv_batch(receiver, timeout_ns, out, max, count);
}

/* ramway_release */
static inline ramway_status ramway_inline_release(ramway_receiver *receiver) {
    struct ramway_consumer *hot = ramway_inline_consumer(receiver);
    struct ramway_ring_block *block;
    int decide = 0;
    if (RAMWAY_UNLIKELY(hot == NULL)) {
        return ramway_release(receiver);
    }
    if (hot->head == hot->released) {
        return RAMWAY_OK;
    }
    block = hot->block;
    /* Release: forbids our loads of the frames to sink below the position that lets the sender overwrite them. Pairs
     * with the sender's acquire load of `head`. */
    __atomic_store_n(&block->head.head, hot->head, __ATOMIC_RELEASE);
    hot->released = hot->head;
    /* The wake-up (not the space) is put off until a quarter is free by the cached tail, which says "free" too often
     * where it is behind, never too rarely; a drained ring always passes. */
    if (hot->tail - hot->head > hot->capacity - hot->capacity / RAMWAY_WAKE_FRACTION) {
        return RAMWAY_OK;
    }
    if (RAMWAY_LIKELY(hot->fences == 0)) {
        /* As in ramway_inline_publish, for store(head) and load(wait). */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } else {
        /* Likewise. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        decide = --hot->fences == 0;
    }
    if (RAMWAY_UNLIKELY(__atomic_load_n(&block->producer.wait, __ATOMIC_RELAXED) != 0 ||
                        __atomic_load_n(&block->producer.flags, __ATOMIC_RELAXED) != hot->peer_flags || decide)) {
        return ramway_inline_after_release(receiver);
    }
    return RAMWAY_OK;
}

#ifdef __cplusplus
}
#endif

#include "ramway/inline_topic.h"

#endif
