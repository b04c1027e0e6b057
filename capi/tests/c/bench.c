/* Nanoseconds a message, 32 bytes, one thread sending and receiving in turn: what a call costs, and what inlining
 * saves. Not a measurement of the ring between two processes: that is `ramway bench`. */
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

static ramway_sender *s;
static ramway_receiver *r;
static uint64_t sum;

#define EACH(name, SEND, RECV, RELEASE)                                              \
    static void name(void) {                                                         \
        uint64_t payload[4] = {1, 2, 3, 4};                                          \
        ramway_message m;                                                            \
        int i;                                                                       \
        for (i = 0; i < MESSAGES; i++) {                                             \
            payload[0] = (uint64_t)i;                                                \
            CHECK_OK(SEND(s, 1, 0, payload, sizeof payload, RAMWAY_FOREVER));        \
            CHECK_OK(RECV(r, RAMWAY_FOREVER, &m));                                   \
            sum += *(const uint64_t *)m.data;                                        \
            CHECK_OK(RELEASE(r));                                                    \
        }                                                                            \
    }
EACH(each_call, ramway_send, ramway_recv, ramway_release)
EACH(each_inline, ramway_inline_send, ramway_inline_recv, ramway_inline_release)

#define BATCHED(name, RESERVE, COMMIT, FLUSH, RECV, RELEASE)                         \
    static void name(void) {                                                         \
        ramway_message m[BATCH];                                                     \
        void *slot;                                                                  \
        size_t n, k;                                                                 \
        int i;                                                                       \
        for (i = 0; i < MESSAGES; i += BATCH) {                                      \
            for (k = 0; k < BATCH; k++) {                                            \
                CHECK_OK(RESERVE(s, 32, RAMWAY_FOREVER, &slot));                     \
                memset(slot, (int)k, 32);                                            \
                CHECK_OK(COMMIT(s, 1, 0, 32));                                       \
            }                                                                        \
            CHECK_OK(FLUSH(s));                                                      \
            CHECK_OK(RECV(r, RAMWAY_FOREVER, m, BATCH, &n));                         \
            for (k = 0; k < n; k++) {                                                \
                sum += *(const uint64_t *)m[k].data;                                 \
            }                                                                        \
            CHECK_OK(RELEASE(r));                                                    \
        }                                                                            \
    }
BATCHED(batch_call, ramway_reserve, ramway_commit_unflushed, ramway_flush, ramway_recv_batch, ramway_release)
BATCHED(batch_inline, ramway_inline_reserve, ramway_inline_commit_unflushed, ramway_inline_flush,
        ramway_inline_recv_batch, ramway_inline_release)

int main(void) {
    static void (*const runs[])(void) = {each_call, each_inline, batch_call, batch_inline};
    static const char *const names[] = {"each, by call", "each, inline", "32 at a time, by call", "32 at a time, inline"};
    double ns[4][RUNS];
    int run, i;

    CHECK_OK(ramway_ring_pair(65536, &s, &r));
    for (run = 0; run < RUNS; run++) {
        for (i = 0; i < 4; i++) {
            double start = now();
            runs[i]();
            ns[i][run] = (now() - start) / MESSAGES;
        }
    }
    printf("%-24s %8s %8s   ns a message (send + receive + release, 32 B, one thread)\n", "", "minimum", "median");
    for (i = 0; i < 4; i++) {
        qsort(ns[i], RUNS, sizeof ns[i][0], by_value);
        printf("%-24s %8.1f %8.1f\n", names[i], ns[i][0], ns[i][RUNS / 2]);
    }
    CHECK(sum != 0);
    CHECK_OK(ramway_sender_close(s));
    CHECK_OK(ramway_receiver_close(r));
    return 0;
}
