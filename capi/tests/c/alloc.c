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

int main(void) {
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message m[32];
    ramway_bytes many[8];
    char payload[32] = "thirty-two bytes of some payload", copy[32];
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
    return 0;
}
