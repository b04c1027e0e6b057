/* Two topics, one driven inline and one by the library, with the same million random calls: after each, the results, the
 * private state of all sides and the shared words must be the same. Each has a publisher, a reliable subscriber, and one
 * that reads the newest message. */
#include "check.h"
#include "ramway_inline.h"

static uint64_t state = 88172645463325252u;
static uint64_t random_below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

/* From the field after the pointers up to another field. */
#define SAME(a, b, type, from, to)                                                                       \
    (memcmp((const char *)(a) + offsetof(struct type, from), (const char *)(b) + offsetof(struct type, from), \
            offsetof(struct type, to) - offsetof(struct type, from)) == 0)

static void same_subscriber(const struct ramway_topic_consumer *a, const struct ramway_topic_consumer *b) {
    CHECK(SAME(a, b, ramway_topic_consumer, capacity, cursor));
    CHECK(a->expected == b->expected && a->copies_out == b->copies_out && a->policy == b->policy);
    CHECK((a->cursor == NULL) == (b->cursor == NULL) && (a->cursor == NULL || *a->cursor == *b->cursor));
}

static void run(uint64_t capacity, uint32_t align, int rounds) {
    ramway_topic_options o = RAMWAY_TOPIC_OPTIONS_INIT;
    ramway_publisher *p[2];
    ramway_subscriber *s[2], *l[2];
    struct ramway_topic_producer *hot[2];
    struct ramway_topic_consumer *view[2], *newest[2];
    static const char *const name[2] = {"twin-inline", "twin-library"};
    char payload[256];
    int i, k;

    o.capacity = capacity;
    o.align = align;
    for (i = 0; i < 2; i++) {
        ramway_topic_options latest = RAMWAY_TOPIC_OPTIONS_INIT;
        latest.policy = RAMWAY_LATEST;
        CHECK_OK(ramway_publisher_create(name[i], &o, &p[i]));
        CHECK_OK(ramway_subscriber_open(name[i], NULL, &s[i]));
        CHECK_OK(ramway_subscriber_open(name[i], &latest, &l[i]));
        hot[i] = (struct ramway_topic_producer *)(void *)((struct ramway_inline_sender *)(void *)p[i])->hot;
        view[i] = (struct ramway_topic_consumer *)(void *)((struct ramway_inline_receiver *)(void *)s[i])->hot;
        newest[i] = (struct ramway_topic_consumer *)(void *)((struct ramway_inline_receiver *)(void *)l[i])->hot;
    }
    for (k = 0; k < (int)sizeof payload; k++) {
        payload[k] = (char)k;
    }
    for (k = 0; k < rounds; k++) {
        size_t len = (size_t)random_below(random_below(50) ? sizeof payload : capacity / 2 + 64);
        size_t n[2] = {0, 0}, max = (size_t)random_below(9);
        uint64_t tag = random_below(2) ? 0 : random_below(UINT64_MAX), skip = 0;
        uint32_t type_id = (uint32_t)random_below(random_below(100) ? 10 : UINT32_MAX);
        ramway_topic_message m[2][8];
        char buffer[2][256];
        void *slot[2] = {NULL, NULL};
        ramway_status status[2] = {RAMWAY_OK, RAMWAY_OK};
        const void *base[2] = {view[0]->data, view[1]->data};
        memset(m, 0, sizeof m);
        switch (random_below(13)) {
        case 0:
        case 1:
            len %= sizeof payload;
            status[0] = ramway_inline_publisher_send(p[0], type_id, tag, payload, len, RAMWAY_TRY);
            status[1] = ramway_send(p[1], type_id, tag, payload, len, RAMWAY_TRY);
            break;
        case 2:
        case 3:
            status[0] = ramway_inline_publisher_reserve(p[0], len, RAMWAY_TRY, &slot[0]);
            status[1] = ramway_reserve(p[1], len, RAMWAY_TRY, &slot[1]);
            CHECK((slot[0] == NULL) == (slot[1] == NULL));
            if (slot[0] != NULL) {
                CHECK((uint8_t *)slot[0] - hot[0]->data == (uint8_t *)slot[1] - hot[1]->data);
                memset(slot[0], k, len);
                memset(slot[1], k, len);
            }
            break;
        case 4:
            status[0] = ramway_inline_publisher_commit(p[0], type_id, tag, len);
            status[1] = ramway_commit(p[1], type_id, tag, len);
            break;
        case 5:
            status[0] = ramway_inline_publisher_commit_unflushed(p[0], type_id, tag, len);
            status[1] = ramway_commit_unflushed(p[1], type_id, tag, len);
            break;
        case 6:
            if (random_below(4) != 0) {
                status[0] = ramway_inline_publisher_flush(p[0]);
                status[1] = ramway_flush(p[1]);
            } else {
                status[0] = ramway_inline_publisher_abort(p[0]);
                status[1] = ramway_abort(p[1]);
            }
            break;
        case 7:
            status[0] = ramway_inline_subscriber_recv(s[0], RAMWAY_TRY, &m[0][0]);
            status[1] = ramway_subscriber_recv(s[1], RAMWAY_TRY, &m[1][0]);
            n[0] = n[1] = status[0] == RAMWAY_OK;
            break;
        case 8:
            status[0] = ramway_inline_subscriber_recv_batch(s[0], RAMWAY_TRY, m[0], max, &n[0]);
            status[1] = ramway_subscriber_recv_batch(s[1], RAMWAY_TRY, m[1], max, &n[1]);
            break;
        case 9:
        case 10:
            len = (size_t)random_below(sizeof buffer[0]);
            /* Of either subscriber: what is in order is not disturbed. */
            if (random_below(2)) {
                status[0] = ramway_inline_subscriber_latest(l[0], buffer[0], len, &m[0][0]);
                status[1] = ramway_subscriber_latest(l[1], buffer[1], len, &m[1][0]);
            } else {
                status[0] = ramway_inline_subscriber_latest(s[0], buffer[0], len, &m[0][0]);
                status[1] = ramway_subscriber_latest(s[1], buffer[1], len, &m[1][0]);
            }
            n[0] = n[1] = status[0] == RAMWAY_OK;
            base[0] = buffer[0];
            base[1] = buffer[1];
            break;
        case 11:
            /* A gap: rare enough that some messages have none before them. */
            if (random_below(8) == 0) {
                skip = random_below(5);
                status[0] = ramway_publisher_skip_seq(p[0], skip);
                status[1] = ramway_publisher_skip_seq(p[1], skip);
            } else {
                status[0] = ramway_inline_subscriber_recv(l[0], RAMWAY_TRY, &m[0][0]);
                status[1] = ramway_subscriber_recv(l[1], RAMWAY_TRY, &m[1][0]);
                if (status[0] == RAMWAY_OK) {
                    CHECK(m[0][0].seq == m[1][0].seq);
                    CHECK_OK(ramway_inline_subscriber_release(l[0]));
                    CHECK_OK(ramway_release(l[1]));
                }
            }
            break;
        default:
            status[0] = ramway_inline_subscriber_release(s[0]);
            status[1] = ramway_release(s[1]);
        }
        CHECK(status[0] == status[1]);
        CHECK(n[0] == n[1]);
        for (i = 0; i < (int)n[0]; i++) {
            const ramway_message *a = &m[0][i].message, *b = &m[1][i].message;
            CHECK(a->len == b->len && a->tag == b->tag && a->type_id == b->type_id);
            CHECK(m[0][i].seq == m[1][i].seq && m[0][i].time == m[1][i].time && m[0][i].lost == m[1][i].lost);
            CHECK((const char *)a->data - (const char *)base[0] == (const char *)b->data - (const char *)base[1]);
            CHECK(memcmp(a->data, b->data, a->len) == 0);
        }
        /* Without the padding, which may hold anything. */
        CHECK(SAME(hot[0], hot[1], ramway_topic_producer, capacity, timestamps_pad));
        CHECK(SAME(hot[0], hot[1], ramway_topic_producer, word_seen, area));
        same_subscriber(view[0], view[1]);
        same_subscriber(newest[0], newest[1]);
        CHECK(memcmp(hot[0]->block, hot[1]->block, sizeof *hot[0]->block) == 0);
        CHECK(hot[0]->area->word == hot[1]->area->word);
    }
    CHECK(ramway_subscriber_lost(s[0]) > 0 && ramway_publisher_seq(p[0]) > 1000);
    for (i = 0; i < 2; i++) {
        CHECK_OK(ramway_sender_close(p[i]));
        CHECK_OK(ramway_receiver_close(s[i]));
        CHECK_OK(ramway_receiver_close(l[i]));
    }
}

int main(void) {
    run(4096, 32, 400000);
    run(16384, 4096, 100000);
    run(65536, 64, 500000);
    return 0;
}
