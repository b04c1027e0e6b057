/* A ring within one process: every call, by the library (PATH 0) and inline (PATH 1). */
#define _DEFAULT_SOURCE
#include "check.h"
#include "ramway_inline.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int path;
#define SEND(...) (path ? ramway_inline_send(__VA_ARGS__) : ramway_send(__VA_ARGS__))
#define RESERVE(...) (path ? ramway_inline_reserve(__VA_ARGS__) : ramway_reserve(__VA_ARGS__))
#define COMMIT(...) (path ? ramway_inline_commit(__VA_ARGS__) : ramway_commit(__VA_ARGS__))
#define UNFLUSHED(...) (path ? ramway_inline_commit_unflushed(__VA_ARGS__) : ramway_commit_unflushed(__VA_ARGS__))
#define FLUSH(...) (path ? ramway_inline_flush(__VA_ARGS__) : ramway_flush(__VA_ARGS__))
#define ABORT(...) (path ? ramway_inline_abort(__VA_ARGS__) : ramway_abort(__VA_ARGS__))
#define RECV(...) (path ? ramway_inline_recv(__VA_ARGS__) : ramway_recv(__VA_ARGS__))
#define BATCH(...) (path ? ramway_inline_recv_batch(__VA_ARGS__) : ramway_recv_batch(__VA_ARGS__))
#define RELEASE(...) (path ? ramway_inline_release(__VA_ARGS__) : ramway_release(__VA_ARGS__))

#define MS INT64_C(1000000)

static void one_message(void) {
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message m;
    void *slot;
    uint64_t tag;

    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    CHECK(ramway_sender_capacity(s) == 4096 && ramway_receiver_capacity(r) == 4096);
    CHECK(ramway_sender_align(s) == 16 && ramway_receiver_align(r) == 16);
    CHECK(ramway_sender_max_message_len(s) == 4080);
    CHECK(ramway_sender_epoch(s) == 1 && ramway_receiver_epoch(r) == 1);
    CHECK(ramway_sender_peer_epoch(s) == 1 && ramway_receiver_peer_epoch(r) == 1);
    CHECK(ramway_sender_is_peer_alive(s) && ramway_receiver_is_peer_alive(r));
    CHECK(!ramway_sender_last_tag(s, &tag));

    CHECK_STATUS(RECV(r, RAMWAY_TRY, &m), RAMWAY_EMPTY);
    CHECK_STATUS(RECV(r, 1 * MS, &m), RAMWAY_TIMED_OUT);
    CHECK_OK(SEND(s, 7, 42, "hello", 5, RAMWAY_FOREVER));
    CHECK(ramway_sender_last_tag(s, &tag) && tag == 42);
    CHECK(ramway_receiver_len(r) == 32 && ramway_sender_len(s) == 32);
    CHECK_OK(RECV(r, RAMWAY_FOREVER, &m));
    CHECK(m.len == 5 && m.type_id == 7 && m.tag == 42 && memcmp(m.data, "hello", 5) == 0);
    CHECK(((uintptr_t)m.data & 15) == 0);
    CHECK_STATUS(RECV(r, RAMWAY_TRY, &m), RAMWAY_BUSY);
    CHECK_STATUS(ramway_recv_into(r, RAMWAY_TRY, &tag, sizeof tag, NULL), RAMWAY_BUSY);
    CHECK_OK(RELEASE(r));
    CHECK_OK(RELEASE(r));
    CHECK_STATUS(RECV(r, RAMWAY_TRY, &m), RAMWAY_EMPTY);

    /* A message of length 0 is a message, and an untagged one sets the last tag to 0. */
    CHECK_OK(SEND(s, 1, 0, NULL, 0, RAMWAY_TRY));
    CHECK(ramway_sender_last_tag(s, &tag) && tag == 0);
    CHECK_OK(RECV(r, RAMWAY_TRY, &m));
    CHECK(m.len == 0 && m.type_id == 1 && m.data != NULL);
    CHECK_OK(RELEASE(r));

    /* Slots. */
    CHECK_OK(RESERVE(s, 100, RAMWAY_TRY, &slot));
    CHECK(((uintptr_t)slot & 15) == 0);
    CHECK_STATUS(RESERVE(s, 100, RAMWAY_TRY, &slot), RAMWAY_BUSY);
    CHECK_OK(RELEASE(r));
    CHECK_OK(ABORT(s));
    CHECK_OK(ABORT(s));
    CHECK_STATUS(COMMIT(s, 0, 0, 0), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(RESERVE(s, 100, RAMWAY_TRY, &slot));
    CHECK_STATUS(SEND(s, 0, 0, "x", 1, RAMWAY_TRY), RAMWAY_BUSY);
    CHECK_STATUS(COMMIT(s, 0, 0, 101), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(COMMIT(s, 0xFFFF0000u, 0, 3), RAMWAY_INVALID_ARGUMENT);
    CHECK(strstr(ramway_last_error(), "0xffff0000") != NULL);
    memcpy(slot, "abc", 3);
    CHECK_OK(COMMIT(s, 0xFFFEFFFFu, UINT64_MAX, 3));
    CHECK_OK(RECV(r, RAMWAY_TRY, &m));
    CHECK(m.len == 3 && m.type_id == 0xFFFEFFFFu && m.tag == UINT64_MAX && memcmp(m.data, "abc", 3) == 0);
    CHECK_OK(RELEASE(r));

    /* Limits. */
    CHECK_STATUS(SEND(s, 0xFFFF0000u, 0, "x", 1, RAMWAY_TRY), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(RESERVE(s, 4081, RAMWAY_TRY, &slot), RAMWAY_TOO_LARGE);
    CHECK(strstr(ramway_last_error(), "4080") != NULL);
    CHECK_STATUS(RESERVE(s, SIZE_MAX, RAMWAY_TRY, &slot), RAMWAY_TOO_LARGE);
    CHECK_STATUS(ramway_send(s, 0, 0, "x", SIZE_MAX, RAMWAY_TRY), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(RESERVE(s, 4080, RAMWAY_TRY, &slot));
    memset(slot, 'z', 4080);
    CHECK_OK(COMMIT(s, 0, 0, 4080));
    CHECK_STATUS(RESERVE(s, 0, RAMWAY_TRY, &slot), RAMWAY_FULL);
    CHECK_STATUS(RESERVE(s, 0, 1 * MS, &slot), RAMWAY_TIMED_OUT);
    CHECK_STATUS(SEND(s, 0, 0, NULL, 0, RAMWAY_TRY), RAMWAY_FULL);
    CHECK_OK(RECV(r, RAMWAY_TRY, &m));
    CHECK(m.len == 4080 && ((const char *)m.data)[4079] == 'z');
    CHECK_OK(RELEASE(r));

    CHECK_OK(ramway_sender_set_wait_policy(s, RAMWAY_WAIT_SPIN));
    CHECK_OK(ramway_receiver_set_wait_policy(r, RAMWAY_WAIT_BLOCK));
    CHECK_STATUS(ramway_sender_set_wait_policy(s, 99), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(ramway_sender_set_interruptible(s, true));
    CHECK_OK(ramway_receiver_set_interruptible(r, false));

    /* An end that is final: what was sent is delivered before it. */
    CHECK_OK(SEND(s, 0, 0, "last", 4, RAMWAY_TRY));
    CHECK_OK(ramway_sender_close(s));
    CHECK_OK(RECV(r, RAMWAY_FOREVER, &m));
    CHECK(m.len == 4);
    CHECK_OK(RELEASE(r));
    CHECK_STATUS(RECV(r, RAMWAY_FOREVER, &m), RAMWAY_CLOSED);
    CHECK_STATUS(RECV(r, RAMWAY_TRY, &m), RAMWAY_CLOSED);
    CHECK(!ramway_receiver_is_peer_alive(r));
    CHECK_OK(ramway_receiver_close(r));
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    CHECK_OK(ramway_receiver_close(r));
    CHECK_STATUS(SEND(s, 0, 0, "x", 1, RAMWAY_TRY), RAMWAY_CLOSED);
    CHECK_STATUS(FLUSH(s), RAMWAY_CLOSED);
    CHECK_OK(ramway_sender_close(s));
}

static void batches(void) {
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message m[8];
    ramway_bytes many[300], pieces[3] = {{"one ", 4}, {NULL, 0}, {"message", 7}};
    char copy[16];
    void *slot;
    size_t n, i;

    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    for (i = 0; i < 5; i++) {
        CHECK_OK(RESERVE(s, 8, RAMWAY_TRY, &slot));
        memcpy(slot, &i, sizeof i);
        CHECK_OK(UNFLUSHED(s, (uint32_t)i, i, sizeof i));
    }
    CHECK_STATUS(BATCH(r, RAMWAY_TRY, m, 8, &n), RAMWAY_EMPTY);
    CHECK(n == 0);
    CHECK_OK(FLUSH(s));
    CHECK_OK(FLUSH(s));
    CHECK_OK(BATCH(r, RAMWAY_TRY, m, 3, &n));
    CHECK(n == 3 && m[2].tag == 2);
    CHECK_STATUS(BATCH(r, RAMWAY_TRY, m, 3, &n), RAMWAY_BUSY);
    CHECK_OK(RELEASE(r));
    CHECK_OK(BATCH(r, RAMWAY_FOREVER, m, 8, &n));
    CHECK(n == 2 && m[1].type_id == 4 && memcmp(m[1].data, &(size_t){4}, sizeof(size_t)) == 0);
    CHECK_OK(RELEASE(r));
    CHECK(ramway_receiver_len(r) == 0);

    /* A slot that is open does not hold up a flush. */
    CHECK_OK(RESERVE(s, 8, RAMWAY_TRY, &slot));
    CHECK_OK(UNFLUSHED(s, 9, 0, 0));
    CHECK_OK(RESERVE(s, 8, RAMWAY_TRY, &slot));
    CHECK_OK(FLUSH(s));
    CHECK_OK(RECV(r, RAMWAY_TRY, m));
    CHECK(m[0].type_id == 9);
    CHECK_OK(RELEASE(r));
    CHECK_OK(ABORT(s));

    CHECK_OK(ramway_send_vectored(s, 3, 4, pieces, 3, RAMWAY_TRY));
    CHECK_OK(RECV(r, RAMWAY_TRY, m));
    CHECK(m[0].len == 11 && memcmp(m[0].data, "one message", 11) == 0 && m[0].type_id == 3 && m[0].tag == 4);
    CHECK_OK(RELEASE(r));

    /* More than fits: what fits is sent. */
    for (i = 0; i < 300; i++) {
        many[i].data = "0123456789abcdef";
        many[i].len = 16;
    }
    CHECK_OK(ramway_send_batch(s, 1, 0, many, 300, RAMWAY_TRY, &n));
    CHECK(n == 4096 / 32);
    CHECK_STATUS(ramway_send_batch(s, 1, 0, many, 300, 1 * MS, &n), RAMWAY_TIMED_OUT);
    CHECK(n == 0);
    CHECK_OK(ramway_send_batch(s, 1, 0, many, 0, RAMWAY_TRY, &n));
    CHECK_STATUS(ramway_recv_into(r, RAMWAY_TRY, copy, 15, m), RAMWAY_TOO_LARGE);
    CHECK(m[0].len == 16);
    for (i = 0; i < 4096 / 32; i++) {
        CHECK_OK(ramway_recv_into(r, RAMWAY_FOREVER, copy, sizeof copy, m));
        CHECK(m[0].data == copy && m[0].len == 16 && m[0].type_id == 1 && memcmp(copy, many[0].data, 16) == 0);
    }
    CHECK_STATUS(ramway_recv_into(r, RAMWAY_TRY, copy, sizeof copy, m), RAMWAY_EMPTY);
    CHECK_STATUS(ramway_send_batch(s, 0xFFFF0000u, 0, many, 1, RAMWAY_TRY, &n), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(ramway_sender_close(s));
    CHECK_OK(ramway_receiver_close(r));
}

static void names(void) {
    ramway_options o = RAMWAY_OPTIONS_INIT;
    ramway_sender *s, *other;
    ramway_receiver *r;
    ramway_message m;
    uint64_t tag;

    CHECK_STATUS(ramway_sender_open("c-ring", NULL, &s), RAMWAY_NOT_FOUND);
    CHECK(s == NULL && strstr(ramway_last_error(), "c-ring") != NULL);
    CHECK_STATUS(ramway_sender_create("no such name!", NULL, &s), RAMWAY_INVALID_ARGUMENT);
    o.capacity = 10000;
    o.align = 64;
    o.wait_policy = RAMWAY_WAIT_BLOCK;
    CHECK_OK(ramway_sender_create("c-ring", &o, &s));
    CHECK(ramway_sender_capacity(s) == 16384 && ramway_sender_align(s) == 64);
    CHECK(!ramway_sender_is_peer_alive(s) && ramway_sender_peer_epoch(s) == 0);
    CHECK_STATUS(ramway_sender_open("c-ring", NULL, &other), RAMWAY_BUSY);
    CHECK_STATUS(ramway_sender_create("c-ring", NULL, &other), RAMWAY_ALREADY_EXISTS);
    o.align = 32;
    CHECK_STATUS(ramway_receiver_open("c-ring", &o, &r), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(SEND(s, 0, 11, "for whoever comes", 17, RAMWAY_TRY));
    CHECK_OK(ramway_sender_close(s));
    CHECK_STATUS(ramway_receiver_create("c-ring", NULL, &r), RAMWAY_ALREADY_EXISTS);
    CHECK(strstr(ramway_last_error(), "1") != NULL);

    /* A successor goes on where the last one was. */
    CHECK_OK(ramway_sender_open("c-ring", NULL, &s));
    CHECK(ramway_sender_epoch(s) == 2 && ramway_sender_last_tag(s, &tag) && tag == 11);
    CHECK_OK(ramway_receiver_open_or_create("c-ring", NULL, &r));
    CHECK_OK(RECV(r, RAMWAY_TRY, &m));
    CHECK(m.tag == 11 && ((uintptr_t)m.data & 63) == 0);
    CHECK_OK(ramway_receiver_close(r));
    CHECK_OK(ramway_receiver_open("c-ring", NULL, &r));
    CHECK_OK(RECV(r, RAMWAY_TRY, &m));
    CHECK(m.tag == 11);
    CHECK_OK(RELEASE(r));
    CHECK_OK(ramway_sender_abandon(s));
    CHECK_STATUS(RECV(r, RAMWAY_FOREVER, &m), RAMWAY_PEER_DEAD);
    CHECK_OK(ramway_sender_open_or_create("c-ring", NULL, &s));
    CHECK_OK(SEND(s, 0, 12, "again", 5, RAMWAY_TRY));
    CHECK_OK(RECV(r, RAMWAY_FOREVER, &m));
    CHECK(m.tag == 12);
    CHECK_OK(RELEASE(r));
    CHECK_OK(ramway_sender_close(s));
    CHECK_STATUS(RECV(r, RAMWAY_FOREVER, &m), RAMWAY_CLOSED);
    CHECK_OK(ramway_receiver_close(r));
    CHECK_STATUS(ramway_sender_open("c-ring", NULL, &s), RAMWAY_NOT_FOUND);

    CHECK_OK(ramway_receiver_create("c-ring", NULL, &r));
    CHECK_STATUS(ramway_sender_create("c-ring", NULL, &s), RAMWAY_ALREADY_EXISTS);
    CHECK_OK(ramway_receiver_close(r));
}

static void option_sizes(void) {
    struct {
        ramway_options known;
        uint64_t future;
    } o = {RAMWAY_OPTIONS_INIT, 0};
    ramway_receiver *r;

    /* A program that was compiled against a later version. */
    o.known.size = sizeof o;
    CHECK_OK(ramway_receiver_create("c-options", &o.known, &r));
    CHECK_OK(ramway_receiver_close(r));
    o.future = 1;
    CHECK_STATUS(ramway_receiver_create("c-options", &o.known, &r), RAMWAY_UNSUPPORTED);
    /* And against an earlier one, which ended after `align` and `flags`: what follows is not read. */
    o.known.size = offsetof(ramway_options, mode);
    o.known.mode = 0xFFFFFFFFu;
    o.known.wait_policy = 77;
    CHECK_OK(ramway_receiver_create("c-options", &o.known, &r));
    CHECK_OK(ramway_receiver_close(r));
    o.known.size = 0;
    CHECK_STATUS(ramway_receiver_create("c-options", &o.known, &r), RAMWAY_INVALID_ARGUMENT);
    o.known = (ramway_options)RAMWAY_OPTIONS_INIT;
    o.known.flags = 1u << 31;
    CHECK_STATUS(ramway_receiver_create("c-options", &o.known, &r), RAMWAY_INVALID_ARGUMENT);
    o.known.flags = RAMWAY_READ_ONLY;
    CHECK_STATUS(ramway_receiver_create("c-options", &o.known, &r), RAMWAY_INVALID_ARGUMENT);
    o.known.flags = 0;
    o.known.wait_policy = 77;
    CHECK_STATUS(ramway_receiver_create("c-options", &o.known, &r), RAMWAY_INVALID_ARGUMENT);
    o.known.wait_policy = RAMWAY_WAIT_SPIN;
    o.known.capacity = 5000;
    o.known.align = 24;
    CHECK_STATUS(ramway_receiver_create("c-options", &o.known, &r), RAMWAY_INVALID_ARGUMENT);
    o.known.align = 4096;
    o.known.mode = 0640;
    o.known.flags = RAMWAY_PREFAULT | RAMWAY_NO_MEMBARRIER | RAMWAY_PERSISTENT;
    CHECK_OK(ramway_receiver_create("c-options", &o.known, &r));
    CHECK(ramway_receiver_align(r) == 4096 && ramway_receiver_capacity(r) == 8192);
    CHECK_OK(ramway_receiver_close(r));
    CHECK_OK(ramway_receiver_open("c-options", NULL, &r));
    CHECK_OK(ramway_receiver_close(r));
    o.known.flags = RAMWAY_DISCARD;
    CHECK_OK(ramway_receiver_create("c-options", &o.known, &r));
    CHECK_OK(ramway_receiver_close(r));
}

static void brought_memory(void) {
    size_t len = 4096 + 8192 + 100;
    uint64_t capacity;
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message m;
    ramway_status attached;
    char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    CHECK_OK(ramway_ring_format(memory, len, 0, &capacity));
    CHECK(capacity == 8192);
    attached = ramway_sender_attach(memory, len, &s);
    if (attached == RAMWAY_NO_SPACE && getenv("RAMWAY_TEST_RUNNER")) {
        puts("skipped: memory that the caller brings: the emulator does not map it a second time (mremap of length 0)");
        munmap(memory, len);
        return;
    }
    CHECK_OK(attached);
    CHECK_OK(ramway_receiver_attach(memory, len, &r));
    CHECK_OK(SEND(s, 1, 2, "mine", 4, RAMWAY_TRY));
    CHECK_OK(RECV(r, RAMWAY_FOREVER, &m));
    CHECK(m.len == 4 && memcmp(m.data, "mine", 4) == 0);
    CHECK_OK(RELEASE(r));
    CHECK_OK(ramway_sender_close(s));
    CHECK_OK(ramway_receiver_close(r));
    CHECK_STATUS(ramway_ring_format(memory + 1, len - 1, 16, NULL), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_ring_format(memory, 4096, 16, NULL), RAMWAY_INVALID_ARGUMENT);
    munmap(memory, len);
}

static void forked(void) {
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message m;
    int status;
    pid_t child;

    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    CHECK_OK(SEND(s, 0, 1, "x", 1, RAMWAY_TRY));
    CHECK_OK(RECV(r, RAMWAY_TRY, &m));
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(*(const char *)m.data == 'x');
        CHECK_STATUS(SEND(s, 0, 1, "y", 1, RAMWAY_TRY), RAMWAY_DETACHED);
        CHECK_STATUS(FLUSH(s), RAMWAY_DETACHED);
        CHECK_OK(RELEASE(r));
        CHECK_STATUS(ramway_sender_close(s), RAMWAY_DETACHED);
        CHECK_STATUS(ramway_receiver_close(r), RAMWAY_DETACHED);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK_OK(RELEASE(r));
    CHECK_OK(SEND(s, 0, 2, "z", 1, RAMWAY_TRY));
    CHECK_OK(RECV(r, RAMWAY_TRY, &m));
    CHECK(m.tag == 2);
    CHECK_OK(ramway_receiver_close(r));
    CHECK_OK(ramway_sender_close(s));
}

static void on_signal(int number) {
    (void)number;
}

static void interrupted(void) {
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message m;
    struct sigaction action;
    /* Again and again: the first one may come before the call waits. */
    struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    CHECK_STATUS(RECV(r, 100 * MS, &m), RAMWAY_TIMED_OUT);
    CHECK_OK(ramway_receiver_set_interruptible(r, true));
    CHECK_STATUS(RECV(r, RAMWAY_FOREVER, &m), RAMWAY_INTERRUPTED);
    CHECK_OK(RESERVE(s, 4080, RAMWAY_TRY, &(void *){NULL}));
    CHECK_OK(COMMIT(s, 0, 0, 4080));
    CHECK_OK(ramway_sender_set_interruptible(s, true));
    CHECK_STATUS(SEND(s, 0, 0, "x", 1, RAMWAY_FOREVER), RAMWAY_INTERRUPTED);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    CHECK_OK(ramway_receiver_close(r));
    CHECK_STATUS(ramway_sender_close(s), RAMWAY_OK);
}

static void hostile(void) {
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message m, two[2];
    struct ramway_ring_block *block;
    struct ramway_consumer *hot;
    size_t n;

    /* A tail that no sender publishes. */
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    block = ((struct ramway_inline_sender *)(void *)s)->hot->block;
    block->tail.tail += 1 << 20;
    CHECK_STATUS(RECV(r, RAMWAY_TRY, &m), RAMWAY_CORRUPT);
    CHECK_STATUS(RECV(r, RAMWAY_TRY, &m), RAMWAY_CORRUPT);
    CHECK_STATUS(ramway_receiver_close(r), RAMWAY_CORRUPT);
    CHECK_OK(ramway_sender_close(s));

    /* A length beyond what was published. */
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    CHECK_OK(SEND(s, 0, 0, "four", 4, RAMWAY_TRY));
    memcpy(((struct ramway_inline_sender *)(void *)s)->hot->data, &(uint32_t){17}, 4);
    CHECK_STATUS(RECV(r, RAMWAY_TRY, &m), RAMWAY_CORRUPT);
    CHECK_STATUS(BATCH(r, RAMWAY_TRY, &m, 1, &(size_t){0}), RAMWAY_CORRUPT);
    CHECK_STATUS(ramway_receiver_close(r), RAMWAY_CORRUPT);
    CHECK_OK(ramway_sender_close(s));

    /* The second of two: the first one is received, and then the handle says what it died of, not that it is busy. */
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    CHECK_OK(SEND(s, 0, 0, "four", 4, RAMWAY_TRY));
    CHECK_OK(SEND(s, 0, 0, "four", 4, RAMWAY_TRY));
    memcpy(((struct ramway_inline_sender *)(void *)s)->hot->data + 32, &(uint32_t){4000}, 4);
    CHECK_OK(BATCH(r, RAMWAY_TRY, two, 2, &n));
    CHECK(n == 1);
    CHECK_STATUS(ramway_release(r), RAMWAY_OK);
    CHECK_STATUS(RECV(r, RAMWAY_TRY, &m), RAMWAY_CORRUPT);
    CHECK_OK(ramway_sender_close(s));
    CHECK_STATUS(ramway_receiver_close(r), RAMWAY_CORRUPT);
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    CHECK_OK(SEND(s, 0, 0, "four", 4, RAMWAY_TRY));
    CHECK_OK(SEND(s, 0, 0, "four", 4, RAMWAY_TRY));
    memcpy(((struct ramway_inline_sender *)(void *)s)->hot->data + 32, &(uint32_t){4000}, 4);
    CHECK_OK(ramway_recv_batch(r, RAMWAY_TRY, two, 2, &n));
    CHECK(n == 1);
    CHECK_STATUS(RECV(r, RAMWAY_TRY, &m), RAMWAY_CORRUPT);
    CHECK_OK(ramway_sender_close(s));
    CHECK_STATUS(ramway_receiver_close(r), RAMWAY_CORRUPT);

    /* A head that goes back; seen once the ring looks full. */
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    hot = ((struct ramway_inline_receiver *)(void *)r)->hot;
    hot->block->head.head -= 64;
    CHECK_OK(SEND(s, 0, 0, NULL, 0, RAMWAY_TRY));
    CHECK_STATUS(RESERVE(s, 4080, RAMWAY_TRY, &(void *){NULL}), RAMWAY_CORRUPT);
    CHECK_STATUS(SEND(s, 0, 0, NULL, 0, RAMWAY_TRY), RAMWAY_CORRUPT);
    CHECK_STATUS(ramway_sender_close(s), RAMWAY_CORRUPT);
    CHECK_OK(ramway_receiver_close(r));
}

/* An application compiled against another layout of the private state: everything by the library, and right. */
static void other_layout(void) {
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message m;
    void *slot;
    size_t n;

    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    ((struct ramway_inline_sender *)(void *)s)->layout ^= 1;
    ((struct ramway_inline_receiver *)(void *)r)->layout ^= 1;
    CHECK(ramway_inline_producer(s) == NULL && ramway_inline_consumer(r) == NULL);
    CHECK_OK(ramway_inline_send(s, 1, 2, "a", 1, RAMWAY_TRY));
    CHECK_OK(ramway_inline_reserve(s, 1, RAMWAY_TRY, &slot));
    CHECK_OK(ramway_inline_abort(s));
    CHECK_OK(ramway_inline_reserve(s, 1, RAMWAY_TRY, &slot));
    *(char *)slot = 'b';
    CHECK_OK(ramway_inline_commit_unflushed(s, 3, 4, 1));
    CHECK_OK(ramway_inline_flush(s));
    CHECK_OK(ramway_inline_recv(r, RAMWAY_TRY, &m));
    CHECK(m.tag == 2);
    CHECK_OK(ramway_inline_release(r));
    CHECK_OK(ramway_inline_recv_batch(r, RAMWAY_TRY, &m, 1, &n));
    CHECK(m.tag == 4 && n == 1);
    CHECK_OK(ramway_sender_close(s));
    CHECK_OK(ramway_receiver_close(r));
}

static void texts(void) {
    static const char *const names[] = {"Ok",        "NotFound", "AlreadyExists", "InvalidArgument", "Busy",
                                        "Full",      "Empty",    "TooLarge",      "TimedOut",        "Closed",
                                        "Detached",  "PeerDead", "Corrupt",       "AbiMismatch",     "PermissionDenied",
                                        "NoSpace",   "Interrupted", "Unsupported", "Os"};
    int i;
    for (i = RAMWAY_OK; i <= RAMWAY_OS; i++) {
        CHECK(strcmp(ramway_status_name(i), names[i]) == 0);
        CHECK(strlen(ramway_strerror(i)) > 5);
        CHECK(i == 0 || strcmp(ramway_strerror(i), ramway_strerror(i - 1)) != 0);
    }
    CHECK(strcmp(ramway_strerror(RAMWAY_LAGGED + 1), ramway_strerror(-7)) == 0);
}

int main(void) {
    for (path = 0; path < 2; path++) {
        one_message();
        batches();
        names();
        brought_memory();
        forked();
        interrupted();
        hostile();
    }
    option_sizes();
    other_layout();
    texts();
    return 0;
}
