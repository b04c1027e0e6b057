/* A server for all tests of RPC, and what they do with it. */
#ifndef RPC_SCENE_H
#define RPC_SCENE_H

#include "child.h"

#include <errno.h>
#include <poll.h>

#define NAME "rpc"

static pid_t child(void (*life)(void)) { return forked(life, _exit); }

/* Whether a child has said something that was not heard yet. */
static int has_said(void) {
    struct pollfd fd;
    fd.fd = from_child[0];
    fd.events = POLLIN;
    return poll(&fd, 1, 0) == 1;
}

/* ---- a server for all tests ---- */

enum { ECHO = 1, FILL, FAIL, STREAM, KEEP, ABOUT = 7, OPEN, SILENT, NEWS };

/* Requests that wait until OPEN is called. */
static ramway_rpc_request *kept[4096];
static size_t keeps;
/* How many of those that were answered were cancelled by then. */
static uint32_t stopped;
static ramway_rpc_server *serving;

static void echo(ramway_rpc_request *request, void *user) {
    size_t len, meta_len;
    const void *body = ramway_rpc_request_body(request, &len), *meta = ramway_rpc_request_meta(request, &meta_len);
    CHECK(user == &serving && body != NULL && meta != NULL && ramway_rpc_request_method(request) == ECHO);
    CHECK_OK(ramway_rpc_request_set_reply_meta(request, meta, meta_len));
    CHECK_OK(ramway_rpc_request_reply(request, body, len));
    CHECK_STATUS(ramway_rpc_request_reply(request, body, len), RAMWAY_INVALID_ARGUMENT);
}

static size_t write_a(void *to, size_t len, void *user) {
    memset(to, 'a', len);
    return *(size_t *)user;
}

/* The body is the length to be asked for, and the one to be used. */
static void fill(ramway_rpc_request *request, void *user) {
    uint32_t lens[2];
    size_t len, used;
    const void *body = ramway_rpc_request_body(request, &len);
    (void)user;
    CHECK(len == sizeof lens);
    memcpy(lens, body, len);
    used = lens[1];
    CHECK_OK(ramway_rpc_request_reply_with(request, lens[0], write_a, &used));
}

static void fail(ramway_rpc_request *request, void *user) {
    size_t len;
    const void *body = ramway_rpc_request_body(request, &len);
    uint32_t code;
    (void)user;
    memcpy(&code, body, sizeof code);
    CHECK_OK(ramway_rpc_request_fail(request, code, "not today"));
}

static void crash(ramway_rpc_request *request, void *user) {
    (void)user;
    CHECK_OK(ramway_rpc_request_fail_unexpectedly(request, "crashed"));
}

static void about(ramway_rpc_request *request, void *user) {
    ramway_peer peer;
    int64_t out[4];
    (void)user;
    CHECK_OK(ramway_rpc_request_peer(request, &peer));
    out[0] = peer.pid;
    out[1] = peer.uid;
    out[2] = ramway_rpc_request_remaining_ns(request);
    out[3] = ramway_rpc_request_is_stream(request) || ramway_rpc_request_is_cancelled(request);
    CHECK_STATUS(ramway_rpc_request_send(request, out, sizeof out, RAMWAY_TRY), RAMWAY_INVALID_ARGUMENT);
    /* What the server is doing now is calling this. */
    CHECK_STATUS(ramway_rpc_server_run(serving, RAMWAY_TRY), RAMWAY_BUSY);
    CHECK_STATUS(ramway_rpc_server_close(serving), RAMWAY_BUSY);
    CHECK_OK(ramway_rpc_request_reply(request, out, sizeof out));
}

static void keep(ramway_rpc_request *request, void *user) {
    (void)user;
    CHECK(keeps < sizeof kept / sizeof *kept);
    kept[keeps++] = request;
    say('k');
}

static void answer_kept(void) {
    size_t i, len;
    for (i = 0; i < keeps; i++) {
        const void *body = ramway_rpc_request_body(kept[i], &len);
        stopped += ramway_rpc_request_is_cancelled(kept[i]);
        CHECK_OK(ramway_rpc_request_reply(kept[i], body, len));
    }
    keeps = 0;
}

static void open_gate(ramway_rpc_request *request, void *user) {
    (void)user;
    answer_kept();
    CHECK_OK(ramway_rpc_request_reply(request, &stopped, sizeof stopped));
}

static void silent(ramway_rpc_request *request, void *user) {
    (void)request;
    (void)user;
}

/* A stream of the numbers below the body's, sent on the server's own thread as there is room. */
struct counting {
    ramway_rpc_request *request;
    uint32_t next, count;
    int is_over;
};

static void count_on(void *user) {
    struct counting *c = user;
    ramway_status status = RAMWAY_OK;
    if (c->is_over) {
        return;
    }
    while (c->next < c->count && status == RAMWAY_OK) {
        status = ramway_rpc_request_send(c->request, &c->next, sizeof c->next, RAMWAY_TRY);
        c->next += status == RAMWAY_OK;
    }
    if (status == RAMWAY_FULL) {
        return;
    }
    CHECK(status == RAMWAY_OK || status == RAMWAY_INTERRUPTED);
    c->is_over = 1;
    if (status == RAMWAY_INTERRUPTED) {
        CHECK(ramway_rpc_request_is_cancelled(c->request));
        say('c');
    }
    CHECK_OK(c->count == 13 ? ramway_rpc_request_fail(c->request, 13, "after 13") : ramway_rpc_request_finish(c->request));
}

static void count(ramway_rpc_request *request, void *user) {
    size_t len;
    const void *body = ramway_rpc_request_body(request, &len);
    struct counting *c = calloc(1, sizeof *c);
    (void)user;
    CHECK(c != NULL);
    memcpy(&c->count, body, sizeof c->count);
    c->request = request;
    CHECK_OK(ramway_rpc_request_on_change(request, count_on, free, c));
    count_on(c);
}

/* Says whether the last of the kept requests was cancelled: 'c' at once, or when it is. */
static void tell(void *user) {
    (void)user;
    if (keeps > 0 && ramway_rpc_request_is_cancelled(kept[keeps - 1])) {
        say('x');
        answer_kept();
    }
}

static void news(ramway_rpc_request *request, void *user) {
    (void)user;
    kept[keeps++] = request;
    CHECK_OK(ramway_rpc_request_on_change(request, tell, NULL, NULL));
    say('k');
}

static void on_term(int number) {
    (void)number;
    (void)ramway_rpc_server_shutdown(serving, 10 * 1000 * MS);
}

static uint32_t max_in_flight, max_clients;
static uint64_t max_bytes;

static ramway_rpc_server *bound(void) {
    ramway_rpc_server_options o = RAMWAY_RPC_SERVER_OPTIONS_INIT;
    uint32_t sum = ramway_rpc_method_id("Test.Crash");
    o.capacity = 65536;
    o.max_in_flight = max_in_flight;
    o.max_clients = max_clients;
    o.max_bytes = max_bytes;
    CHECK_OK(ramway_rpc_server_bind(NAME, &o, &serving));
    CHECK_OK(ramway_rpc_server_method(serving, ECHO, "Test.Echo", echo, &serving));
    CHECK_OK(ramway_rpc_server_method(serving, FILL, NULL, fill, NULL));
    CHECK_OK(ramway_rpc_server_method(serving, FAIL, NULL, fail, NULL));
    CHECK_OK(ramway_rpc_server_deferred(serving, STREAM, NULL, count, NULL));
    CHECK_OK(ramway_rpc_server_deferred(serving, KEEP, NULL, keep, NULL));
    CHECK_OK(ramway_rpc_server_method(serving, sum, "Test.Crash", crash, NULL));
    CHECK_OK(ramway_rpc_server_method(serving, ABOUT, NULL, about, NULL));
    CHECK_OK(ramway_rpc_server_method(serving, OPEN, NULL, open_gate, NULL));
    CHECK_OK(ramway_rpc_server_method(serving, SILENT, NULL, silent, NULL));
    CHECK_OK(ramway_rpc_server_deferred(serving, NEWS, NULL, news, NULL));
    return serving;
}

static void serves(void) {
    CHECK(signal(SIGTERM, on_term) != SIG_ERR);
    bound();
    CHECK_OK(ramway_rpc_server_run(serving, RAMWAY_FOREVER));
    CHECK_STATUS(ramway_rpc_server_poll(serving), RAMWAY_CLOSED);
    CHECK_OK(ramway_rpc_server_close(serving));
}

static ramway_rpc_client *connected(void) {
    ramway_rpc_client *client;
    CHECK_OK(ramway_rpc_connect(NAME, NULL, &client));
    return client;
}

static void terminated(pid_t pid) {
    CHECK(kill(pid, SIGTERM) == 0);
    ends_well(pid);
}

/* What callbacks have seen. */
struct seen {
    ramway_rpc_client *client;
    uint64_t other;
    uint32_t ends, sum, failed, elements;
    int again;
};

static void add(uint64_t call, ramway_rpc_reply *reply, void *user) {
    struct seen *seen = user;
    uint32_t value;
    CHECK(call != 0);
    if (reply->more) {
        seen->elements++;
        return;
    }
    seen->ends++;
    if (reply->status == RAMWAY_RPC_OK && reply->len == sizeof value) {
        memcpy(&value, reply->body, sizeof value);
        seen->sum += value;
    } else if (reply->status != RAMWAY_RPC_OK) {
        seen->failed++;
    }
}

#endif
