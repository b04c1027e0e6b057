/* A million messages each way of sending and receiving, and not one allocation, in the program or in the library:
 * malloc and its siblings are this program's own and count. */
#define _GNU_SOURCE
#include "check.h"
#include "ramway_inline.h"

#include <errno.h>
#include <stdatomic.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_long calls;

void *malloc(size_t size) {
    atomic_fetch_add(&calls, 1);
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    atomic_fetch_add(&calls, 1);
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
    atomic_fetch_add(&calls, 1);
    return __libc_realloc(old, size);
}
void *aligned_alloc(size_t align, size_t size) {
    atomic_fetch_add(&calls, 1);
    return __libc_memalign(align, size);
}
int posix_memalign(void **out, size_t align, size_t size) {
    atomic_fetch_add(&calls, 1);
    *out = __libc_memalign(align, size);
    return *out == NULL ? ENOMEM : 0;
}
void free(void *old) {
    atomic_fetch_add(&calls, 1);
    __libc_free(old);
}

enum { MESSAGES = 1000000 };

/* A topic: each policy, and what a loop meets. */
static void topics(void) {
    ramway_topic_options o = RAMWAY_TOPIC_OPTIONS_INIT;
    ramway_publisher *p, *ejects;
    ramway_subscriber *reliable, *lossy, *latest, *slow;
    ramway_topic_message m[16];
    char payload[32] = "thirty-two bytes of a payload", copy[32];
    size_t i, k, n;
    long before;

    o.capacity = 4096;
    CHECK_OK(ramway_publisher_create("alloc", &o, &p));
    CHECK_OK(ramway_subscriber_open("alloc", NULL, &reliable));
    o.policy = RAMWAY_LOSSY;
    CHECK_OK(ramway_subscriber_open("alloc", &o, &lossy));
    o.policy = RAMWAY_LATEST;
    CHECK_OK(ramway_subscriber_open("alloc", &o, &latest));
    o.policy = RAMWAY_RELIABLE;
    o.eject_after_ns = 1;
    CHECK_OK(ramway_publisher_create("alloc-ejects", &o, &ejects));
    CHECK_OK(ramway_subscriber_open("alloc-ejects", NULL, &slow));
    before = calls;
    for (i = 0; i < MESSAGES; i++) {
        CHECK_OK(i % 2 ? ramway_send(p, 1, i, payload, 32, RAMWAY_FOREVER)
                       : ramway_inline_publisher_send(p, 1, i, payload, 32, RAMWAY_FOREVER));
        CHECK_OK(i % 2 ? ramway_subscriber_recv(reliable, RAMWAY_FOREVER, m)
                       : ramway_inline_subscriber_recv(reliable, RAMWAY_FOREVER, m));
        CHECK(m[0].message.tag == i && m[0].lost == 0);
        CHECK_OK(ramway_inline_subscriber_release(reliable));
        CHECK_OK(ramway_subscriber_latest(reliable, copy, sizeof copy, m));
        CHECK_OK(ramway_inline_subscriber_latest(latest, copy, sizeof copy, m));
        CHECK_STATUS(ramway_subscriber_wait_newer(latest, RAMWAY_TRY, copy, sizeof copy, m), RAMWAY_EMPTY);
        if (i % 4 == 0) {
            CHECK_OK(ramway_subscriber_recv_into(lossy, RAMWAY_TRY, copy, sizeof copy, m));
        }
    }
    CHECK(ramway_subscriber_lost(lossy) > MESSAGES / 2);
    CHECK(calls == before);
    /* Whoever gets copies keeps the memory for them: after the first batch there are no new ones. */
    for (i = 0; i < MESSAGES; i += 16) {
        for (k = 0; k < 16; k++) {
            CHECK_OK(ramway_inline_publisher_send(p, 1, i, payload, 32, RAMWAY_FOREVER));
        }
        CHECK_OK(ramway_subscriber_recv_batch(lossy, RAMWAY_TRY, m, 16, &n));
        CHECK_OK(ramway_release(lossy));
        CHECK_OK(ramway_subscriber_recv_batch(reliable, RAMWAY_TRY, m, 16, &n));
        CHECK_OK(ramway_release(reliable));
        if (i == 0) {
            before = calls;
        }
    }
    CHECK(calls == before);
    /* Ejected again and again. */
    for (i = 0; i < 20; i++) {
        for (k = 0; k < 100; k++) {
            CHECK_OK(ramway_send(ejects, 1, i, payload, 32, RAMWAY_FOREVER));
        }
        CHECK_STATUS(ramway_subscriber_recv(slow, RAMWAY_TRY, m), RAMWAY_LAGGED);
        CHECK(ramway_last_lost() > 0 && ramway_last_error()[0] != 0);
    }
    CHECK(calls == before);
    CHECK_OK(ramway_receiver_close(slow));
    CHECK_OK(ramway_sender_close(ejects));
    CHECK_OK(ramway_receiver_close(latest));
    CHECK_OK(ramway_receiver_close(lossy));
    CHECK_OK(ramway_receiver_close(reliable));
    CHECK_OK(ramway_sender_close(p));
}

int main(void) {
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message m[32];
    ramway_bytes many[8];
    char payload[32] = "thirty-two bytes of a payload", copy[32];
    void *slot;
    size_t i, k, n;
    long before;

    before = calls;
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    /* The counters are seen to work, in the library's calls too. */
    CHECK(calls > before);
    for (k = 0; k < 8; k++) {
        many[k].data = payload;
        many[k].len = sizeof payload;
    }

    before = calls;
    for (i = 0; i < MESSAGES; i++) {
        CHECK_OK(ramway_send(s, 1, i, payload, sizeof payload, RAMWAY_FOREVER));
        CHECK_OK(ramway_recv(r, RAMWAY_FOREVER, m));
        CHECK(m[0].tag == i && m[0].len == 32);
        CHECK_OK(ramway_release(r));
    }
    for (i = 0; i < MESSAGES; i++) {
        CHECK_OK(ramway_inline_send(s, 1, i, payload, sizeof payload, RAMWAY_FOREVER));
        CHECK_OK(ramway_inline_recv(r, RAMWAY_FOREVER, m));
        CHECK(m[0].tag == i);
        CHECK_OK(ramway_inline_release(r));
    }
    for (i = 0; i < MESSAGES; i += 16) {
        for (k = 0; k < 8; k++) {
            CHECK_OK(ramway_inline_reserve(s, 32, RAMWAY_TRY, &slot));
            memcpy(slot, payload, 32);
            CHECK_OK(ramway_inline_commit_unflushed(s, 0, 0, 32));
        }
        CHECK_OK(ramway_inline_flush(s));
        CHECK_OK(ramway_send_batch(s, 0, 0, many, 8, RAMWAY_TRY, &n));
        CHECK_OK(ramway_inline_recv_batch(r, RAMWAY_TRY, m, 16, &n));
        CHECK(n == 16);
        CHECK_OK(ramway_inline_release(r));
    }
    for (i = 0; i < MESSAGES; i++) {
        CHECK_OK(ramway_send_vectored(s, 0, 0, many, 2, RAMWAY_TRY));
        CHECK_STATUS(ramway_recv_into(r, RAMWAY_TRY, copy, sizeof copy, NULL), RAMWAY_TOO_LARGE);
        CHECK_OK(ramway_recv(r, RAMWAY_TRY, m));
        CHECK_OK(ramway_release(r));
    }
    /* What a polling loop meets. */
    for (i = 0; i < MESSAGES / 10; i++) {
        CHECK_STATUS(ramway_recv(r, RAMWAY_TRY, m), RAMWAY_EMPTY);
        CHECK(ramway_last_error()[0] != 0);
    }
    CHECK_OK(ramway_reserve(s, 4080, RAMWAY_TRY, &slot));
    CHECK_OK(ramway_commit(s, 0, 0, 4080));
    for (i = 0; i < MESSAGES / 10; i++) {
        CHECK_STATUS(ramway_inline_send(s, 0, 0, payload, 32, RAMWAY_TRY), RAMWAY_FULL);
    }
    CHECK_STATUS(ramway_send(s, 0, 0, payload, 32, 1000000), RAMWAY_TIMED_OUT);
    CHECK(calls == before);
    printf("%d messages each way, %ld calls of malloc, calloc, realloc, free\n", MESSAGES, calls - before);

    CHECK_OK(ramway_sender_close(s));
    CHECK_OK(ramway_receiver_close(r));
    topics();
    return 0;
}
