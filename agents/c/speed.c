/* flood, drain and the ping of `speed`: the loops that are measured. */
#include "program.h"

#include <stdlib.h>

static inline void fill(uint8_t *bytes, size_t len, uint64_t seq) {
    for (size_t i = 0; i < len / 8; i++) {
        uint64_t word = seq + i;
        memcpy(bytes + 8 * i, &word, 8);
    }
}

static inline uint64_t sum(const uint8_t *bytes, size_t len) {
    uint64_t total = 0;
    for (size_t i = 0; i < len / 8; i++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * i, 8);
        total += word;
    }
    return total;
}

static inline size_t size_of(const struct args *args) {
    return args->sizes > 0 ? (size_t)args->sizes : 32;
}

static inline void put(ramway_sender *tx, size_t size, uint64_t seq, bool flush) {
    void *slot;
    must(ramway_inline_reserve(tx, size, RAMWAY_FOREVER, &slot));
    fill(slot, size, seq);
    must(flush ? ramway_inline_commit(tx, 0, 0, size) : ramway_inline_commit_unflushed(tx, 0, 0, size));
}

void flood(const struct args *args) {
    struct ends ends = open_ends(args, args->ring, NULL);
    attached_sender(ends.sender);
    size_t size = size_of(args);
    int64_t batch = args->batch > 0 ? args->batch : 1, in_batch = 0;
    for (int64_t seq = 0; seq < args->count; seq++) {
        bool flush = ++in_batch == batch || seq + 1 == args->count;
        if (flush) in_batch = 0;
        put(ends.sender, size, (uint64_t)seq, flush);
    }
    say("sent count=%lld next=%lld", (long long)args->count, (long long)args->count);
    close_ends(&ends);
}

enum { BATCH_MAX = 256 };

/* Receives up to message number `until`, and gives the sum of all words. */
static uint64_t take(ramway_receiver *rx, int64_t from, int64_t until, int64_t batch) {
    ramway_message messages[BATCH_MAX];
    uint64_t total = 0;
    while (from < until) {
        size_t count = 1;
        if (batch == 1) {
            must(ramway_inline_recv(rx, RAMWAY_FOREVER, messages));
        } else {
            int64_t max = batch < until - from ? batch : until - from;
            must(ramway_inline_recv_batch(rx, RAMWAY_FOREVER, messages, (size_t)max, &count));
        }
        for (size_t i = 0; i < count; i++) total += sum(messages[i].data, messages[i].len);
        must(ramway_inline_release(rx));
        from += (int64_t)count;
    }
    return total;
}

void drain(const struct args *args) {
    struct ends ends = open_ends(args, NULL, args->ring);
    attached_receiver(ends.receiver);
    int64_t batch = args->batch > 0 ? args->batch : 1, warm = args->count / 10;
    if (batch > BATCH_MAX) batch = BATCH_MAX;
    uint64_t total = take(ends.receiver, 0, warm, batch);
    int64_t began = now_ns();
    total += take(ends.receiver, warm, args->count, batch);
    say("rate messages=%lld ns=%lld sum=%llu", (long long)(args->count - warm), (long long)(now_ns() - began),
        (unsigned long long)total);
    close_ends(&ends);
}

void fast_ping(const struct args *args) {
    struct ends ends = open_ends(args, args->ring, args->back);
    attached_sender(ends.sender);
    size_t size = size_of(args);
    uint64_t total = 0;
    struct timer timer = timer_start(args->count, args->group);
    for (int64_t seq = 0; seq < args->count; seq++) {
        ramway_message m;
        put(ends.sender, size, (uint64_t)seq, true);
        must(ramway_inline_recv(ends.receiver, RAMWAY_FOREVER, &m));
        total += sum(m.data, m.len);
        must(ramway_inline_release(ends.receiver));
        timer_trip(&timer, seq);
    }
    timer_report(&timer);
    say("sum value=%llu", (unsigned long long)total);
    close_ends(&ends);
}
