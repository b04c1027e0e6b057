/*
 * The hot path of a topic as static inline functions. Part of ramway_inline.h, which says what holds for all of them.
 *
 *     ramway_inline_publisher_send        ramway_inline_publisher_reserve           ramway_inline_publisher_abort
 *     ramway_inline_publisher_commit      ramway_inline_publisher_commit_unflushed  ramway_inline_publisher_flush
 *
 * do what ramway_send, ramway_reserve and so on do, over the handle of a publisher;
 *
 *     ramway_inline_subscriber_recv       ramway_inline_subscriber_recv_batch
 *     ramway_inline_subscriber_latest     ramway_inline_subscriber_release (ramway_release)
 *
 * what the functions without `inline_` do. They call the library for a publisher with RAMWAY_TIMESTAMPS, and but for
 * ramway_inline_subscriber_latest also for a subscriber that gets copies (RAMWAY_LOSSY, RAMWAY_LATEST, RAMWAY_MAY_EJECT).
 *
 * docs/ABI.md, section 19, has the protocol.
 */
#ifndef RAMWAY_INLINE_TOPIC_H
#define RAMWAY_INLINE_TOPIC_H

#include "../ramway_inline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The private state below is that of a library whose RAMWAY_INLINE_TOPIC_LAYOUT is this number. */
#define RAMWAY_INLINE_TOPIC_KNOWS 0x52575402
RAMWAY_STATIC_ASSERT(RAMWAY_INLINE_TOPIC_KNOWS == RAMWAY_INLINE_TOPIC_LAYOUT,
                     "ramway.h and ramway/inline_topic.h are not of one version");

/* ---- the words that all processes share ---- */

/* Written by the publisher alone; a subscriber has it read-only. */
struct ramway_topic_block {
    uint8_t geometry[128];
    uint64_t tail; /* end of the last published frame */
    uint64_t last; /* its start; equal to tail while there is none */
    uint8_t positions_pad[112];
    uint64_t claim; /* everything below claim - capacity is overwritten, or may be at any moment */
    uint8_t claim_pad[120];
    uint64_t starts[16];
    struct ramway_role_line publisher;
};

/* Written by subscribers, and by the publisher. */
struct ramway_subscribers {
    uint32_t publisher_wait; /* the publisher's futex */
    uint8_t wait_pad[124];
    uint64_t word; /* low half: the subscribers' futex, bit 0 = one sleeps; high half: counts who came and went */
};

/* ---- each side's private state: as a ring's, and what a topic has besides: core/src/topic ---- */

struct ramway_topic_producer {
    struct ramway_topic_block *block;
    uint8_t *data;
    uint64_t capacity;
    uint64_t max_len;
    uint64_t tail;
    uint64_t unflushed;
    uint64_t head; /* how far it may write, less the capacity */
    uint64_t slot;
    uint64_t tag;
    uint32_t align;
    uint32_t state;
    uint32_t peer_flags;
    uint16_t fences; /* as in ramway_producer */
    uint16_t woken;
    uint32_t rules[4];
    uint64_t seq;       /* the number of the next message */
    uint64_t last;      /* where the last committed frame begins */
    uint8_t timestamps; /* 1: every message says when it was sent */
    uint8_t timestamps_pad[7];
    uint64_t word_seen; /* the subscribers' word as last acted upon: even */
    uint64_t published; /* where the last published frame begins */
    struct ramway_subscribers *area;
};

struct ramway_topic_consumer {
    struct ramway_topic_block *block;
    const uint8_t *data;
    uint64_t capacity;
    uint64_t head;
    uint64_t released;
    uint64_t tail;
    uint32_t align;
    uint32_t state;
    uint32_t peer_flags;
    uint16_t fences;
    uint16_t woken;
    uint32_t rules[2];
    uint64_t *cursor;   /* in its slot: start of the first frame that is not released; NULL: nobody waits for it */
    uint64_t expected;  /* the number that the message at head should have */
    uint8_t copies_out; /* 1: messages are copied, because they can be overwritten while they are read */
    uint8_t copies_out_pad[3];
    uint32_t policy;
    struct ramway_subscribers *area;
};

RAMWAY_AT(ramway_topic_producer, block, 0);
RAMWAY_AT(ramway_topic_producer, data, 8);
RAMWAY_AT(ramway_topic_producer, capacity, 16);
RAMWAY_AT(ramway_topic_producer, max_len, 24);
RAMWAY_AT(ramway_topic_producer, tail, 32);
RAMWAY_AT(ramway_topic_producer, unflushed, 40);
RAMWAY_AT(ramway_topic_producer, head, 48);
RAMWAY_AT(ramway_topic_producer, slot, 56);
RAMWAY_AT(ramway_topic_producer, tag, 64);
RAMWAY_AT(ramway_topic_producer, align, 72);
RAMWAY_AT(ramway_topic_producer, state, 76);
RAMWAY_AT(ramway_topic_producer, peer_flags, 80);
RAMWAY_AT(ramway_topic_producer, fences, 84);
RAMWAY_AT(ramway_topic_producer, seq, 104);
RAMWAY_AT(ramway_topic_producer, last, 112);
RAMWAY_AT(ramway_topic_producer, timestamps, 120);
RAMWAY_AT(ramway_topic_producer, word_seen, 128);
RAMWAY_AT(ramway_topic_producer, published, 136);
RAMWAY_AT(ramway_topic_producer, area, 144);
RAMWAY_AT(ramway_topic_consumer, block, 0);
RAMWAY_AT(ramway_topic_consumer, data, 8);
RAMWAY_AT(ramway_topic_consumer, capacity, 16);
RAMWAY_AT(ramway_topic_consumer, head, 24);
RAMWAY_AT(ramway_topic_consumer, released, 32);
RAMWAY_AT(ramway_topic_consumer, tail, 40);
RAMWAY_AT(ramway_topic_consumer, align, 48);
RAMWAY_AT(ramway_topic_consumer, state, 52);
RAMWAY_AT(ramway_topic_consumer, peer_flags, 56);
RAMWAY_AT(ramway_topic_consumer, fences, 60);
RAMWAY_AT(ramway_topic_consumer, cursor, 72);
RAMWAY_AT(ramway_topic_consumer, expected, 80);
RAMWAY_AT(ramway_topic_consumer, copies_out, 88);
RAMWAY_AT(ramway_topic_consumer, policy, 92);
RAMWAY_AT(ramway_topic_consumer, area, 96);
RAMWAY_AT(ramway_topic_block, tail, 128);
RAMWAY_AT(ramway_topic_block, last, 136);
RAMWAY_AT(ramway_topic_block, claim, 256);
RAMWAY_AT(ramway_topic_block, starts, 384);
RAMWAY_AT(ramway_topic_block, publisher, 512);
RAMWAY_AT(ramway_subscribers, publisher_wait, 0);
RAMWAY_AT(ramway_subscribers, word, 128);

/* The private state of a publisher that works and stamps no times; NULL for any other handle, and for a library with
 * another layout. */
static inline struct ramway_topic_producer *ramway_inline_publisher(ramway_publisher *publisher) {
    struct ramway_inline_sender *handle = (struct ramway_inline_sender *)(void *)publisher;
    struct ramway_topic_producer *hot;
    if (RAMWAY_UNLIKELY(handle == NULL || handle->layout != RAMWAY_INLINE_TOPIC_KNOWS)) {
        return NULL;
    }
    hot = (struct ramway_topic_producer *)(void *)handle->hot;
    /* Relaxed: stored by this thread only, or before this thread began (a fork). */
    if (RAMWAY_UNLIKELY(__atomic_load_n(&hot->state, __ATOMIC_RELAXED) != 0 || hot->timestamps != 0)) {
        return NULL;
    }
    return hot;
}

/* The private state of a subscriber that works; NULL as above. */
static inline struct ramway_topic_consumer *ramway_inline_subscriber(ramway_subscriber *subscriber) {
    struct ramway_inline_receiver *handle = (struct ramway_inline_receiver *)(void *)subscriber;
    struct ramway_topic_consumer *hot;
    if (RAMWAY_UNLIKELY(handle == NULL || handle->layout != RAMWAY_INLINE_TOPIC_KNOWS)) {
        return NULL;
    }
    hot = (struct ramway_topic_consumer *)(void *)handle->hot;
    if (RAMWAY_UNLIKELY(__atomic_load_n(&hot->state, __ATOMIC_RELAXED) != 0)) {
        return NULL;
    }
    return hot;
}

/* The same, if it reads in place. Then it is reliable, so it has a cursor. */
static inline struct ramway_topic_consumer *ramway_inline_viewer(ramway_subscriber *subscriber) {
    struct ramway_topic_consumer *hot = ramway_inline_subscriber(subscriber);
    return RAMWAY_LIKELY(hot != NULL && hot->copies_out == 0) ? hot : NULL;
}

/* Bytes that a frame with a payload of `len` takes; `len` is at most 2^32, so nothing overflows. */
static inline uint64_t ramway_inline_topic_frame_size(uint64_t len, uint32_t align) {
    uint64_t mask = (uint64_t)align - 1;
    return (RAMWAY_TOPIC_FRAME_HEADER + len + mask) & ~mask;
}

/* Where the payload of the next frame begins: contiguous, because the mapping is mirrored. */
static inline uint8_t *ramway_inline_publisher_payload(const struct ramway_topic_producer *hot) {
    return hot->data + (hot->tail & (hot->capacity - 1)) + RAMWAY_TOPIC_FRAME_HEADER;
}

/* Where a payload of `len` bytes goes; NULL if the library is to be asked. Nothing has changed. */
static inline uint8_t *ramway_inline_publisher_room(struct ramway_topic_producer *hot, size_t len) {
    if (RAMWAY_LIKELY(hot != NULL && hot->slot == RAMWAY_NO_SLOT && len <= hot->max_len) &&
        RAMWAY_LIKELY(ramway_inline_topic_frame_size(len, hot->align) <= hot->capacity - (hot->tail - hot->head))) {
        return ramway_inline_publisher_payload(hot);
    }
    return NULL;
}

/* ramway_reserve */
static inline ramway_status ramway_inline_publisher_reserve(ramway_publisher *publisher, size_t len, int64_t timeout_ns,
                                                            void **out) {
    struct ramway_topic_producer *hot = ramway_inline_publisher(publisher);
    uint8_t *to = out != NULL ? ramway_inline_publisher_room(hot, len) : NULL;
    if (RAMWAY_LIKELY(to != NULL)) {
        hot->slot = len;
        *out = to;
        return RAMWAY_OK;
    }
    /* No room by the private limit: the library reads the slots, announces what it overwrites, and waits if it may. */
    return ramway_reserve(publisher, len, timeout_ns, out);
}

/* Publishes everything that is committed, and wakes the subscribers that sleep. */
static inline ramway_status ramway_inline_publisher_publish(ramway_publisher *publisher,
                                                            struct ramway_topic_producer *hot) {
    struct ramway_topic_block *block = hot->block;
    uint64_t last = hot->last;
    int decide = 0;
    /* Release: forbids the stores of the frames, headers and payloads, to sink below the position that publishes them.
     * Pairs with the subscribers' acquire load of `tail`. */
    __atomic_store_n(&block->tail, hot->tail, __ATOMIC_RELEASE);
    /* Release: forbids the store of `tail` to sink below: who reads at `last` sees the frame there and a `tail` after it. */
    __atomic_store_n(&block->last, last, __ATOMIC_RELEASE);
    hot->published = last;
    if (RAMWAY_LIKELY(hot->fences == 0)) {
        /* Forbids the compiler to move the load below above the stores. The processor may still do so; the sleeper's
         * membarrier, between its setting of the bit and its second look at the position, undoes that. */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } else {
        /* Forbids the stores and the load of the word to pass each other: then a subscriber would sleep through this
         * message. Pairs with the sleeper's fence. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        /* Counted down: the library decides anew whether this side fences. */
        decide = --hot->fences == 0;
    }
    /* Relaxed: ordered by the fence above. */
    if (RAMWAY_UNLIKELY(__atomic_load_n(&hot->area->word, __ATOMIC_RELAXED) != hot->word_seen || decide)) {
        return ramway_inline_after_publish(publisher);
    }
    return RAMWAY_OK;
}

/* Makes `len` bytes from `to`, where ramway_inline_publisher_room found room for them, a message, and publishes it if
 * asked to. */
static inline ramway_status ramway_inline_publisher_frame(ramway_publisher *publisher, struct ramway_topic_producer *hot,
                                                          uint8_t *to, size_t len, uint32_t type_id, uint64_t tag,
                                                          int flush) {
    typedef uint64_t pair __attribute__((vector_size(16), may_alias));
    uint64_t seq = hot->seq;
    pair first = {(uint64_t)len | (uint64_t)type_id << 32, tag};
    pair second = {seq, 0};
    ramway_status status = RAMWAY_OK;
    hot->seq = seq + 1;
    /* Plain stores: nobody reads them before `tail` is published with release. Two of 16 bytes (`to` lies on a multiple of
     * 32): four of 8 cost 20 % of a batched message. */
    *(pair *)(void *)(to - RAMWAY_TOPIC_FRAME_HEADER) = first;
    *(pair *)(void *)(to - 16) = second;
    hot->last = hot->tail;
    if (flush) {
        if (RAMWAY_UNLIKELY(hot->unflushed != RAMWAY_ALL_FLUSHED)) {
            hot->unflushed = RAMWAY_ALL_FLUSHED;
        }
        hot->tail += ramway_inline_topic_frame_size(len, hot->align);
        status = ramway_inline_publisher_publish(publisher, hot);
    } else {
        if (RAMWAY_UNLIKELY(hot->unflushed == RAMWAY_ALL_FLUSHED)) {
            hot->unflushed = hot->tail;
        }
        if (hot->tag != tag) {
            hot->tag = tag;
        }
        hot->tail += ramway_inline_topic_frame_size(len, hot->align);
    }
    ramway_inline_ask_ahead(ramway_inline_publisher_payload(hot), len);
    return status;
}

/* Whether the first `len` bytes of the open slot can be made a message; if not, the library says why. */
static inline int ramway_inline_publisher_may_commit(struct ramway_topic_producer *hot, size_t len, uint32_t type_id) {
    return hot != NULL && hot->slot != RAMWAY_NO_SLOT && len <= hot->slot && type_id < RAMWAY_TYPE_ID_RESERVED;
}

/* ramway_commit */
static inline ramway_status ramway_inline_publisher_commit(ramway_publisher *publisher, uint32_t type_id, uint64_t tag,
                                                           size_t len) {
    struct ramway_topic_producer *hot = ramway_inline_publisher(publisher);
    if (RAMWAY_UNLIKELY(!ramway_inline_publisher_may_commit(hot, len, type_id))) {
        return ramway_commit(publisher, type_id, tag, len);
    }
    hot->slot = RAMWAY_NO_SLOT;
    return ramway_inline_publisher_frame(publisher, hot, ramway_inline_publisher_payload(hot), len, type_id, tag, 1);
}

/* ramway_commit_unflushed */
static inline ramway_status ramway_inline_publisher_commit_unflushed(ramway_publisher *publisher, uint32_t type_id,
                                                                     uint64_t tag, size_t len) {
    struct ramway_topic_producer *hot = ramway_inline_publisher(publisher);
    if (RAMWAY_UNLIKELY(!ramway_inline_publisher_may_commit(hot, len, type_id))) {
        return ramway_commit_unflushed(publisher, type_id, tag, len);
    }
    hot->slot = RAMWAY_NO_SLOT;
    return ramway_inline_publisher_frame(publisher, hot, ramway_inline_publisher_payload(hot), len, type_id, tag, 0);
}

/* ramway_flush */
static inline ramway_status ramway_inline_publisher_flush(ramway_publisher *publisher) {
    struct ramway_topic_producer *hot = ramway_inline_publisher(publisher);
    if (RAMWAY_UNLIKELY(hot == NULL)) {
        return ramway_flush(publisher);
    }
    if (hot->unflushed == RAMWAY_ALL_FLUSHED) {
        return RAMWAY_OK;
    }
    hot->unflushed = RAMWAY_ALL_FLUSHED;
    return ramway_inline_publisher_publish(publisher, hot);
}

/* ramway_abort */
static inline ramway_status ramway_inline_publisher_abort(ramway_publisher *publisher) {
    struct ramway_topic_producer *hot = ramway_inline_publisher(publisher);
    if (RAMWAY_UNLIKELY(hot == NULL)) {
        return ramway_abort(publisher);
    }
    hot->slot = RAMWAY_NO_SLOT;
    return RAMWAY_OK;
}

/* ramway_send */
static inline ramway_status ramway_inline_publisher_send(ramway_publisher *publisher, uint32_t type_id, uint64_t tag,
                                                         const void *data, size_t len, int64_t timeout_ns) {
    struct ramway_topic_producer *hot = ramway_inline_publisher(publisher);
    uint8_t *to = ramway_inline_publisher_room(hot, len);
    if (RAMWAY_UNLIKELY(to == NULL || (data == NULL && len != 0) || type_id >= RAMWAY_TYPE_ID_RESERVED)) {
        return ramway_send(publisher, type_id, tag, data, len, timeout_ns);
    }
    if (len != 0) {
        memcpy(to, data, len);
    }
    return ramway_inline_publisher_frame(publisher, hot, to, len, type_id, tag, 1);
}

/* The header of a frame. Relaxed atomic loads: each number is read exactly once, so that a publisher that rewrites it
 * cannot pass a check with one value and be used with another. */
struct ramway_topic_header {
    uint64_t word, tag, seq, time;
};

static inline struct ramway_topic_header ramway_inline_topic_header(const uint8_t *frame) {
    const uint64_t *words = (const uint64_t *)(const void *)frame;
    struct ramway_topic_header header;
    header.word = __atomic_load_n(words, __ATOMIC_RELAXED);
    header.tag = __atomic_load_n(words + 1, __ATOMIC_RELAXED);
    header.seq = __atomic_load_n(words + 2, __ATOMIC_RELAXED);
    header.time = __atomic_load_n(words + 3, __ATOMIC_RELAXED);
    return header;
}

/* Loads the shared tail; 1 if frames are there now. 0 also for a tail that cannot be: the library looks again and says so.
 * It may only move forward, up to released + capacity, in whole alignment steps. */
static inline int ramway_inline_subscriber_refresh(struct ramway_topic_consumer *hot) {
    /* Acquire: forbids the loads of the frames to rise above this load. Pairs with the publisher's release store. */
    uint64_t tail = __atomic_load_n(&hot->block->tail, __ATOMIC_ACQUIRE);
    uint64_t moved = tail - hot->tail;
    if (moved == 0 || RAMWAY_UNLIKELY(moved > hot->capacity - (hot->tail - hot->released) ||
                                      (moved & ((uint64_t)hot->align - 1)) != 0)) {
        return 0;
    }
    hot->tail = tail;
    return 1;
}

/* The next frame, if there is one, it lies within what was published, and none is lost before it; else 0, and nothing has
 * changed. */
static inline __attribute__((always_inline)) int ramway_inline_subscriber_next(struct ramway_topic_consumer *hot, ramway_topic_message *out) {
    const uint8_t *frame;
    struct ramway_topic_header header;
    uint64_t len, size;
    if (hot->head == hot->tail && !ramway_inline_subscriber_refresh(hot)) {
        return 0;
    }
    frame = hot->data + (hot->head & (hot->capacity - 1));
    /* The acquire load of `tail` orders the loads of the header. */
    header = ramway_inline_topic_header(frame);
    len = header.word & UINT32_MAX;
    size = ramway_inline_topic_frame_size(len, hot->align);
    if (RAMWAY_UNLIKELY(size > hot->tail - hot->head || len > RAMWAY_TOPIC_MESSAGE_MAX ||
                        header.seq != hot->expected)) {
        return 0;
    }
    hot->head += size;
    hot->expected = header.seq + 1;
    out->message.data = frame + RAMWAY_TOPIC_FRAME_HEADER;
    out->message.len = (size_t)len;
    out->message.tag = header.tag;
    out->message.type_id = (uint32_t)(header.word >> 32);
    out->seq = header.seq;
    out->time = header.time;
    out->lost = 0;
    return 1;
}

/* ramway_subscriber_recv */
static inline ramway_status ramway_inline_subscriber_recv(ramway_subscriber *subscriber, int64_t timeout_ns,
                                                          ramway_topic_message *out) {
    struct ramway_topic_consumer *hot = ramway_inline_viewer(subscriber);
    if (RAMWAY_LIKELY(hot != NULL && out != NULL && hot->head == hot->released &&
                      ramway_inline_subscriber_next(hot, out))) {
        return RAMWAY_OK;
    }
    return ramway_subscriber_recv(subscriber, timeout_ns, out);
}

/* ramway_subscriber_recv_batch */
static inline ramway_status ramway_inline_subscriber_recv_batch(ramway_subscriber *subscriber, int64_t timeout_ns,
                                                                ramway_topic_message *out, size_t max, size_t *count) {
    struct ramway_topic_consumer *hot = ramway_inline_viewer(subscriber);
    if (RAMWAY_LIKELY(hot != NULL && out != NULL && count != NULL && max != 0 && hot->head == hot->released)) {
        const uint64_t expected = hot->expected;
        size_t taken = 0;
        while (taken < max && ramway_inline_subscriber_next(hot, &out[taken])) {
            taken++;
        }
        if (RAMWAY_LIKELY(taken == max || hot->head == hot->tail)) {
            if (RAMWAY_LIKELY(taken != 0)) {
                *count = taken;
                return RAMWAY_OK;
            }
        } else {
            /* A message with others lost before it, or one that cannot be: the library takes the batch from its begin. */
            hot->head = hot->released;
            hot->expected = expected;
        }
    }
    return ramway_subscriber_recv_batch(subscriber, timeout_ns, out, max, count);
}

/* ramway_release */
static inline ramway_status ramway_inline_subscriber_release(ramway_subscriber *subscriber) {
    struct ramway_topic_consumer *hot = ramway_inline_viewer(subscriber);
    int decide = 0;
    if (RAMWAY_UNLIKELY(hot == NULL)) {
        return ramway_release(subscriber);
    }
    if (hot->head == hot->released) {
        return RAMWAY_OK;
    }
    /* Release: forbids our loads of the frames to sink below the position that lets the publisher overwrite them. Pairs
     * with the publisher's acquire load of `cursor`. */
    __atomic_store_n(hot->cursor, hot->head, __ATOMIC_RELEASE);
    hot->released = hot->head;
    /* The wake-up (not the space) is put off until a quarter is free, as in ramway_inline_release. */
    if (hot->tail - hot->head > hot->capacity - hot->capacity / RAMWAY_WAKE_FRACTION) {
        return RAMWAY_OK;
    }
    if (RAMWAY_LIKELY(hot->fences == 0)) {
        /* As in ramway_inline_publisher_publish, for store(cursor) and load(publisher_wait). */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } else {
        /* Likewise. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        decide = --hot->fences == 0;
    }
    /* Relaxed: ordered by the fence above. */
    if (RAMWAY_UNLIKELY(__atomic_load_n(&hot->area->publisher_wait, __ATOMIC_RELAXED) != 0 ||
                        __atomic_load_n(&hot->block->publisher.flags, __ATOMIC_RELAXED) != hot->peer_flags || decide)) {
        return ramway_inline_after_release(subscriber);
    }
    return RAMWAY_OK;
}

/* Whether the frame at a position may be overwritten by now. */
static inline int ramway_inline_is_overtaken(const struct ramway_topic_consumer *hot, uint64_t position) {
    /* Acquire: forbids the loads of the frame, header or payload, to sink below the load of `claim`. The publisher
     * announces there what it overwrites, and fences before it does. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    /* Relaxed: ordered by the fence above. */
    return __atomic_load_n(&hot->block->claim, __ATOMIC_RELAXED) - position > hot->capacity;
}

/* Copies a value whose length the compiler does not know. A call for a few words costs more than the words. */
static inline void ramway_inline_copy(void *to, const uint8_t *from, size_t len) {
    uint8_t *bytes = (uint8_t *)to;
    if (len > 64) {
        memcpy(bytes, from, len);
        return;
    }
    /* By words, of which the last may overlap the one before. */
    if (len >= 8) {
        size_t k;
        for (k = 0; k + 8 < len; k += 8) {
            memcpy(bytes + k, from + k, 8);
        }
        memcpy(bytes + len - 8, from + len - 8, 8);
    } else if (len >= 4) {
        memcpy(bytes, from, 4);
        memcpy(bytes + len - 4, from + len - 4, 4);
    } else {
        size_t k;
        for (k = 0; k < len; k++) {
            bytes[k] = from[k];
        }
    }
}

/* ramway_subscriber_latest. Whatever is not a whole message at the first attempt is left to the library. */
static inline ramway_status ramway_inline_subscriber_latest(ramway_subscriber *subscriber, void *buffer, size_t size,
                                                            ramway_topic_message *out) {
    struct ramway_topic_consumer *hot = ramway_inline_subscriber(subscriber);
    if (RAMWAY_LIKELY(hot != NULL && buffer != NULL)) {
        /* Acquire, in this order: forbids the load of `tail`, and those of the frame, to rise above: `tail` is then not
         * older than `last`. Pairs with the publisher's release stores. */
        uint64_t last = __atomic_load_n(&hot->block->last, __ATOMIC_ACQUIRE);
        uint64_t tail = __atomic_load_n(&hot->block->tail, __ATOMIC_ACQUIRE);
        uint64_t mask = (uint64_t)hot->align - 1;
        if (RAMWAY_LIKELY(last != tail && (last & mask) == hot->align - RAMWAY_TOPIC_FRAME_HEADER)) {
            const uint8_t *frame = hot->data + (last & (hot->capacity - 1));
            struct ramway_topic_header header = ramway_inline_topic_header(frame);
            uint64_t len = header.word & UINT32_MAX;
            uint64_t whole = ramway_inline_topic_frame_size(len, hot->align);
            /* Only a header that was not overwritten while it was read is believed; and its frame lies within what is
             * published, which is within the mapping. */
            if (RAMWAY_LIKELY(!ramway_inline_is_overtaken(hot, last) && len <= size && whole <= tail - last &&
                              tail - last <= hot->capacity && header.seq + 1 > 1)) {
                ramway_inline_copy(buffer, frame + RAMWAY_TOPIC_FRAME_HEADER, (size_t)len);
                /* A copy that the publisher wrote into meanwhile is thrown away. */
                if (RAMWAY_LIKELY(!ramway_inline_is_overtaken(hot, last))) {
                    if (hot->policy == RAMWAY_LATEST) {
                        /* It was seen: a wait is for a newer one. */
                        hot->head = hot->tail = hot->released = last;
                        if (hot->expected <= header.seq) {
                            hot->expected = header.seq + 1;
                        }
                    }
                    if (out != NULL) {
                        out->message.data = buffer;
                        out->message.len = (size_t)len;
                        out->message.tag = header.tag;
                        out->message.type_id = (uint32_t)(header.word >> 32);
                        out->seq = header.seq;
                        out->time = header.time;
                        out->lost = 0;
                    }
                    return RAMWAY_OK;
                }
            }
        }
    }
    return ramway_subscriber_latest(subscriber, buffer, size, out);
}

#ifdef __cplusplus
}
#endif

#endif
