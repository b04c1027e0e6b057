/* Nanoseconds a message, 32 bytes, one thread sending and receiving in turn: what a call costs, what inlining saves, and
 * what a topic costs beside a ring. Not a measurement between two processes: that is `ramway bench`.
 *
 *     bench              a table
 *     bench NAME COUNT   that many messages of one row, for a tool that counts instructions */
#define _GNU_SOURCE
#include "check.h"
#include "ramway_inline.h"

#include <time.h>

enum { MESSAGES = 2000000, RUNS = 9, BATCH = 32 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of a ring, and of a topic. */
static ramway_sender *s;
static ramway_receiver *r;
static ramway_publisher *p;
static ramway_subscriber *t;
static uint64_t sum;

#define EACH(name, MESSAGE, FIRST, s, r, SEND, RECV, RELEASE)                        \
    static void name(int count) {                                                    \
        uint64_t payload[4] = {1, 2, 3, 4};                                          \
        MESSAGE m;                                                                   \
        int i;                                                                       \
        for (i = 0; i < count; i++) {                                                \
            payload[0] = (uint64_t)i;                                                \
            CHECK_OK(SEND(s, 1, 0, payload, sizeof payload, RAMWAY_FOREVER));        \
            CHECK_OK(RECV(r, RAMWAY_FOREVER, &m));                                   \
            sum += *(const uint64_t *)FIRST(m).data;                                 \
            CHECK_OK(RELEASE(r));                                                    \
        }                                                                            \
    }
#define OF_RING(m) (m)
#define OF_TOPIC(m) ((m).message)
EACH(each_call, ramway_message, OF_RING, s, r, ramway_send, ramway_recv, ramway_release)
EACH(each_inline, ramway_message, OF_RING, s, r, ramway_inline_send, ramway_inline_recv, ramway_inline_release)
EACH(topic_each_call, ramway_topic_message, OF_TOPIC, p, t, ramway_send, ramway_subscriber_recv, ramway_release)
EACH(topic_each_inline, ramway_topic_message, OF_TOPIC, p, t, ramway_inline_publisher_send, ramway_inline_subscriber_recv,
     ramway_inline_subscriber_release)

#define BATCHED(name, MESSAGE, FIRST, s, r, RESERVE, COMMIT, FLUSH, RECV, RELEASE)   \
    static void name(int count) {                                                    \
        MESSAGE m[BATCH];                                                            \
        void *slot;                                                                  \
        size_t n, k;                                                                 \
        int i;                                                                       \
        for (i = 0; i < count; i += BATCH) {                                         \
            for (k = 0; k < BATCH; k++) {                                            \
                CHECK_OK(RESERVE(s, 32, RAMWAY_FOREVER, &slot));                     \
                memset(slot, (int)k, 32);                                            \
                CHECK_OK(COMMIT(s, 1, 0, 32));                                       \
            }                                                                        \
            CHECK_OK(FLUSH(s));                                                      \
            CHECK_OK(RECV(r, RAMWAY_FOREVER, m, BATCH, &n));                         \
            for (k = 0; k < n; k++) {                                                \
                sum += *(const uint64_t *)FIRST(m[k]).data;                          \
            }                                                                        \
            CHECK_OK(RELEASE(r));                                                    \
        }                                                                            \
    }
BATCHED(batch_call, ramway_message, OF_RING, s, r, ramway_reserve, ramway_commit_unflushed, ramway_flush,
        ramway_recv_batch, ramway_release)
BATCHED(batch_inline, ramway_message, OF_RING, s, r, ramway_inline_reserve, ramway_inline_commit_unflushed,
        ramway_inline_flush, ramway_inline_recv_batch, ramway_inline_release)
BATCHED(topic_batch_call, ramway_topic_message, OF_TOPIC, p, t, ramway_reserve, ramway_commit_unflushed, ramway_flush,
        ramway_subscriber_recv_batch, ramway_release)
BATCHED(topic_batch_inline, ramway_topic_message, OF_TOPIC, p, t, ramway_inline_publisher_reserve,
        ramway_inline_publisher_commit_unflushed, ramway_inline_publisher_flush, ramway_inline_subscriber_recv_batch,
        ramway_inline_subscriber_release)

#define LATEST(name, CALL)                                                           \
    static void name(int count) {                                                    \
        uint64_t value[4];                                                           \
        ramway_topic_message m;                                                      \
        int i;                                                                       \
        for (i = 0; i < count; i++) {                                                \
            CHECK_OK(CALL(t, value, sizeof value, &m));                              \
            sum += value[0] + m.seq;                                                 \
        }                                                                            \
    }
LATEST(latest_call, ramway_subscriber_latest)
LATEST(latest_inline, ramway_inline_subscriber_latest)

static const struct {
    const char *name;
    void (*run)(int count);
} rows[] = {
    {"each, by call", each_call},
    {"each, inline", each_inline},
    {"32 at a time, by call", batch_call},
    {"32 at a time, inline", batch_inline},
    {"topic: each, by call", topic_each_call},
    {"topic: each, inline", topic_each_inline},
    {"topic: 32 at a time, by call", topic_batch_call},
    {"topic: 32 at a time, inline", topic_batch_inline},
    {"topic: latest, by call", latest_call},
    {"topic: latest, inline", latest_inline},
};
enum { ROWS = sizeof rows / sizeof *rows };

int main(int argc, char **argv) {
    double ns[ROWS][RUNS];
    ramway_topic_options o = RAMWAY_TOPIC_OPTIONS_INIT;
    int run, i;

    CHECK_OK(ramway_ring_pair(65536, &s, &r));
    o.capacity = 65536;
    o.flags = RAMWAY_DISCARD;
    CHECK_OK(ramway_publisher_create("bench-topic", &o, &p));
    CHECK_OK(ramway_subscriber_open("bench-topic", NULL, &t));
    topic_each_call(1);
    for (run = 0; run < RUNS; run++) {
        for (i = 0; i < ROWS; i++) {
            double start = now();
            if (argc < 3) {
                rows[i].run(MESSAGES);
            } else if (run == 0 && strcmp(rows[i].name, argv[1]) == 0) {
                rows[i].run(atoi(argv[2]));
            }
            ns[i][run] = (now() - start) / MESSAGES;
        }
    }
    if (argc < 3) {
        printf("%-30s %8s %8s   ns a message (send + receive + release, 32 B, one thread)\n", "", "minimum", "median");
        for (i = 0; i < ROWS; i++) {
            qsort(ns[i], RUNS, sizeof ns[i][0], by_value);
            printf("%-30s %8.1f %8.1f\n", rows[i].name, ns[i][0], ns[i][RUNS / 2]);
        }
        CHECK(sum != 0);
    }
    CHECK_OK(ramway_sender_close(s));
    CHECK_OK(ramway_receiver_close(r));
    CHECK_OK(ramway_sender_close(p));
    CHECK_OK(ramway_receiver_close(t));
    return 0;
}
