/* RPC: replies that callbacks are given, in the ring and kept. */
#define _DEFAULT_SOURCE
#include "rpc_scene.h"

/* In a callback calls are started and cancelled; what waits is Busy. */
static void starts_another(uint64_t call, ramway_rpc_reply *reply, void *user) {
    struct seen *seen = user;
    ramway_rpc_reply other;
    uint32_t value = 5;
    CHECK(ramway_rpc_max_in_flight(seen->client) > 0 && ramway_rpc_in_flight(seen->client) > 0);
    CHECK_STATUS(ramway_rpc_poll(seen->client, RAMWAY_TRY), RAMWAY_BUSY);
    CHECK(strstr(ramway_last_error(), "callback") != NULL);
    CHECK_STATUS(ramway_rpc_close(seen->client), RAMWAY_BUSY);
    CHECK_STATUS(ramway_rpc_call(seen->client, ECHO, NULL, 0, NULL, &other), RAMWAY_BUSY);
    CHECK(other.error == RAMWAY_BUSY && other.status == RAMWAY_RPC_NO_STATUS);
    CHECK_OK(ramway_rpc_cancel(seen->client, seen->other));
    CHECK_OK(ramway_rpc_start(seen->client, ECHO, &value, sizeof value, NULL, add, seen, NULL));
    seen->again++;
    add(call, reply, user);
}

static void callbacks(void) {
    enum { CALLS = 1000 };
    pid_t server;
    ramway_rpc_client *client;
    ramway_rpc_call_options o = RAMWAY_RPC_CALL_OPTIONS_INIT;
    ramway_rpc_reply reply;
    struct seen seen;
    struct pollfd fds;
    uint32_t i, elements = 40;
    uint64_t waited, calls[2];
    max_in_flight = 4;
    server = child(serves);
    client = connected();
    memset(&seen, 0, sizeof seen);
    seen.client = client;
    CHECK(ramway_rpc_max_in_flight(client) == 4);
    CHECK_STATUS(ramway_rpc_poll(client, RAMWAY_FOREVER), RAMWAY_EMPTY);
    for (i = 0; i < CALLS; i++) {
        CHECK_OK(ramway_rpc_start(client, ECHO, &i, sizeof i, NULL, add, &seen, NULL));
        CHECK(ramway_rpc_in_flight(client) <= 4);
    }
    CHECK(seen.ends == 0);
    CHECK_STATUS(ramway_rpc_start(client, ECHO, NULL, 0, NULL, NULL, NULL, NULL), RAMWAY_INVALID_ARGUMENT);
    /* A call that is waited for goes its way, and runs no callback. */
    CHECK_OK(ramway_rpc_start(client, ECHO, &i, sizeof i, NULL, NULL, NULL, &waited));
    CHECK_OK(ramway_rpc_wait(client, waited, LONG, &reply));
    CHECK(reply.len == sizeof i && seen.ends == 0);
    ramway_rpc_reply_free(&reply);
    CHECK(ramway_rpc_due_ns(client) == 0);
    while (seen.ends < CALLS) {
        CHECK_OK(ramway_rpc_poll(client, LONG));
    }
    CHECK(seen.ends == CALLS && seen.sum == CALLS * (CALLS - 1) / 2 && seen.failed == 0);
    CHECK(ramway_rpc_due_ns(client) == RAMWAY_FOREVER);
    CHECK_STATUS(ramway_rpc_wait(client, waited, RAMWAY_TRY, &reply), RAMWAY_INVALID_ARGUMENT);
    ramway_rpc_reply_free(&reply);
    CHECK_STATUS(ramway_rpc_wait(client, 12345678, RAMWAY_TRY, &reply), RAMWAY_INVALID_ARGUMENT);
    ramway_rpc_reply_free(&reply);

    /* One that is cancelled in the callback of another: its own is not called. */
    CHECK_OK(ramway_rpc_start(client, KEEP, &i, sizeof i, NULL, add, &seen, &seen.other));
    CHECK(hear() == 'k');
    CHECK_STATUS(ramway_rpc_wait(client, seen.other, RAMWAY_TRY, &reply), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(ramway_rpc_start(client, ECHO, NULL, 0, NULL, starts_another, &seen, NULL));
    while (seen.ends < CALLS + 2) {
        CHECK_OK(ramway_rpc_poll(client, LONG));
    }
    CHECK(seen.again == 1 && seen.sum == CALLS * (CALLS - 1) / 2 + 5 && ramway_rpc_in_flight(client) == 1);
    CHECK_STATUS(ramway_rpc_poll(client, RAMWAY_FOREVER), RAMWAY_EMPTY);
    CHECK_OK(ramway_rpc_call(client, OPEN, NULL, 0, NULL, &reply));
    memcpy(&i, reply.body, sizeof i);
    CHECK(i == 1);
    ramway_rpc_reply_free(&reply);

    /* In an event loop: time limits, and a stream. */
    seen.ends = 0;
    fds.fd = ramway_rpc_fd(client);
    fds.events = POLLIN;
    CHECK(fds.fd >= 0);
    /* A busy machine may need more than the first limits to begin the call: then it is not run. */
    for (o.timeout_ns = 20 * MS;; o.timeout_ns *= 2) {
        CHECK(o.timeout_ns < LONG);
        seen.ends = seen.failed = 0;
        CHECK_OK(ramway_rpc_start(client, KEEP, &i, sizeof i, &o, add, &seen, &calls[0]));
        CHECK_OK(ramway_rpc_ping(client, NULL));
        if (has_said()) {
            break;
        }
        while (seen.ends == 0) {
            CHECK_OK(ramway_rpc_poll(client, LONG));
        }
    }
    CHECK(hear() == 'k');
    o.timeout_ns = 0;
    o.window = 3;
    CHECK_OK(ramway_rpc_start_stream(client, STREAM, &elements, sizeof elements, &o, add, &seen, &calls[1]));
    while (seen.ends < 2) {
        int64_t due = ramway_rpc_due_ns(client);
        CHECK(poll(&fds, 1, due < 0 ? -1 : (int)((due + MS - 1) / MS)) >= 0);
        do {
            i = (uint32_t)ramway_rpc_poll(client, RAMWAY_TRY);
        } while (i == RAMWAY_OK);
        CHECK_STATUS(i, RAMWAY_EMPTY);
    }
    CHECK(seen.failed == 1 && seen.elements == elements);
    CHECK_OK(ramway_rpc_close(client));
    terminated(server);
    max_in_flight = 0;
}

/* ---- where a callback's reply lies ---- */

struct shown {
    ramway_rpc_client *client;
    uint32_t elements, ends, in_ring;
    ramway_rpc_reply kept[3];
};

/* Reads the words in the ring, and keeps the first three. */
static void shown(uint64_t call, ramway_rpc_reply *reply, void *user) {
    struct shown *seen = user;
    ramway_rpc_reply again;
    CHECK(call != 0 && reply->status == RAMWAY_RPC_OK && reply->error == RAMWAY_OK);
    seen->in_ring += reply->owner == NULL && reply->body != NULL;
    if (reply->more) {
        uint32_t word;
        CHECK(reply->len == sizeof word);
        memcpy(&word, reply->body, sizeof word);
        CHECK(word == seen->elements);
        if (seen->elements < 3) {
            CHECK_OK(ramway_rpc_reply_keep(reply, &seen->kept[seen->elements]));
            CHECK(reply->len == sizeof word && memcmp(reply->body, &word, sizeof word) == 0 && reply->owner == NULL);
        }
        seen->elements++;
    } else {
        seen->ends++;
    }
    CHECK_STATUS(ramway_rpc_reply_keep(NULL, &again), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_rpc_reply_keep(reply, NULL), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_rpc_reply_keep(reply, reply), RAMWAY_INVALID_ARGUMENT);
    /* What is received meanwhile would take the reply away: nothing is. */
    CHECK(ramway_rpc_is_ready(seen->client));
}

/* Checks all bytes of an echo, with a call more from inside. */
static void long_reply(uint64_t call, ramway_rpc_reply *reply, void *user) {
    struct shown *seen = user;
    const unsigned char *body = reply->body;
    size_t i;
    CHECK(call != 0 && reply->status == RAMWAY_RPC_OK && reply->owner == NULL && reply->meta_len == 5);
    CHECK(memcmp(reply->meta, "trace", 5) == 0);
    if (seen->ends++ == 0) {
        CHECK_OK(ramway_rpc_start(seen->client, ECHO, "", 0, NULL, shown, seen, NULL));
    }
    for (i = 0; i < reply->len; i++) {
        CHECK(body[i] == (unsigned char)(i * 7));
    }
}

static void in_the_ring(void) {
    enum { LEN = 30000, CALLS = 20 };
    pid_t server;
    ramway_rpc_client *client;
    ramway_rpc_call_options o = RAMWAY_RPC_CALL_OPTIONS_INIT;
    ramway_rpc_reply reply, mine;
    struct shown seen;
    struct seen ends;
    unsigned char *bytes = malloc(LEN);
    uint32_t elements = 200, word, i;
    uint64_t failing;
    /* More replies at once than the server keeps would be refused. */
    max_in_flight = 2;
    server = child(serves);
    client = connected();
    memset(&seen, 0, sizeof seen);
    seen.client = client;

    /* Elements of a stream: whatever lies in the ring is in its order, and what was kept lasts. */
    o.window = 4;
    CHECK_OK(ramway_rpc_start_stream(client, STREAM, &elements, sizeof elements, &o, shown, &seen, NULL));
    while (seen.ends == 0) {
        CHECK_OK(ramway_rpc_poll(client, LONG));
    }
    CHECK(seen.elements == elements && seen.in_ring >= elements);
    for (i = 0; i < 3; i++) {
        memcpy(&word, seen.kept[i].body, sizeof word);
        CHECK(word == i && seen.kept[i].more && seen.kept[i].owner != NULL);
        ramway_rpc_reply_free(&seen.kept[i]);
        CHECK(seen.kept[i].body == NULL);
    }

    /* Replies that together are many times the ring. */
    CHECK(bytes != NULL);
    for (i = 0; i < LEN; i++) {
        bytes[i] = (unsigned char)(i * 7);
    }
    o.meta = "trace";
    o.meta_len = 5;
    seen.ends = 0;
    for (i = 0; i < CALLS; i++) {
        CHECK_OK(ramway_rpc_start(client, ECHO, bytes, LEN, &o, long_reply, &seen, NULL));
    }
    while (seen.ends < CALLS + 1) {
        CHECK_OK(ramway_rpc_poll(client, LONG));
    }
    CHECK(ramway_rpc_in_flight(client) == 0);

    /* A failure is no reply in the ring, and is kept as well. */
    word = 4711;
    CHECK_OK(ramway_rpc_start(client, FAIL, &word, sizeof word, NULL, NULL, NULL, &failing));
    CHECK_STATUS(ramway_rpc_wait(client, failing, LONG, &reply), RAMWAY_OS);
    CHECK_OK(ramway_rpc_reply_keep(&reply, &mine));
    CHECK(mine.code == 4711 && mine.owner != NULL && reply.owner == NULL && strcmp(mine.text, reply.text) == 0);
    ramway_rpc_reply_free(&reply);
    CHECK(strstr(mine.text, "not today") != NULL);
    ramway_rpc_reply_free(&mine);
    free(bytes);

    /* What a killed server has replied is still read, then each other call is told how it ended. */
    memset(&ends, 0, sizeof ends);
    word = 5;
    CHECK_OK(ramway_rpc_start(client, ECHO, &word, sizeof word, NULL, add, &ends, NULL));
    CHECK_OK(ramway_rpc_start(client, KEEP, &word, sizeof word, NULL, add, &ends, NULL));
    CHECK(hear() == 'k');
    CHECK_OK(ramway_rpc_start(client, ECHO, &word, sizeof word, NULL, add, &ends, NULL));
    is_killed(server);
    while (ends.ends < 3) {
        CHECK_OK(ramway_rpc_poll(client, LONG));
    }
    CHECK(ends.sum == 5 && ends.failed == 2);
    CHECK_STATUS(ramway_rpc_poll(client, LONG), RAMWAY_EMPTY);
    CHECK_OK(ramway_rpc_close(client));
}

int main(void) {
    CHECK(pipe(from_child) == 0);
    callbacks();
    in_the_ring();
    return 0;
}
