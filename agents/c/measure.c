/* measure: the loops that are timed. */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

/* Message number n has the words n % CYCLE and those after it. */
enum { CYCLE = 4096, BATCH_MAX = 256 };

struct loop {
    size_t size;
    int64_t count, batch, group;
    uint64_t words;
    int64_t *stamp; /* when each group began, and the last one ended */
    size_t stamps;
};

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

static inline void put(ramway_sender *tx, size_t size, int64_t seq, bool flush) {
    void *slot;
    must(ramway_inline_reserve(tx, size, RAMWAY_FOREVER, &slot));
    fill(slot, size, (uint64_t)seq % CYCLE);
    must(flush ? ramway_inline_commit(tx, 0, 0, size) : ramway_inline_commit_unflushed(tx, 0, 0, size));
}

/* Receives at least one message and at most `most`. How many? */
static inline int64_t get(ramway_receiver *rx, struct loop *loop, int64_t most) {
    ramway_message messages[BATCH_MAX];
    size_t count = 1;
    if (most == 1) must(ramway_inline_recv(rx, RAMWAY_FOREVER, messages));
    else must(ramway_inline_recv_batch(rx, RAMWAY_FOREVER, messages, (size_t)most, &count));
    for (size_t i = 0; i < count; i++) loop->words += sum(messages[i].data, messages[i].len);
    must(ramway_inline_release(rx));
    return (int64_t)count;
}

static void ping_all(struct ends *ends, struct loop *loop) {
    int64_t due = loop->group;
    loop->stamp[loop->stamps++] = now_ns();
    for (int64_t seq = 0; seq < loop->count; seq++) {
        put(ends->sender, loop->size, seq, true);
        get(ends->receiver, loop, 1);
        if (seq + 1 != due) continue;
        due += loop->group;
        loop->stamp[loop->stamps++] = now_ns();
    }
}

static void echo_all(struct ends *ends, struct loop *loop) {
    for (int64_t seq = 0; seq < loop->count; seq++) {
        get(ends->receiver, loop, 1);
        put(ends->sender, loop->size, seq, true);
    }
}

static void send_all(struct ends *ends, struct loop *loop) {
    int64_t together = 0;
    for (int64_t seq = 0; seq < loop->count; seq++) {
        bool flush = ++together == loop->batch || seq + 1 == loop->count;
        if (flush) together = 0;
        put(ends->sender, loop->size, seq, flush);
    }
}

static void receive_all(struct ends *ends, struct loop *loop) {
    int64_t seen = 0, due = 1;
    while (seen < loop->count) {
        int64_t left = loop->count - seen;
        seen += get(ends->receiver, loop, loop->batch < left ? loop->batch : left);
        if (seen < due) continue;
        /* A stamp stands for a group: what came beyond it belongs to the next. */
        due += loop->group;
        loop->stamp[loop->stamps++] = now_ns();
    }
}

void measure(struct ends *ends, struct line *line) {
    static const struct {
        const char *name;
        void (*run)(struct ends *, struct loop *);
        bool leads;
    } loops[] = {{"ping", ping_all, true}, {"echo", echo_all, false}, {"send", send_all, true}, {"receive", receive_all, false}};
    const char *name = text(line, "do", "");
    struct loop loop = {.size = (size_t)number(line, "size", 0), .count = number(line, "count", 0),
                        .batch = number(line, "batch", 1), .group = number(line, "group", 1)};
    uint32_t policy = wait_policy(line);
    size_t at = 0;
    end_of(line);
    while (at < 4 && strcmp(loops[at].name, name) != 0) at++;
    if (at == 4) refuse("measure", name);
    if (loop.batch > BATCH_MAX) loop.batch = BATCH_MAX;
    if (ends->sender != NULL) must(ramway_sender_set_wait_policy(ends->sender, policy));
    if (ends->receiver != NULL) must(ramway_receiver_set_wait_policy(ends->receiver, policy));
    loop.stamp = malloc(sizeof *loop.stamp * (size_t)(loop.count / loop.group + 2));
    if (loop.stamp == NULL) abort();
    say("ready");
    /* The other side is told first: it polls by then. */
    struct line go;
    if (loops[at].leads) next_line(&go);
    int64_t began = now_ns();
    loops[at].run(ends, &loop);
    int64_t ended = now_ns();
    printf("measured began_ns=%lld ended_ns=%lld words=%llu samples=", (long long)began, (long long)ended,
           (unsigned long long)loop.words);
    for (size_t i = 1; i < loop.stamps; i++) printf("%s%lld", i > 1 ? "," : "", (long long)(loop.stamp[i] - loop.stamp[i - 1]));
    say("%s", "");
    free(loop.stamp);
}
