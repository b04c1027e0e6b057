/* Two rings, one driven inline and one by the library, with the same million random calls: after each, the results,
 * the private state of both ends and the shared words must be the same. */
#include "check.h"
#include "ramway_inline.h"

static uint64_t state = 88172645463325252u;
static uint64_t random_below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

/* Everything after the two pointers, but for what only the library knows: its padding may differ. */
#define SAME(a, b) (memcmp((const char *)(a) + 16, (const char *)(b) + 16, (size_t)((const char *)(a)->more - (const char *)(a)) - 16) == 0)

static void run(uint64_t capacity, uint32_t align, int rounds) {
    ramway_options o = RAMWAY_OPTIONS_INIT;
    ramway_sender *s[2];
    ramway_receiver *r[2];
    struct ramway_producer *p[2];
    struct ramway_consumer *c[2];
    static const char *const name[2] = {"twin-inline", "twin-library"};
    char payload[256];
    int i, k;

    o.capacity = capacity;
    o.align = align;
    for (i = 0; i < 2; i++) {
        CHECK_OK(ramway_sender_create(name[i], &o, &s[i]));
        CHECK_OK(ramway_receiver_open(name[i], NULL, &r[i]));
        p[i] = ((struct ramway_inline_sender *)(void *)s[i])->hot;
        c[i] = ((struct ramway_inline_receiver *)(void *)r[i])->hot;
    }
    for (k = 0; k < (int)sizeof payload; k++) {
        payload[k] = (char)k;
    }
    for (k = 0; k < rounds; k++) {
        size_t len = (size_t)random_below(random_below(50) ? sizeof payload : capacity + 64);
        size_t n[2] = {0, 0}, max = (size_t)random_below(9);
        uint64_t tag = random_below(2) ? 0 : random_below(UINT64_MAX);
        uint32_t type_id = (uint32_t)random_below(random_below(100) ? 10 : UINT32_MAX);
        ramway_message m[2][8];
        void *slot[2] = {NULL, NULL};
        ramway_status status[2] = {RAMWAY_OK, RAMWAY_OK};
        memset(m, 0, sizeof m);
        switch (random_below(10)) {
        case 0:
        case 1:
            len %= sizeof payload;
            status[0] = ramway_inline_send(s[0], type_id, tag, payload, len, RAMWAY_TRY);
            status[1] = ramway_send(s[1], type_id, tag, payload, len, RAMWAY_TRY);
            break;
        case 2:
        case 3:
            status[0] = ramway_inline_reserve(s[0], len, RAMWAY_TRY, &slot[0]);
            status[1] = ramway_reserve(s[1], len, RAMWAY_TRY, &slot[1]);
            CHECK((slot[0] == NULL) == (slot[1] == NULL));
            if (slot[0] != NULL) {
                CHECK((uint8_t *)slot[0] - p[0]->data == (uint8_t *)slot[1] - p[1]->data);
                memset(slot[0], k, len);
                memset(slot[1], k, len);
            }
            break;
        case 4:
            status[0] = ramway_inline_commit(s[0], type_id, tag, len);
            status[1] = ramway_commit(s[1], type_id, tag, len);
            break;
        case 5:
            status[0] = ramway_inline_commit_unflushed(s[0], type_id, tag, len);
            status[1] = ramway_commit_unflushed(s[1], type_id, tag, len);
            break;
        case 6:
            if (random_below(4) != 0) {
                status[0] = ramway_inline_flush(s[0]);
                status[1] = ramway_flush(s[1]);
            } else {
                status[0] = ramway_inline_abort(s[0]);
                status[1] = ramway_abort(s[1]);
            }
            break;
        case 7:
            status[0] = ramway_inline_recv(r[0], RAMWAY_TRY, &m[0][0]);
            status[1] = ramway_recv(r[1], RAMWAY_TRY, &m[1][0]);
            n[0] = n[1] = status[0] == RAMWAY_OK;
            break;
        case 8:
            status[0] = ramway_inline_recv_batch(r[0], RAMWAY_TRY, m[0], max, &n[0]);
            status[1] = ramway_recv_batch(r[1], RAMWAY_TRY, m[1], max, &n[1]);
            break;
        default:
            status[0] = ramway_inline_release(r[0]);
            status[1] = ramway_release(r[1]);
        }
        CHECK(status[0] == status[1]);
        CHECK(n[0] == n[1]);
        for (i = 0; i < (int)n[0]; i++) {
            CHECK(m[0][i].len == m[1][i].len && m[0][i].tag == m[1][i].tag && m[0][i].type_id == m[1][i].type_id);
            CHECK((const uint8_t *)m[0][i].data - c[0]->data == (const uint8_t *)m[1][i].data - c[1]->data);
            CHECK(memcmp(m[0][i].data, m[1][i].data, m[0][i].len) == 0);
        }
        CHECK(SAME(p[0], p[1]));
        CHECK(SAME(c[0], c[1]));
        CHECK(memcmp(p[0]->block, p[1]->block, sizeof *p[0]->block) == 0);
    }
    for (i = 0; i < 2; i++) {
        CHECK_OK(ramway_sender_close(s[i]));
        CHECK_OK(ramway_receiver_close(r[i]));
        /* Whatever was not received went undelivered: start the next pair anew. */
        o.flags = RAMWAY_DISCARD;
        CHECK_OK(ramway_sender_create(name[i], &o, &s[i]));
        CHECK_OK(ramway_receiver_open(name[i], NULL, &r[i]));
        CHECK_OK(ramway_sender_close(s[i]));
        while (ramway_recv(r[i], RAMWAY_FOREVER, &(ramway_message){0}) != RAMWAY_CLOSED) {
        }
        CHECK_OK(ramway_receiver_close(r[i]));
    }
}

int main(void) {
    run(4096, 16, 400000);
    run(4096, 4096, 100000);
    run(65536, 64, 500000);
    return 0;
}
