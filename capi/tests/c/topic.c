/* A topic within one process: every call and every policy, by the library (PATH 0) and inline (PATH 1). */
#define _DEFAULT_SOURCE
#include "check.h"
#include "ramway_inline.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static int path;
#define SEND(...) (path ? ramway_inline_publisher_send(__VA_ARGS__) : ramway_send(__VA_ARGS__))
#define RESERVE(...) (path ? ramway_inline_publisher_reserve(__VA_ARGS__) : ramway_reserve(__VA_ARGS__))
#define COMMIT(...) (path ? ramway_inline_publisher_commit(__VA_ARGS__) : ramway_commit(__VA_ARGS__))
#define UNFLUSHED(...) \
    (path ? ramway_inline_publisher_commit_unflushed(__VA_ARGS__) : ramway_commit_unflushed(__VA_ARGS__))
#define FLUSH(...) (path ? ramway_inline_publisher_flush(__VA_ARGS__) : ramway_flush(__VA_ARGS__))
#define ABORT(...) (path ? ramway_inline_publisher_abort(__VA_ARGS__) : ramway_abort(__VA_ARGS__))
#define RECV(...) (path ? ramway_inline_subscriber_recv(__VA_ARGS__) : ramway_subscriber_recv(__VA_ARGS__))
#define BATCH(...) (path ? ramway_inline_subscriber_recv_batch(__VA_ARGS__) : ramway_subscriber_recv_batch(__VA_ARGS__))
#define RELEASE(...) (path ? ramway_inline_subscriber_release(__VA_ARGS__) : ramway_release(__VA_ARGS__))
#define LATEST(...) (path ? ramway_inline_subscriber_latest(__VA_ARGS__) : ramway_subscriber_latest(__VA_ARGS__))

#define MS INT64_C(1000000)
#define NAME "topic"

static ramway_topic_options options(void) {
    ramway_topic_options o = RAMWAY_TOPIC_OPTIONS_INIT;
    return o;
}

static ramway_publisher *publisher(uint32_t flags) {
    ramway_topic_options o = options();
    ramway_publisher *p;
    o.capacity = 4096;
    o.flags = flags;
    CHECK_OK(ramway_publisher_create(NAME, &o, &p));
    return p;
}

static ramway_subscriber *subscriber(uint32_t policy) {
    ramway_topic_options o = options();
    ramway_subscriber *s;
    o.policy = policy;
    CHECK_OK(ramway_subscriber_open(NAME, &o, &s));
    return s;
}

static void close_both(ramway_publisher *p, ramway_subscriber *s) {
    CHECK_OK(ramway_sender_close(p));
    CHECK_OK(ramway_receiver_close(s));
}

/* Sends the numbers from `first` to `last`, 8 bytes each. */
static void publish(ramway_publisher *p, uint64_t first, uint64_t last) {
    for (; first <= last; first++) {
        CHECK_OK(SEND(p, 1, first, &first, 8, RAMWAY_FOREVER));
    }
}

/* The next message is this number, with this number, after so many lost ones. */
static void expect(ramway_subscriber *s, uint64_t number, uint64_t seq, uint64_t lost) {
    ramway_topic_message m;
    uint64_t got;
    CHECK_OK(RECV(s, 10000 * MS, &m));
    CHECK(m.message.len == 8 && m.message.type_id == 1 && m.message.tag == number);
    memcpy(&got, m.message.data, 8);
    CHECK(got == number && m.seq == seq && m.lost == lost && m.time == 0);
    CHECK_OK(RELEASE(s));
}

static void one_message(void) {
    ramway_publisher *p = publisher(0);
    ramway_subscriber *s = subscriber(RAMWAY_RELIABLE);
    ramway_topic_message m;
    ramway_message plain;
    ramway_bytes pieces[2] = {{"ab", 2}, {"cde", 3}};
    char buffer[16];
    void *slot;
    uint64_t tag, bytes, messages;
    size_t n;
    ramway_topic_message many[8];

    CHECK(ramway_sender_capacity(p) == 4096 && ramway_receiver_capacity(s) == 4096);
    CHECK(ramway_sender_align(p) == 32 && ramway_receiver_align(s) == 32);
    CHECK(ramway_sender_max_message_len(p) == 2048 - 32);
    CHECK(ramway_sender_epoch(p) == 1 && ramway_receiver_epoch(s) == 1 && ramway_receiver_peer_epoch(s) == 1);
    CHECK(ramway_sender_is_peer_alive(p) && ramway_receiver_is_peer_alive(s));
    CHECK(strcmp(ramway_sender_name(p), NAME) == 0 && strcmp(ramway_receiver_name(s), NAME) == 0);
    CHECK(ramway_publisher_seq(p) == 0 && !ramway_sender_last_tag(p, &tag));
    CHECK(ramway_subscriber_policy(s) == RAMWAY_RELIABLE && ramway_subscriber_label(s) == NULL);

    CHECK_STATUS(RECV(s, RAMWAY_TRY, &m), RAMWAY_EMPTY);
    CHECK_STATUS(RECV(s, 1 * MS, &m), RAMWAY_TIMED_OUT);
    CHECK_STATUS(LATEST(s, buffer, sizeof buffer, &m), RAMWAY_EMPTY);
    CHECK_OK(SEND(p, 7, 42, "hello", 5, RAMWAY_FOREVER));
    CHECK(ramway_publisher_seq(p) == 1 && ramway_sender_last_tag(p, &tag) && tag == 42);
    CHECK(ramway_receiver_len(s) == 64 && ramway_sender_len(p) == 64);
    CHECK_OK(ramway_subscriber_lag(s, &bytes, &messages));
    CHECK(bytes == 64 && messages == 1);
    CHECK_OK(RECV(s, RAMWAY_FOREVER, &m));
    CHECK(m.message.len == 5 && m.message.type_id == 7 && m.message.tag == 42);
    CHECK(memcmp(m.message.data, "hello", 5) == 0 && ((uintptr_t)m.message.data & 31) == 0);
    CHECK(m.seq == 1 && m.time == 0 && m.lost == 0);
    CHECK_STATUS(RECV(s, RAMWAY_TRY, &m), RAMWAY_BUSY);
    CHECK_STATUS(ramway_subscriber_recv_into(s, RAMWAY_TRY, buffer, sizeof buffer, &m), RAMWAY_BUSY);
    CHECK_OK(RELEASE(s));
    CHECK_OK(RELEASE(s));

    /* The calls of a receiver do for a subscriber what they do for a ring. */
    CHECK_OK(ramway_send_vectored(p, 1, 2, pieces, 2, RAMWAY_TRY));
    CHECK_OK(ramway_inline_send(p, 1, 3, "x", 1, RAMWAY_TRY));
    CHECK_OK(ramway_inline_recv(s, RAMWAY_TRY, &plain));
    CHECK(plain.len == 5 && plain.tag == 2 && memcmp(plain.data, "abcde", 5) == 0);
    CHECK_OK(ramway_inline_release(s));
    memset(&plain, 0, sizeof plain);
    CHECK_STATUS(ramway_recv_into(s, RAMWAY_TRY, buffer, 0, &plain), RAMWAY_TOO_LARGE);
    CHECK(plain.len == 1 && plain.data == buffer);
    CHECK_OK(ramway_recv_into(s, RAMWAY_TRY, buffer, sizeof buffer, &plain));
    CHECK(plain.len == 1 && plain.tag == 3 && plain.data == buffer && buffer[0] == 'x');

    /* Slots, unflushed messages, batches. */
    CHECK_OK(RESERVE(p, 100, RAMWAY_TRY, &slot));
    CHECK(((uintptr_t)slot & 31) == 0);
    CHECK_STATUS(RESERVE(p, 100, RAMWAY_TRY, &slot), RAMWAY_BUSY);
    CHECK_OK(ABORT(p));
    CHECK_STATUS(COMMIT(p, 0, 0, 0), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(RESERVE(p, 100, RAMWAY_TRY, &slot));
    CHECK_STATUS(COMMIT(p, 0xFFFF0000u, 0, 3), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(UNFLUSHED(p, 0, 0, 101), RAMWAY_INVALID_ARGUMENT);
    memcpy(slot, "abc", 3);
    CHECK_OK(UNFLUSHED(p, 5, 6, 3));
    CHECK_STATUS(RECV(s, RAMWAY_TRY, &m), RAMWAY_EMPTY);
    CHECK_OK(FLUSH(p));
    CHECK_OK(SEND(p, 5, 7, NULL, 0, RAMWAY_TRY));
    CHECK_STATUS(BATCH(s, RAMWAY_TRY, many, 0, &n), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(BATCH(s, RAMWAY_TRY, many, 8, &n));
    CHECK(n == 2 && many[0].message.len == 3 && many[0].seq == 4 && many[1].message.len == 0 && many[1].seq == 5);
    CHECK(memcmp(many[0].message.data, "abc", 3) == 0 && many[1].message.data != NULL);
    CHECK_OK(RELEASE(s));
    CHECK_STATUS(SEND(p, 1, 0, buffer, 2048, RAMWAY_TRY), RAMWAY_TOO_LARGE);

    /* Tensors. */
    {
        const uint64_t shape[2] = {2, 3};
        const float elements[6] = {1, 2, 3, 4, 5, 6};
        const ramway_dtype f32 = {RAMWAY_DTYPE_FLOAT, 32};
        ramway_tensor tensor;
        CHECK_OK(ramway_send_tensor(p, f32, shape, 2, 9, elements, sizeof elements, RAMWAY_TRY));
        CHECK_OK(RECV(s, RAMWAY_TRY, &m));
        CHECK_OK(ramway_message_tensor(&m.message, &tensor));
        CHECK(tensor.ndim == 2 && tensor.shape[1] == 3 && memcmp(tensor.data, elements, sizeof elements) == 0);
        CHECK_OK(RELEASE(s));
        CHECK_OK(ramway_reserve_tensor(p, f32, shape, 2, RAMWAY_TRY, &slot, &n));
        memcpy(slot, elements, n);
        CHECK_OK(ramway_commit_tensor(p, 10));
        CHECK_OK(RECV(s, RAMWAY_TRY, &m));
        CHECK_OK(ramway_message_tensor(&m.message, &tensor));
        CHECK(memcmp(tensor.data, elements, sizeof elements) == 0 && m.seq == 7);
        CHECK_OK(RELEASE(s));
    }
    CHECK_OK(ramway_sender_close(p));
    CHECK_STATUS(RECV(s, RAMWAY_FOREVER, &m), RAMWAY_CLOSED);
    CHECK_OK(ramway_receiver_close(s));
}

/* The publisher waits for a reliable subscriber only. */
static void reliable(void) {
    ramway_publisher *p = publisher(0);
    ramway_subscriber *s = subscriber(RAMWAY_RELIABLE);
    uint64_t sent = 0, k;
    ramway_status status;
    CHECK_OK(ramway_publisher_wait_for_subscribers(p, 1, RAMWAY_FOREVER));
    CHECK_STATUS(ramway_publisher_wait_for_subscribers(p, 2, 1 * MS), RAMWAY_TIMED_OUT);
    CHECK_STATUS(ramway_publisher_wait_for_subscribers(p, 33, 1 * MS), RAMWAY_INVALID_ARGUMENT);
    do {
        sent++;
        status = SEND(p, 1, sent, &sent, 8, RAMWAY_TRY);
    } while (status == RAMWAY_OK);
    sent--;
    CHECK(status == RAMWAY_FULL && sent == 4096 / 64);
    CHECK_STATUS(SEND(p, 1, 0, &sent, 8, 1 * MS), RAMWAY_TIMED_OUT);
    for (k = 1; k <= sent; k++) {
        expect(s, k, k, 0);
    }
    publish(p, sent + 1, sent + 10);
    CHECK_OK(ramway_subscriber_skip_to_newest(s, &k));
    CHECK(k == 9);
    expect(s, sent + 10, sent + 10, 0);
    CHECK(ramway_subscriber_lost(s) == 0);
    /* A bridge says that five were lost before it got the next. */
    CHECK_OK(ramway_publisher_skip_seq(p, 5));
    CHECK_STATUS(ramway_publisher_skip_seq(p, UINT64_MAX), RAMWAY_INVALID_ARGUMENT);
    publish(p, 1, 2);
    expect(s, 1, sent + 16, 5);
    expect(s, 2, sent + 17, 0);
    CHECK(ramway_subscriber_lost(s) == 5);
    close_both(p, s);
}

static void lossy(void) {
    ramway_publisher *p = publisher(0);
    ramway_subscriber *s = subscriber(RAMWAY_LOSSY);
    ramway_topic_message m[4];
    char buffer[8];
    uint64_t got = 0, lost = 0, next = 2, skipped;
    size_t n, k;
    publish(p, 1, 3);
    expect(s, 1, 1, 0);
    publish(p, 4, 1000);
    for (;;) {
        ramway_status status = BATCH(s, RAMWAY_TRY, m, 4, &n);
        if (status == RAMWAY_EMPTY) {
            break;
        }
        CHECK_OK(status);
        for (k = 0; k < n; k++) {
            CHECK(m[k].seq == m[k].message.tag && m[k].seq == next + m[k].lost);
            CHECK(memcmp(m[k].message.data, &m[k].seq, 8) == 0);
            next = m[k].seq + 1;
            lost += m[k].lost;
            got++;
        }
        CHECK_OK(RELEASE(s));
    }
    CHECK(next == 1001 && lost > 0 && got + lost == 999 && ramway_subscriber_lost(s) == lost);
    publish(p, 1001, 1005);
    CHECK_OK(ramway_subscriber_skip_to_newest(s, &skipped));
    CHECK(skipped == 4);
    CHECK_STATUS(ramway_subscriber_recv_into(s, RAMWAY_TRY, buffer, 7, m), RAMWAY_TOO_LARGE);
    CHECK(m[0].message.len == 8);
    CHECK_OK(ramway_subscriber_recv_into(s, RAMWAY_TRY, buffer, 8, m));
    CHECK(m[0].seq == 1005 && m[0].lost == 0 && m[0].message.data == buffer && memcmp(buffer, &m[0].seq, 8) == 0);
    CHECK_STATUS(ramway_subscriber_wait_newer(s, RAMWAY_TRY, buffer, 8, m), RAMWAY_UNSUPPORTED);
    close_both(p, s);
}

static void latest(void) {
    ramway_publisher *p = publisher(0);
    ramway_subscriber *s = subscriber(RAMWAY_LATEST), *reliable = subscriber(RAMWAY_RELIABLE);
    ramway_topic_message m;
    unsigned char value[1500], buffer[1500];
    uint64_t k, number;
    CHECK_STATUS(LATEST(s, buffer, 8, &m), RAMWAY_EMPTY);
    CHECK_STATUS(ramway_subscriber_wait_newer(s, 1 * MS, buffer, 8, NULL), RAMWAY_TIMED_OUT);
    publish(p, 1, 5);
    for (k = 0; k < 2; k++) {
        CHECK_OK(LATEST(s, buffer, 8, &m));
        memcpy(&number, buffer, 8);
        CHECK(number == 5 && m.seq == 5 && m.message.len == 8 && m.message.tag == 5 && m.message.data == buffer);
        CHECK(m.message.type_id == 1 && m.lost == 0 && m.time == 0);
    }
    CHECK_OK(LATEST(s, buffer, 8, NULL));
    CHECK_STATUS(ramway_subscriber_wait_newer(s, RAMWAY_TRY, buffer, 8, &m), RAMWAY_EMPTY);
    publish(p, 6, 7);
    CHECK_STATUS(LATEST(s, buffer, 7, &m), RAMWAY_TOO_LARGE);
    CHECK(m.message.len == 8);
    CHECK_OK(ramway_subscriber_wait_newer(s, RAMWAY_FOREVER, buffer, 8, &m));
    CHECK(m.seq == 7);
    publish(p, 8, 8);
    expect(s, 8, 8, 0);
    CHECK_STATUS(ramway_subscriber_skip_to_newest(s, &k), RAMWAY_UNSUPPORTED);
    /* Who receives in order may read the newest one too, and goes on as before. */
    CHECK_OK(LATEST(reliable, buffer, 8, &m));
    CHECK(m.seq == 8);
    expect(reliable, 1, 1, 0);
    CHECK_OK(ramway_receiver_close(reliable));
    /* Every length, at every alignment of the buffer. */
    for (k = 0; k < sizeof value; k++) {
        value[k] = (unsigned char)(k * 7 + k / 256);
    }
    for (k = 0; k < 140; k++) {
        size_t len = (size_t)(k < 130 ? k : k * 10), at = (size_t)(k % 9);
        memset(buffer, 0xEE, sizeof buffer);
        CHECK_OK(SEND(p, 2, k, value, len, RAMWAY_FOREVER));
        CHECK_OK(LATEST(s, buffer + at, len + 1, &m));
        CHECK(m.message.len == len && m.message.tag == k && memcmp(buffer + at, value, len) == 0);
        CHECK(buffer[at + len] == 0xEE && (at == 0 || buffer[at - 1] == 0xEE));
    }
    CHECK_OK(ramway_sender_close(p));
    CHECK_OK(LATEST(s, buffer, sizeof buffer, &m));
    CHECK_STATUS(ramway_subscriber_wait_newer(s, RAMWAY_FOREVER, buffer, 8, &m), RAMWAY_CLOSED);
    CHECK_OK(ramway_receiver_close(s));
}

static void starts(void) {
    static const struct {
        uint32_t policy, start;
        uint64_t number, first, lost;
    } cases[] = {
        {RAMWAY_RELIABLE, RAMWAY_FROM_DEFAULT, 0, 1, 0}, {RAMWAY_RELIABLE, RAMWAY_FROM_OLDEST, 0, 1, 0},
        {RAMWAY_RELIABLE, RAMWAY_FROM_NOW, 0, 11, 0},    {RAMWAY_RELIABLE, RAMWAY_HISTORY, 3, 8, 0},
        {RAMWAY_RELIABLE, RAMWAY_AFTER_SEQ, 4, 5, 0},    {RAMWAY_RELIABLE, RAMWAY_AFTER_SEQ, 99, 11, 0},
        {RAMWAY_LOSSY, RAMWAY_FROM_DEFAULT, 0, 11, 0},   {RAMWAY_LOSSY, RAMWAY_FROM_OLDEST, 0, 1, 0},
        {RAMWAY_LOSSY, RAMWAY_HISTORY, 3, 8, 0},         {RAMWAY_LOSSY, RAMWAY_AFTER_SEQ, 4, 5, 0},
    };
    ramway_publisher *p = publisher(0);
    ramway_subscriber *s[sizeof cases / sizeof *cases];
    size_t k;
    publish(p, 1, 10);
    for (k = 0; k < sizeof cases / sizeof *cases; k++) {
        ramway_topic_options o = options();
        o.policy = cases[k].policy;
        o.start = cases[k].start;
        o.start_number = cases[k].number;
        CHECK_OK(ramway_subscriber_open(NAME, &o, &s[k]));
    }
    publish(p, 11, 11);
    for (k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint64_t number;
        for (number = cases[k].first; number <= 11; number++) {
            expect(s[k], number, number, 0);
        }
        CHECK_OK(ramway_receiver_close(s[k]));
    }
    CHECK_OK(ramway_sender_close(p));
}

struct seen {
    int count;
    ramway_subscriber_info last;
    char label[65];
};

static void see(const ramway_subscriber_info *info, void *user) {
    struct seen *seen = (struct seen *)user;
    seen->count++;
    seen->last = *info;
    snprintf(seen->label, sizeof seen->label, "%s", info->label);
}

static void durable(void) {
    ramway_publisher *p = publisher(0);
    ramway_topic_options o = options();
    ramway_subscriber *s, *other = NULL;
    struct seen seen = {0};
    o.label = "recorder";
    o.flags = RAMWAY_DURABLE;
    CHECK_OK(ramway_subscriber_open(NAME, &o, &s));
    CHECK(strcmp(ramway_subscriber_label(s), "recorder") == 0);
    CHECK_STATUS(ramway_subscriber_open(NAME, &o, &other), RAMWAY_BUSY);
    CHECK(other == NULL && strstr(ramway_last_error(), "recorder") != NULL);
    publish(p, 1, 4);
    expect(s, 1, 1, 0);
    CHECK_OK(ramway_receiver_close(s));
    CHECK_OK(ramway_publisher_subscribers(p, see, &seen));
    CHECK(seen.count == 1 && strcmp(seen.label, "recorder") == 0 && seen.last.durable && !seen.last.alive);
    CHECK(seen.last.policy == RAMWAY_RELIABLE && seen.last.lag_bytes == 3 * 64 && seen.last.lag_messages == 3);
    CHECK(seen.last.blocks_for_ns == -1 && !seen.last.ejected && seen.last.lost == 0);
    CHECK(seen.last.size_of_struct == sizeof seen.last);
    CHECK_OK(ramway_subscriber_open(NAME, &o, &s));
    expect(s, 2, 2, 0);
    CHECK_OK(ramway_subscriber_unsubscribe(s));
    memset(&seen, 0, sizeof seen);
    CHECK_OK(ramway_publisher_subscribers(p, see, &seen));
    CHECK(seen.count == 0);
    o.flags = 0;
    o.policy = RAMWAY_LOSSY;
    o.label = "viewer";
    CHECK_OK(ramway_subscriber_open(NAME, &o, &s));
    CHECK_OK(ramway_publisher_subscribers(p, see, &seen));
    CHECK(seen.count == 1 && strcmp(seen.label, "viewer") == 0 && seen.last.alive && seen.last.policy == RAMWAY_LOSSY);
    CHECK(seen.last.lag_bytes == -1 && seen.last.lag_messages == -1 && seen.last.epoch >= 1);
    close_both(p, s);
}

static void ejected(void) {
    ramway_topic_options o = options();
    ramway_publisher *p;
    ramway_subscriber *s;
    ramway_topic_message m;
    struct seen seen = {0};
    uint64_t next, lost;
    o.capacity = 4096;
    o.eject_after_ns = 20 * MS;
    CHECK_OK(ramway_publisher_create(NAME, &o, &p));
    s = subscriber(RAMWAY_RELIABLE);
    publish(p, 1, 2);
    expect(s, 1, 1, 0);
    /* More than fits: the subscriber is ejected, and the publisher goes on. */
    publish(p, 3, 200);
    CHECK_OK(ramway_publisher_subscribers(p, see, &seen));
    CHECK(seen.count == 1 && seen.last.ejected);
    CHECK_STATUS(RECV(s, RAMWAY_FOREVER, &m), RAMWAY_LAGGED);
    lost = ramway_last_lost();
    CHECK(lost > 0 && strstr(ramway_last_error(), "ejected") != NULL);
    CHECK_STATUS(RECV(s, -5, &m), RAMWAY_INVALID_ARGUMENT);
    CHECK(ramway_last_lost() == 0);
    for (next = 2 + lost; next <= 200; next++) {
        expect(s, next, next, 0);
    }
    CHECK(ramway_subscriber_lost(s) == lost);
    close_both(p, s);
}

static void refused(void) {
    ramway_topic_options o = options();
    ramway_publisher *p = (ramway_publisher *)1;
    ramway_subscriber *s = (ramway_subscriber *)1;
    ramway_sender *ring_sender;
    ramway_receiver *ring_receiver;
    ramway_topic_message m;
    char buffer[8];
    size_t n;
    struct {
        ramway_topic_options known;
        uint64_t unknown;
    } newer;

    CHECK_STATUS(ramway_publisher_open(NAME, NULL, &p), RAMWAY_NOT_FOUND);
    CHECK(p == NULL);
#define REFUSES(call, what)                                  \
    do {                                                     \
        CHECK_STATUS(call, RAMWAY_INVALID_ARGUMENT);         \
        CHECK(strstr(ramway_last_error(), what) != NULL);    \
        o = options();                                       \
    } while (0)
    o.policy = RAMWAY_LOSSY;
    REFUSES(ramway_publisher_create(NAME, &o, &p), "policy");
    o.policy = 3;
    REFUSES(ramway_subscriber_create(NAME, &o, &s), "policy is 3");
    o.start = RAMWAY_FROM_NOW;
    REFUSES(ramway_publisher_create(NAME, &o, &p), "begin");
    o.start = 5;
    REFUSES(ramway_subscriber_create(NAME, &o, &s), "start is 5");
    o.start_number = 5;
    REFUSES(ramway_subscriber_create(NAME, &o, &s), "start_number is 5");
    o.label = "x";
    REFUSES(ramway_publisher_create(NAME, &o, &p), "label");
    o.label = "\xFF";
    REFUSES(ramway_subscriber_create(NAME, &o, &s), "UTF-8");
    o.label = "";
    REFUSES(ramway_subscriber_create(NAME, &o, &s), "label");
    o.flags = RAMWAY_DURABLE;
    REFUSES(ramway_subscriber_create(NAME, &o, &s), "label");
    o.flags = RAMWAY_TIMESTAMPS;
    REFUSES(ramway_subscriber_create(NAME, &o, &s), "timestamps");
    o.eject_after_ns = 5;
    REFUSES(ramway_subscriber_create(NAME, &o, &s), "eject_after");
    o.eject_after_ns = -1;
    REFUSES(ramway_publisher_create(NAME, &o, &p), "eject_after_ns is -1");
    o.flags = 512;
    REFUSES(ramway_publisher_create(NAME, &o, &p), "flags");
    o.align = 16;
    REFUSES(ramway_publisher_create(NAME, &o, &p), "16");
    o.flags = RAMWAY_READ_ONLY;
    REFUSES(ramway_subscriber_open(NAME, &o, &s), "read-only");
    o.size = 3;
    REFUSES(ramway_publisher_create(NAME, &o, &p), "_INIT");
    o.flags = RAMWAY_LOSSY_ONLY | RAMWAY_MAY_EJECT;
    REFUSES(ramway_publisher_create(NAME, &o, &p), "eject");
    memset(&newer, 0, sizeof newer);
    newer.known.size = sizeof newer;
    newer.unknown = 1;
    CHECK_STATUS(ramway_publisher_create(NAME, &newer.known, &p), RAMWAY_UNSUPPORTED);
    newer.unknown = 0;
    CHECK_OK(ramway_publisher_create(NAME, &newer.known, &p));
    CHECK_STATUS(ramway_publisher_open(NAME, NULL, &ring_sender), RAMWAY_BUSY);
    CHECK_STATUS(ramway_sender_open(NAME, NULL, &ring_sender), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(ramway_sender_close(p));

    /* The topic's calls say what they are for when they are given a ring's handle. */
    CHECK_OK(ramway_ring_pair(4096, &ring_sender, &ring_receiver));
    REFUSES(RECV(ring_receiver, RAMWAY_TRY, &m), "ring");
    REFUSES(BATCH(ring_receiver, RAMWAY_TRY, &m, 1, &n), "ring");
    REFUSES(LATEST(ring_receiver, buffer, 8, &m), "ring");
    REFUSES(ramway_subscriber_recv_into(ring_receiver, RAMWAY_TRY, buffer, 8, &m), "ring");
    REFUSES(ramway_subscriber_wait_newer(ring_receiver, RAMWAY_TRY, buffer, 8, &m), "ring");
    REFUSES(ramway_subscriber_skip_to_newest(ring_receiver, NULL), "ring");
    REFUSES(ramway_subscriber_lag(ring_receiver, NULL, NULL), "ring");
    REFUSES(ramway_subscriber_unsubscribe(ring_receiver), "ring");
    REFUSES(ramway_publisher_skip_seq(ring_sender, 1), "ring");
    REFUSES(ramway_publisher_wait_for_subscribers(ring_sender, 1, RAMWAY_TRY), "ring");
    REFUSES(ramway_publisher_subscribers(ring_sender, see, NULL), "ring");
    CHECK(ramway_publisher_seq(ring_sender) == 0 && ramway_subscriber_lost(ring_receiver) == 0);
    CHECK(ramway_subscriber_policy(ring_receiver) == UINT32_MAX && ramway_subscriber_label(ring_receiver) == NULL);
    /* Those that a ring has too work. */
    CHECK_OK(SEND(ring_sender, 1, 0, "x", 1, RAMWAY_TRY));
    CHECK_OK(ramway_recv_into(ring_receiver, RAMWAY_TRY, buffer, 8, NULL));
    CHECK_OK(RELEASE(ring_receiver));
    CHECK_OK(ramway_sender_close(ring_sender));
    CHECK_OK(ramway_receiver_close(ring_receiver));
}

static void flags(void) {
    ramway_topic_options o = options();
    ramway_publisher *p = publisher(RAMWAY_LOSSY_ONLY | RAMWAY_TIMESTAMPS);
    ramway_subscriber *s;
    ramway_topic_message m;
    struct timespec t;
    uint64_t before, after;
    char buffer[8];
    CHECK_STATUS(ramway_subscriber_open(NAME, NULL, &s), RAMWAY_UNSUPPORTED);
    o.policy = RAMWAY_LOSSY;
    o.flags = RAMWAY_READ_ONLY;
    CHECK_OK(ramway_subscriber_open(NAME, &o, &s));
    clock_gettime(CLOCK_REALTIME, &t);
    before = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    CHECK_OK(SEND(p, 1, 0, "x", 1, RAMWAY_TRY));
    clock_gettime(CLOCK_REALTIME, &t);
    after = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    CHECK_OK(LATEST(s, buffer, sizeof buffer, &m));
    CHECK(before <= m.time && m.time <= after);
    CHECK_OK(RECV(s, RAMWAY_FOREVER, &m));
    CHECK(before <= m.time && m.time <= after && m.seq == 1);
    CHECK_OK(RELEASE(s));
    CHECK(ramway_receiver_readiness_fd(s) == -1 && ramway_last_status() == RAMWAY_UNSUPPORTED);
    close_both(p, s);
}

static void *wake_later(void *handle) {
    usleep(20000);
    CHECK_OK(ramway_receiver_wake((const ramway_receiver *)handle));
    return NULL;
}

static void *send_later(void *handle) {
    ramway_publisher *p = (ramway_publisher *)handle;
    usleep(20000);
    publish(p, 1, 200);
    return NULL;
}

static void waits(void) {
    ramway_publisher *p = publisher(0);
    ramway_subscriber *s = subscriber(RAMWAY_RELIABLE), *sleeper = subscriber(RAMWAY_LATEST);
    ramway_topic_message m;
    pthread_t thread;
    uint64_t k;
    CHECK_OK(ramway_receiver_set_wait_policy(s, RAMWAY_WAIT_BLOCK));
    CHECK_OK(ramway_sender_set_wait_policy(p, RAMWAY_WAIT_BLOCK));
    CHECK(pthread_create(&thread, NULL, wake_later, s) == 0);
    CHECK_STATUS(RECV(s, RAMWAY_FOREVER, &m), RAMWAY_INTERRUPTED);
    CHECK(pthread_join(thread, NULL) == 0);
    /* More than fits: both sides sleep and are woken. */
    CHECK(pthread_create(&thread, NULL, send_later, p) == 0);
    for (k = 1; k <= 200; k++) {
        expect(s, k, k, 0);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(RECV(sleeper, RAMWAY_FOREVER, &m));
    CHECK(m.seq == 200);
    CHECK_OK(RELEASE(sleeper));
    CHECK(ramway_receiver_readiness_fd(s) >= 0 && ramway_sender_readiness_fd(p) >= 0);
    CHECK_OK(ramway_receiver_close(sleeper));
    close_both(p, s);
}

int main(void) {
    alarm(120);
    for (path = 0; path < 2; path++) {
        one_message();
        reliable();
        lossy();
        latest();
        starts();
        durable();
        ejected();
        refused();
        flags();
        waits();
    }
    return 0;
}
