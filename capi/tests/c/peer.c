/* One side of a stream that another language's program may be the other side of:
 *
 *     peer send|recv ring|bus|topic NAME COUNT call|inline
 *
 * Message `i` (from the last tag on, so a restarted sender goes on where the last one was): type id i mod 1000, tag
 * i + 1, payload of 24 + i * 7919 mod 200 bytes that begins with i, goes on with (i + k) mod 256 at k and ends with the
 * FNV-1a hash of what comes before. Both sides print "first last"; the exit status is 0, or the error's number. On stderr the
 * sender says "attached" when it is, and the receiver "running" after a thousand messages.
 */
#define _DEFAULT_SOURCE
#include "check.h"
#include "ramway_inline.h"

#include <unistd.h>

static int path, topic;
#define PICK(name, ...)                                                        \
    (!path    ? ramway_##name(__VA_ARGS__)                                     \
     : topic ? ramway_inline_publisher_##name(__VA_ARGS__)                     \
             : ramway_inline_##name(__VA_ARGS__))

/* Of a topic: with the numbers too, which are the tags here. */
static ramway_status take(ramway_receiver *r, ramway_message *m, size_t max, size_t *n) {
    ramway_topic_message t[16];
    ramway_status status;
    size_t k;
    if (!topic && max == 1) {
        *n = 1;
        return path ? ramway_inline_recv(r, RAMWAY_FOREVER, m) : ramway_recv(r, RAMWAY_FOREVER, m);
    }
    if (!topic) {
        return path ? ramway_inline_recv_batch(r, RAMWAY_FOREVER, m, max, n)
                    : ramway_recv_batch(r, RAMWAY_FOREVER, m, max, n);
    }
    if (max == 1) {
        *n = 1;
        status = path ? ramway_inline_subscriber_recv(r, RAMWAY_FOREVER, t) : ramway_subscriber_recv(r, RAMWAY_FOREVER, t);
    } else {
        status = path ? ramway_inline_subscriber_recv_batch(r, RAMWAY_FOREVER, t, max, n)
                      : ramway_subscriber_recv_batch(r, RAMWAY_FOREVER, t, max, n);
    }
    for (k = 0; k < *n && status == RAMWAY_OK; k++) {
        CHECK(t[k].seq == t[k].message.tag && t[k].lost == 0);
        m[k] = t[k].message;
    }
    return status;
}

static ramway_status release(ramway_receiver *r) {
    return !path    ? ramway_release(r)
           : topic ? ramway_inline_subscriber_release(r)
                   : ramway_inline_release(r);
}

static uint64_t fnv(const unsigned char *bytes, size_t len) {
    uint64_t hash = 0xcbf29ce484222325u;
    size_t k;
    for (k = 0; k < len; k++) {
        hash = (hash ^ bytes[k]) * 0x100000001b3u;
    }
    return hash;
}

static size_t length_of(uint64_t i) {
    return 24 + (size_t)(i * 7919 % 200);
}

static void fill(unsigned char *to, uint64_t i) {
    size_t len = length_of(i) - 8, k;
    uint64_t hash;
    memcpy(to, &i, 8);
    for (k = 8; k < len; k++) {
        to[k] = (unsigned char)(i + k);
    }
    hash = fnv(to, len);
    memcpy(to + len, &hash, 8);
}

static uint64_t verify(const ramway_message *m) {
    const unsigned char *bytes = (const unsigned char *)m->data;
    uint64_t i, hash;
    size_t k;
    CHECK(m->len >= 24);
    memcpy(&i, bytes, 8);
    CHECK(m->len == length_of(i) && m->type_id == i % 1000 && m->tag == i + 1);
    for (k = 8; k < m->len - 8; k++) {
        CHECK(bytes[k] == (unsigned char)(i + k));
    }
    memcpy(&hash, bytes + m->len - 8, 8);
    CHECK(hash == fnv(bytes, m->len - 8));
    return i;
}

static ramway_status send_one(ramway_sender *s, uint64_t i) {
    ramway_status status;
    unsigned char copy[256];
    size_t len = length_of(i);
    void *slot;
    if (i % 3 == 0) {
        fill(copy, i);
        return PICK(send, s, (uint32_t)(i % 1000), i + 1, copy, len, RAMWAY_FOREVER);
    }
    status = PICK(reserve, s, 250, RAMWAY_FOREVER, &slot);
    if (status != RAMWAY_OK) {
        return status;
    }
    fill((unsigned char *)slot, i);
    return i % 3 == 1 ? PICK(commit, s, (uint32_t)(i % 1000), i + 1, len)
                      : PICK(commit_unflushed, s, (uint32_t)(i % 1000), i + 1, len);
}

static ramway_status send_all(ramway_sender *s, uint64_t count) {
    uint64_t i = 0, first;
    ramway_status status = RAMWAY_OK;
    ramway_sender_last_tag(s, &i);
    first = i;
    for (; i < count && status == RAMWAY_OK; i++) {
        while ((status = send_one(s, i)) == RAMWAY_PEER_DEAD && first != 0 && i == first) {
            usleep(10000); /* Started anew before the receiver was: it comes. */
        }
    }
    if (status == RAMWAY_OK) {
        status = PICK(flush, s);
    }
    printf("%llu %llu\n", (unsigned long long)first, (unsigned long long)i);
    return status;
}

static ramway_status recv_all(ramway_receiver *r) {
    uint64_t first = 0, next = 0, turns = 0;
    ramway_message m[16];
    ramway_status status;
    for (;; turns++) {
        size_t n, k;
        status = take(r, m, turns % 2 == 0 ? 1 : 16, &n);
        if (status != RAMWAY_OK) {
            break;
        }
        for (k = 0; k < n; k++) {
            uint64_t i = verify(&m[k]);
            if (next == 0) {
                first = i;
            } else {
                CHECK(i == next);
            }
            next = i + 1;
            if (next - first == 1000) {
                fprintf(stderr, "running\n");
            }
        }
        CHECK_OK(release(r));
    }
    printf("%llu %llu\n", (unsigned long long)first, (unsigned long long)next);
    return status == RAMWAY_CLOSED ? RAMWAY_OK : status;
}

int main(int argc, char **argv) {
    int sends, bus, status;
    const char *name;
    uint64_t count;
    ramway_options o = RAMWAY_OPTIONS_INIT;
    ramway_bus_options b = RAMWAY_BUS_OPTIONS_INIT;
    ramway_sender *s = NULL;
    ramway_receiver *r = NULL;

    CHECK(argc == 6);
    /* A test that hangs is a test that failed. */
    alarm(120);
    sends = strcmp(argv[1], "send") == 0;
    bus = strcmp(argv[2], "bus") == 0;
    name = argv[3];
    count = strtoull(argv[4], NULL, 10);
    path = strcmp(argv[5], "inline") == 0;
    topic = strcmp(argv[2], "topic") == 0;
    if (topic) {
        ramway_topic_options t = RAMWAY_TOPIC_OPTIONS_INIT;
        t.capacity = 1 << 16;
        if (sends) {
            CHECK_OK(ramway_publisher_open_or_create(name, &t, &s));
            CHECK_OK(ramway_publisher_wait_for_subscribers(s, 1, RAMWAY_FOREVER));
        } else {
            CHECK_OK(ramway_subscriber_open_or_create(name, &t, &r));
        }
    } else if (bus) {
        ramway_bus *both;
        if (sends) {
            b.capacity = 1 << 16;
            CHECK_OK(ramway_bus_listen(name, &b, RAMWAY_FOREVER, &both));
        } else {
            b.timeout_ns = INT64_C(60000000000);
            CHECK_OK(ramway_bus_connect(name, &b, &both));
        }
        CHECK_OK(ramway_bus_split(both, &s, &r));
    } else if (sends) {
        o.capacity = 1 << 16;
        CHECK_OK(ramway_sender_open_or_create(name, &o, &s));
    } else {
        o.capacity = 1 << 16;
        CHECK_OK(ramway_receiver_open_or_create(name, &o, &r));
    }
    if (sends) {
        fprintf(stderr, "attached\n");
    }
    status = (int)(sends ? send_all(s, count) : recv_all(r));
    if (status != 0) {
        fprintf(stderr, "%s: %s\n", ramway_status_name(status), ramway_last_error());
    }
    if (s != NULL) {
        ramway_sender_close(s);
    }
    if (r != NULL) {
        ramway_receiver_close(r);
    }
    return status;
}
