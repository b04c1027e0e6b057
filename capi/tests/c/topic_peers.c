/* A topic between processes, of which some are killed, stopped or hostile; by the library (PATH 0) and inline (PATH 1). */
#define _DEFAULT_SOURCE
#include "child.h"
#include "ramway_inline.h"

static int path;
#define SEND(...) (path ? ramway_inline_publisher_send(__VA_ARGS__) : ramway_send(__VA_ARGS__))
#define RECV(...) (path ? ramway_inline_subscriber_recv(__VA_ARGS__) : ramway_subscriber_recv(__VA_ARGS__))
#define BATCH(...) (path ? ramway_inline_subscriber_recv_batch(__VA_ARGS__) : ramway_subscriber_recv_batch(__VA_ARGS__))
#define RELEASE(...) (path ? ramway_inline_subscriber_release(__VA_ARGS__) : ramway_release(__VA_ARGS__))
#define LATEST(...) (path ? ramway_inline_subscriber_latest(__VA_ARGS__) : ramway_subscriber_latest(__VA_ARGS__))

#define NAME "topic-peers"

static pid_t child(void (*life)(void)) { return forked(life, exit); }

static ramway_publisher *publisher(ramway_topic_options o) {
    ramway_publisher *p;
    CHECK_OK(ramway_publisher_open_or_create(NAME, &o, &p));
    return p;
}

static ramway_subscriber *subscriber(uint32_t policy, const char *label) {
    ramway_topic_options o = RAMWAY_TOPIC_OPTIONS_INIT;
    ramway_subscriber *s;
    o.policy = policy;
    o.label = label;
    o.flags = label != NULL ? RAMWAY_DURABLE : 0;
    o.timeout_ns = LONG;
    CHECK_OK(ramway_subscriber_open(NAME, &o, &s));
    return s;
}

static ramway_topic_options small(void) {
    ramway_topic_options o = RAMWAY_TOPIC_OPTIONS_INIT;
    o.capacity = 4096;
    return o;
}

/* ---- a stream, read under each policy ---- */

enum { MESSAGES = 200000 };

static size_t length_of(uint64_t seq) {
    return 8 + (size_t)(seq * 7919 % 200);
}

static void fill(unsigned char *to, uint64_t seq) {
    size_t k;
    memcpy(to, &seq, 8);
    for (k = 8; k < length_of(seq); k++) {
        to[k] = (unsigned char)(seq + k);
    }
}

static void verify(const ramway_topic_message *m) {
    const unsigned char *bytes = (const unsigned char *)m->message.data;
    size_t k;
    CHECK(m->message.len == length_of(m->seq) && m->message.tag == m->seq && m->message.type_id == m->seq % 1000);
    CHECK(memcmp(bytes, &m->seq, 8) == 0);
    for (k = 8; k < m->message.len; k++) {
        CHECK(bytes[k] == (unsigned char)(m->seq + k));
    }
}

static void reads(uint32_t policy) {
    ramway_subscriber *s = subscriber(policy, NULL);
    ramway_topic_message m[16];
    uint64_t next = 1, lost = 0, got = 0, turns;
    size_t n, k;
    ramway_status status = RAMWAY_OK;
    say('r');
    for (turns = 0;; turns++) {
        n = 1;
        status = turns % 2 == 0 ? RECV(s, LONG, m) : BATCH(s, LONG, m, 16, &n);
        if (status != RAMWAY_OK) {
            break;
        }
        for (k = 0; k < n; k++) {
            verify(&m[k]);
            CHECK(policy == RAMWAY_LATEST ? m[k].seq >= next : m[k].seq == next + m[k].lost);
            next = m[k].seq + 1;
            lost += m[k].lost;
            got++;
        }
        CHECK_OK(RELEASE(s));
    }
    CHECK_STATUS(status, RAMWAY_CLOSED);
    CHECK(next == MESSAGES + 1 && got + lost == MESSAGES && ramway_subscriber_lost(s) == lost);
    CHECK(policy != RAMWAY_RELIABLE || lost == 0);
    CHECK_OK(ramway_receiver_close(s));
}

static void reads_reliably(void) { reads(RAMWAY_RELIABLE); }
static void reads_lossily(void) { reads(RAMWAY_LOSSY); }
static void reads_latest(void) { reads(RAMWAY_LATEST); }

/* Without a wait between: whatever it copies is whole. */
static void polls_latest(void) {
    ramway_subscriber *s = subscriber(RAMWAY_LATEST, NULL);
    ramway_topic_message m;
    unsigned char buffer[256];
    uint64_t seen = 0;
    say('r');
    while (seen != MESSAGES) {
        ramway_status status = LATEST(s, buffer, sizeof buffer, &m);
        if (status == RAMWAY_EMPTY) {
            continue;
        }
        CHECK_OK(status);
        verify(&m);
        CHECK(m.seq >= seen);
        seen = m.seq;
    }
    CHECK_OK(ramway_receiver_close(s));
}

static void stream(void) {
    static void (*const lives[])(void) = {reads_reliably, reads_reliably, reads_lossily, reads_latest, polls_latest};
    enum { READERS = sizeof lives / sizeof *lives };
    ramway_topic_options o = small();
    ramway_publisher *p;
    pid_t pids[READERS];
    unsigned char bytes[256];
    void *slot;
    uint64_t seq;
    int i;
    o.capacity = 1 << 16;
    p = publisher(o);
    for (i = 0; i < READERS; i++) {
        pids[i] = child(lives[i]);
    }
    for (i = 0; i < READERS; i++) {
        CHECK(hear() == 'r');
    }
    for (seq = 1; seq <= MESSAGES; seq++) {
        uint32_t type_id = (uint32_t)(seq % 1000);
        if (seq % 2 == 0) {
            fill(bytes, seq);
            CHECK_OK(SEND(p, type_id, seq, bytes, length_of(seq), LONG));
        } else if (path) {
            CHECK_OK(ramway_inline_publisher_reserve(p, 250, LONG, &slot));
            fill((unsigned char *)slot, seq);
            CHECK_OK(ramway_inline_publisher_commit_unflushed(p, type_id, seq, length_of(seq)));
        } else {
            CHECK_OK(ramway_reserve(p, 250, LONG, &slot));
            fill((unsigned char *)slot, seq);
            CHECK_OK(ramway_commit_unflushed(p, type_id, seq, length_of(seq)));
        }
    }
    CHECK_OK(ramway_sender_close(p));
    for (i = 0; i < READERS; i++) {
        ends_well(pids[i]);
    }
}

/* ---- deaths ---- */

static void holds(const char *label) {
    ramway_subscriber *s = subscriber(RAMWAY_RELIABLE, label);
    ramway_topic_message m;
    CHECK_OK(RECV(s, LONG, &m));
    CHECK(m.seq == 1);
    CHECK_OK(RELEASE(s));
    CHECK_OK(RECV(s, LONG, &m));
    say('h');
    for (;;) {
        pause();
    }
}

static void holds_one(void) { holds(NULL); }
static void holds_one_durably(void) { holds("recorder"); }

static void send_until_full(ramway_publisher *p) {
    uint64_t sent = 0;
    ramway_status status;
    while ((status = SEND(p, 1, 0, &sent, sizeof sent, 300 * MS)) == RAMWAY_OK) {
        sent++;
    }
    CHECK_STATUS(status, RAMWAY_TIMED_OUT);
}

static void a_reliable_subscriber_is_killed(void) {
    ramway_publisher *p = publisher(small());
    pid_t pid = child(holds_one);
    uint64_t value = 7;
    CHECK_OK(ramway_publisher_wait_for_subscribers(p, 1, LONG));
    CHECK_OK(SEND(p, 1, 0, &value, 8, LONG));
    CHECK_OK(SEND(p, 1, 0, &value, 8, LONG));
    CHECK(hear() == 'h');
    send_until_full(p);
    is_killed(pid);
    /* Nobody is left for whom it would wait. */
    CHECK_OK(SEND(p, 1, 0, &value, 8, LONG));
    CHECK_STATUS(ramway_publisher_wait_for_subscribers(p, 1, RAMWAY_TRY), RAMWAY_TIMED_OUT);
    CHECK_OK(ramway_sender_close(p));
}

static void a_durable_subscriber_is_killed(void) {
    ramway_publisher *p = publisher(small());
    pid_t pid = child(holds_one_durably);
    ramway_subscriber *s;
    ramway_topic_message m;
    uint64_t value = 7, next;
    CHECK_OK(ramway_publisher_wait_for_subscribers(p, 1, LONG));
    CHECK_OK(SEND(p, 1, 0, &value, 8, LONG));
    CHECK_OK(SEND(p, 1, 0, &value, 8, LONG));
    CHECK(hear() == 'h');
    is_killed(pid);
    /* It stays, and so does what it has not released. */
    send_until_full(p);
    s = subscriber(RAMWAY_RELIABLE, "recorder");
    for (next = 2; next <= ramway_publisher_seq(p); next++) {
        CHECK_OK(RECV(s, LONG, &m));
        CHECK(m.seq == next && m.lost == 0);
        CHECK_OK(RELEASE(s));
    }
    CHECK_OK(SEND(p, 1, 0, &value, 8, RAMWAY_TRY));
    CHECK_OK(ramway_subscriber_unsubscribe(s));
    CHECK_OK(ramway_sender_close(p));
}

static void publishes_and_dies(void) {
    ramway_publisher *p = publisher(small());
    uint64_t value;
    CHECK_OK(ramway_publisher_wait_for_subscribers(p, 1, LONG));
    for (value = 1; value <= 10; value++) {
        CHECK_OK(SEND(p, 1, value, &value, 8, LONG));
    }
    say('p');
    for (;;) {
        pause();
    }
}

static void the_publisher_is_killed(void) {
    ramway_topic_options o = small();
    ramway_subscriber *s, *viewer;
    ramway_publisher *p;
    ramway_topic_message m;
    pid_t pid;
    uint64_t next, tag;
    uint32_t epoch;
    char buffer[8];
    CHECK_OK(ramway_subscriber_create(NAME, &o, &s));
    viewer = subscriber(RAMWAY_LATEST, NULL);
    pid = child(publishes_and_dies);
    CHECK(hear() == 'p');
    is_killed(pid);
    for (next = 1; next <= 10; next++) {
        CHECK_OK(RECV(s, LONG, &m));
        CHECK(m.seq == next && m.message.tag == next);
        CHECK_OK(RELEASE(s));
    }
    CHECK_STATUS(RECV(s, LONG, &m), RAMWAY_PEER_DEAD);
    CHECK(!ramway_receiver_is_peer_alive(s));
    CHECK_OK(LATEST(viewer, buffer, 8, &m));
    CHECK(m.seq == 10);
    CHECK_STATUS(ramway_subscriber_wait_newer(viewer, LONG, buffer, 8, &m), RAMWAY_PEER_DEAD);
    /* The next one goes on with the numbers. */
    p = publisher(small());
    CHECK(ramway_publisher_seq(p) == 10 && ramway_sender_last_tag(p, &tag) && tag == 10 && ramway_sender_epoch(p) == 2);
    CHECK_OK(ramway_receiver_wait_for_peer(s, LONG, &epoch));
    CHECK(epoch == 2);
    CHECK_OK(SEND(p, 1, 11, &next, 8, LONG));
    CHECK_OK(RECV(s, LONG, &m));
    CHECK(m.seq == 11 && m.lost == 0);
    CHECK_OK(RELEASE(s));
    CHECK_OK(ramway_subscriber_wait_newer(viewer, LONG, buffer, 8, &m));
    CHECK(m.seq == 11);
    CHECK_OK(ramway_sender_close(p));
    CHECK_OK(ramway_receiver_close(viewer));
    CHECK_OK(ramway_receiver_close(s));
}

/* ---- a subscriber that is stopped for too long ---- */

static void is_ejected(void) {
    ramway_subscriber *s = subscriber(RAMWAY_RELIABLE, NULL);
    ramway_topic_message m;
    uint64_t next, lost;
    ramway_status status;
    CHECK_OK(RECV(s, LONG, &m));
    CHECK(m.seq == 1);
    CHECK_OK(RELEASE(s));
    say('r');
    /* Stopped here, until the publisher has sent everything. */
    raise(SIGSTOP);
    CHECK_STATUS(RECV(s, LONG, &m), RAMWAY_LAGGED);
    lost = ramway_last_lost();
    CHECK(lost > 0);
    for (next = 2 + lost; (status = RECV(s, LONG, &m)) == RAMWAY_OK; next++) {
        CHECK(m.seq == next && m.lost == 0);
        CHECK_OK(RELEASE(s));
    }
    CHECK_STATUS(status, RAMWAY_CLOSED);
    CHECK(next == 1001);
    CHECK_OK(ramway_receiver_close(s));
}

static void a_stopped_subscriber_is_ejected(void) {
    ramway_topic_options o = small();
    ramway_publisher *p;
    pid_t pid;
    uint64_t k;
    int status;
    o.eject_after_ns = 50 * MS;
    p = publisher(o);
    pid = child(is_ejected);
    CHECK_OK(ramway_publisher_wait_for_subscribers(p, 1, LONG));
    CHECK_OK(SEND(p, 1, 0, &pid, sizeof pid, LONG));
    CHECK(hear() == 'r');
    CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    for (k = 2; k <= 1000; k++) {
        CHECK_OK(SEND(p, 1, 0, &k, sizeof k, LONG));
    }
    CHECK(kill(pid, SIGCONT) == 0);
    /* It is still to receive: a subscriber that is there gets everything that is intact, and then the close. */
    CHECK_OK(ramway_sender_close(p));
    ends_well(pid);
}

/* ---- a fork's child has no part in its parent's topic ---- */

static ramway_publisher *parents_publisher;
static ramway_subscriber *parents_subscriber;

static void has_no_part(void) {
    ramway_topic_message m;
    char buffer[8];
    CHECK_STATUS(SEND(parents_publisher, 1, 0, "x", 1, RAMWAY_TRY), RAMWAY_DETACHED);
    CHECK_STATUS(RECV(parents_subscriber, RAMWAY_TRY, &m), RAMWAY_DETACHED);
    CHECK_STATUS(LATEST(parents_subscriber, buffer, 8, &m), RAMWAY_DETACHED);
    CHECK_STATUS(ramway_publisher_skip_seq(parents_publisher, 1), RAMWAY_DETACHED);
}

static void a_child_is_detached(void) {
    ramway_topic_message m;
    parents_publisher = publisher(small());
    parents_subscriber = subscriber(RAMWAY_RELIABLE, NULL);
    CHECK_OK(SEND(parents_publisher, 1, 0, "x", 1, RAMWAY_TRY));
    ends_well(child(has_no_part));
    CHECK_OK(RECV(parents_subscriber, RAMWAY_TRY, &m));
    CHECK(m.seq == 1);
    CHECK_OK(RELEASE(parents_subscriber));
    CHECK_OK(ramway_sender_close(parents_publisher));
    CHECK_OK(ramway_receiver_close(parents_subscriber));
}

/* ---- a publisher that writes what none would ---- */

enum { TAIL_FAR, TAIL_ASKEW, LENGTH, LENGTH_AND_TAIL, NUMBER_BACK, LAST_ASKEW, HOSTILE };

static void hostile(uint32_t policy, int what) {
    ramway_topic_options o = small();
    ramway_publisher *p;
    ramway_subscriber *s;
    struct ramway_topic_producer *hot;
    uint64_t *header;
    uint64_t value = 7;
    unsigned char buffer[4096];
    ramway_topic_message m;
    ramway_status status;
    int refused = 1;
    /* A damaged topic stays for whoever looks at it, until it is made anew. */
    o.flags = RAMWAY_DISCARD;
    CHECK_OK(ramway_publisher_create(NAME, &o, &p));
    s = subscriber(policy, NULL);
    CHECK_OK(SEND(p, 1, 0, &value, 8, RAMWAY_TRY));
    CHECK_OK(RECV(s, RAMWAY_TRY, &m));
    CHECK_OK(RELEASE(s));
    CHECK_OK(SEND(p, 1, 0, &value, 8, RAMWAY_TRY));
    hot = (struct ramway_topic_producer *)(void *)((struct ramway_inline_sender *)(void *)p)->hot;
    header = (uint64_t *)(void *)(hot->data + (hot->last & (hot->capacity - 1)));
    switch (what) {
    case TAIL_FAR:
        hot->block->tail += 1 << 20;
        break;
    case TAIL_ASKEW:
        hot->block->tail += 8;
        refused = policy != RAMWAY_LATEST;
        break;
    case LENGTH:
        header[0] = header[0] >> 32 << 32 | 100000;
        break;
    case LENGTH_AND_TAIL:
        /* More than the mapping holds, and everything agrees. */
        header[0] = header[0] >> 32 << 32 | 1 << 30;
        hot->block->tail += UINT64_C(1) << 32;
        break;
    case NUMBER_BACK:
        header[2] = 1;
        break;
    default:
        hot->block->last += 8;
        refused = policy == RAMWAY_LATEST;
    }
    status = RECV(s, RAMWAY_TRY, &m);
    CHECK_STATUS(status, refused ? RAMWAY_CORRUPT : RAMWAY_OK);
    CHECK_STATUS(LATEST(s, buffer, sizeof buffer, &m), refused || what == LAST_ASKEW ? RAMWAY_CORRUPT : RAMWAY_OK);
    CHECK_STATUS(ramway_receiver_close(s), refused || what == LAST_ASKEW ? RAMWAY_CORRUPT : RAMWAY_OK);
    CHECK_OK(ramway_sender_close(p));
}

int main(void) {
    ramway_topic_options anew = small();
    ramway_publisher *p;
    uint32_t policy;
    int what;
    alarm(250);
    anew.flags = RAMWAY_DISCARD;
    CHECK(pipe(from_child) == 0);
    for (path = 0; path < 2; path++) {
        stream();
        a_reliable_subscriber_is_killed();
        a_durable_subscriber_is_killed();
        the_publisher_is_killed();
        a_stopped_subscriber_is_ejected();
        a_child_is_detached();
        for (policy = RAMWAY_RELIABLE; policy <= RAMWAY_LATEST; policy++) {
            for (what = 0; what < HOSTILE; what++) {
                hostile(policy, what);
            }
        }
        CHECK_OK(ramway_publisher_create(NAME, &anew, &p));
        CHECK_OK(ramway_sender_close(p));
    }
    return 0;
}
