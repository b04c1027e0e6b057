/* RPC: calls, streams, time limits, cancelling, event loops, threads; servers and clients that are killed. */
#define _DEFAULT_SOURCE
#include "rpc_scene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

/* The same in an event loop of the program's own. */
static void serves_by_poll(void) {
    struct pollfd fds;
    ramway_status status;
    CHECK(signal(SIGTERM, on_term) != SIG_ERR);
    bound();
    fds.fd = ramway_rpc_server_fd(serving);
    fds.events = POLLIN;
    CHECK(fds.fd >= 0);
    while ((status = ramway_rpc_server_poll(serving)) == RAMWAY_OK) {
        int64_t due = ramway_rpc_server_due_ns(serving);
        int waited = poll(&fds, 1, due < 0 ? -1 : (int)((due + MS - 1) / MS));
        CHECK(waited >= 0 || errno == EINTR);
    }
    CHECK_STATUS(status, RAMWAY_CLOSED);
    CHECK_OK(ramway_rpc_server_close(serving));
}

/* ---- calls ---- */

static void call_echo(ramway_rpc_client *client, size_t len, size_t meta_len) {
    ramway_rpc_call_options o = RAMWAY_RPC_CALL_OPTIONS_INIT;
    ramway_rpc_reply reply;
    unsigned char *bytes = malloc(len + meta_len + 1);
    size_t i;
    CHECK(bytes != NULL);
    for (i = 0; i < len + meta_len; i++) {
        bytes[i] = (unsigned char)(i + len);
    }
    o.meta = bytes + len;
    o.meta_len = meta_len;
    CHECK_OK(ramway_rpc_call(client, ECHO, bytes, len, &o, &reply));
    CHECK(reply.status == RAMWAY_RPC_OK && reply.error == RAMWAY_OK && !reply.more && reply.code == 0);
    CHECK(reply.len == len && memcmp(reply.body, bytes, len) == 0 && *reply.text == 0);
    CHECK(reply.meta_len == meta_len && memcmp(reply.meta, bytes + len, meta_len) == 0);
    ramway_rpc_reply_free(&reply);
    CHECK(reply.body == NULL && reply.owner == NULL);
    ramway_rpc_reply_free(&reply);
    free(bytes);
}

static void has_ended(ramway_status found, ramway_status expected, ramway_rpc_reply *reply, uint32_t status, uint32_t code,
                      const char *text, bool may_have_run) {
    CHECK_STATUS(found, expected);
    CHECK(reply->status == status && reply->code == code && reply->may_have_run == may_have_run && !reply->more);
    CHECK(strstr(reply->text, text) != NULL && reply->body == NULL && reply->len == 0);
    CHECK((status == RAMWAY_RPC_NO_STATUS) == (reply->error == expected));
    ramway_rpc_reply_free(reply);
}

struct methods {
    char text[400];
    ramway_rpc_client *client;
};

static void add_method(uint32_t number, const char *name, void *user) {
    struct methods *methods = user;
    size_t len = strlen(methods->text);
    CHECK_STATUS(ramway_rpc_poll(methods->client, RAMWAY_TRY), RAMWAY_BUSY);
    snprintf(methods->text + len, sizeof methods->text - len, "%u %s,", number, name != NULL ? name : "-");
}

static void calls(void (*life)(void)) {
    pid_t server = child(life);
    ramway_rpc_client *client = connected();
    ramway_rpc_call_options o = RAMWAY_RPC_CALL_OPTIONS_INIT;
    ramway_rpc_reply reply = {0};
    struct methods methods;
    size_t longest = ramway_rpc_max_request_len(client), len;
    uint32_t words[2] = {9, 9}, crashes = ramway_rpc_method_id("Test.Crash");
    int64_t found[4];
    CHECK(ramway_rpc_peer_pid(client) == (uint32_t)server && ramway_rpc_peer_uid(client) == geteuid());
    CHECK(ramway_rpc_is_peer_alive(client) && ramway_rpc_max_in_flight(client) == 1024 && ramway_rpc_is_ready(client));
    CHECK(longest == 65536 - 32);
    for (len = 0; len <= longest; len = len * 3 + 1) {
        call_echo(client, len, 0);
        call_echo(client, len / 2, len / 3);
    }
    call_echo(client, longest, 0);
    call_echo(client, longest - 32, 17);
    CHECK(ramway_rpc_in_flight(client) == 0);
    has_ended(ramway_rpc_call(client, ECHO, &reply, longest + 1, NULL, &reply), RAMWAY_TOO_LARGE, &reply,
              RAMWAY_RPC_NO_STATUS, 0, "", false);
    words[0] = 1000;
    words[1] = 900;
    CHECK_OK(ramway_rpc_call(client, FILL, words, sizeof words, NULL, &reply));
    CHECK(reply.len == 900 && ((const char *)reply.body)[899] == 'a');
    ramway_rpc_reply_free(&reply);
    words[0] = 65536;
    has_ended(ramway_rpc_call(client, FILL, words, sizeof words, NULL, &reply), RAMWAY_TOO_LARGE, &reply,
              RAMWAY_RPC_REPLY_TOO_LARGE, 0, "longer", true);
    words[0] = 4711;
    has_ended(ramway_rpc_call(client, FAIL, words, sizeof words, NULL, &reply), RAMWAY_OS, &reply, RAMWAY_RPC_APPLICATION,
              4711, "not today", true);
    CHECK(strstr(ramway_last_error(), "4711") != NULL);
    has_ended(ramway_rpc_call(client, crashes, NULL, 0, NULL, &reply), RAMWAY_OS, &reply, RAMWAY_RPC_HANDLER_FAILED, 0,
              "crashed", true);
    has_ended(ramway_rpc_call(client, SILENT, NULL, 0, NULL, &reply), RAMWAY_OS, &reply, RAMWAY_RPC_HANDLER_FAILED, 0,
              "without an answer", true);
    has_ended(ramway_rpc_call(client, 4000, NULL, 0, NULL, &reply), RAMWAY_NOT_FOUND, &reply, RAMWAY_RPC_NO_SUCH_METHOD, 0,
              "no such method", false);
    has_ended(ramway_rpc_call(client, RAMWAY_METHOD_RESERVED + 77, NULL, 0, NULL, &reply), RAMWAY_NOT_FOUND, &reply,
              RAMWAY_RPC_NO_SUCH_METHOD, 0, "no such method", false);
    o.timeout_ns = 60 * 1000 * MS;
    CHECK_OK(ramway_rpc_call(client, ABOUT, NULL, 0, &o, &reply));
    memcpy(found, reply.body, sizeof found);
    CHECK(found[0] == getpid() && found[1] == geteuid() && found[2] > 0 && found[2] <= o.timeout_ns && found[3] == 0);
    ramway_rpc_reply_free(&reply);
    CHECK_OK(ramway_rpc_call(client, ABOUT, NULL, 0, NULL, &reply));
    memcpy(found, reply.body, sizeof found);
    CHECK(found[2] == RAMWAY_FOREVER);
    ramway_rpc_reply_free(&reply);
    CHECK_OK(ramway_rpc_ping(client, NULL));
    CHECK_OK(ramway_rpc_ping(client, &o));
    memset(&methods, 0, sizeof methods);
    methods.client = client;
    CHECK_OK(ramway_rpc_describe(client, NULL, add_method, &methods));
    {
        char expected[200];
        snprintf(expected, sizeof expected, "1 Test.Echo,2 -,3 -,4 -,5 -,7 -,8 -,9 -,10 -,%u Test.Crash,", crashes);
        CHECK(strcmp(methods.text, expected) == 0);
    }
    o.timeout_ns = -2;
    CHECK_STATUS(ramway_rpc_ping(client, &o), RAMWAY_INVALID_ARGUMENT);
    o.timeout_ns = 0;
    o.reserved = 1;
    has_ended(ramway_rpc_call(client, ECHO, NULL, 0, &o, &reply), RAMWAY_UNSUPPORTED, &reply, RAMWAY_RPC_NO_STATUS, 0, "",
              false);
    CHECK_OK(ramway_rpc_close(client));
    terminated(server);
}

/* ---- time limits and cancelling ---- */

static uint32_t opened(ramway_rpc_client *client) {
    ramway_rpc_reply reply;
    uint32_t count;
    CHECK_OK(ramway_rpc_call(client, OPEN, NULL, 0, NULL, &reply));
    memcpy(&count, reply.body, sizeof count);
    ramway_rpc_reply_free(&reply);
    return count;
}

/* Until the server has answered everything: what was kept is answered behind the call that opens the gate. */
static void settles(ramway_rpc_client *client) {
    do {
        CHECK_OK(ramway_rpc_ping(client, NULL));
    } while (ramway_rpc_in_flight(client) != 0);
}

static void limits(void) {
    pid_t server = child(serves);
    ramway_rpc_client *client = connected();
    ramway_rpc_call_options o = RAMWAY_RPC_CALL_OPTIONS_INIT;
    ramway_rpc_reply reply;
    ramway_status status;
    uint64_t call;
    uint32_t value = 77;
    /* Its own time limit, while it runs. A busy machine may need more than the first limits to begin it: then it is not run. */
    for (o.timeout_ns = 5 * MS;; o.timeout_ns *= 2) {
        status = ramway_rpc_call(client, KEEP, &value, sizeof value, &o, &reply);
        CHECK(status != RAMWAY_OK && o.timeout_ns < LONG);
        CHECK_OK(ramway_rpc_ping(client, NULL));
        if (has_said()) {
            break;
        }
        ramway_rpc_reply_free(&reply);
    }
    has_ended(status, RAMWAY_TIMED_OUT, &reply, RAMWAY_RPC_NO_STATUS, 0, "", true);
    CHECK(hear() == 'k' && ramway_rpc_in_flight(client) == 1);
    CHECK(opened(client) == 1);
    settles(client);
    /* A wait has a time limit of its own: the call goes on. */
    CHECK_OK(ramway_rpc_start(client, KEEP, &value, sizeof value, NULL, NULL, NULL, &call));
    CHECK_STATUS(ramway_rpc_wait(client, call, RAMWAY_TRY, &reply), RAMWAY_EMPTY);
    CHECK_STATUS(ramway_rpc_wait(client, call, 5 * MS, &reply), RAMWAY_EMPTY);
    CHECK(reply.error == RAMWAY_EMPTY && reply.owner == NULL);
    CHECK(hear() == 'k' && opened(client) == 1);
    CHECK_OK(ramway_rpc_wait(client, call, LONG, &reply));
    CHECK(reply.len == sizeof value && memcmp(reply.body, &value, sizeof value) == 0);
    ramway_rpc_reply_free(&reply);
    /* Cancelled: the handler is told, and the place is free only when it has answered. */
    CHECK_OK(ramway_rpc_start(client, NEWS, NULL, 0, NULL, NULL, NULL, &call));
    CHECK(hear() == 'k');
    CHECK_OK(ramway_rpc_cancel(client, call));
    CHECK_OK(ramway_rpc_cancel(client, call));
    CHECK_STATUS(ramway_rpc_wait(client, call, RAMWAY_TRY, &reply), RAMWAY_INVALID_ARGUMENT);
    ramway_rpc_reply_free(&reply);
    CHECK(hear() == 'x');
    settles(client);
    CHECK_OK(ramway_rpc_close(client));
    terminated(server);
}

static void bounded_bytes(void) {
    static const char body[4000];
    pid_t server;
    ramway_rpc_client *client;
    ramway_rpc_client_options o = RAMWAY_RPC_CLIENT_OPTIONS_INIT;
    ramway_rpc_reply reply;
    uint64_t calls[3];
    int i;
    max_bytes = 8192;
    server = child(serves);
    o.max_buffered = 5000;
    CHECK_OK(ramway_rpc_connect(NAME, &o, &client));
    /* The server copies what is kept, up to its limit. */
    for (i = 0; i < 3; i++) {
        CHECK_OK(ramway_rpc_start(client, KEEP, body, sizeof body, NULL, NULL, NULL, &calls[i]));
    }
    has_ended(ramway_rpc_wait(client, calls[2], LONG, &reply), RAMWAY_FULL, &reply, RAMWAY_RPC_OVERLOADED, 0, "limit", false);
    CHECK(hear() == 'k' && hear() == 'k');
    /* The client keeps replies that nobody has taken, up to its own. */
    CHECK(opened(client) == 0);
    settles(client);
    CHECK_OK(ramway_rpc_wait(client, calls[0], LONG, &reply));
    CHECK(reply.len == sizeof body);
    ramway_rpc_reply_free(&reply);
    has_ended(ramway_rpc_wait(client, calls[1], LONG, &reply), RAMWAY_TOO_LARGE, &reply, RAMWAY_RPC_NO_STATUS, 0,
              "max_buffered", true);
    call_echo(client, sizeof body, 0);
    CHECK_OK(ramway_rpc_close(client));
    terminated(server);
    max_bytes = 0;
}

/* ---- streams ---- */

static uint64_t counted(ramway_rpc_client *client, uint32_t elements, uint32_t window) {
    ramway_rpc_call_options o = RAMWAY_RPC_CALL_OPTIONS_INIT;
    uint64_t call;
    o.window = window;
    CHECK_OK(ramway_rpc_start_stream(client, STREAM, &elements, sizeof elements, &o, NULL, NULL, &call));
    return call;
}

static void is_element(ramway_rpc_client *client, uint64_t call, uint32_t expected) {
    ramway_rpc_reply reply;
    uint32_t value;
    CHECK_OK(ramway_rpc_wait(client, call, LONG, &reply));
    CHECK(reply.more && reply.len == sizeof value);
    memcpy(&value, reply.body, sizeof value);
    CHECK(value == expected);
    ramway_rpc_reply_free(&reply);
}

static void streams(void) {
    pid_t server = child(serves);
    ramway_rpc_client *client = connected();
    ramway_rpc_reply reply;
    uint32_t i, window;
    uint64_t slow = counted(client, 1000, 2), call;
    /* A stream that nobody reads stops itself, and nothing else. */
    for (window = 0; window < 20; window += 3) {
        call = counted(client, 100, window);
        for (i = 0; i < 100; i++) {
            is_element(client, call, i);
        }
        CHECK_OK(ramway_rpc_wait(client, call, LONG, &reply));
        CHECK(!reply.more && reply.status == RAMWAY_RPC_OK && reply.len == 0);
        ramway_rpc_reply_free(&reply);
        call_echo(client, 100, 0);
    }
    for (i = 0; i < 1000; i++) {
        is_element(client, slow, i);
    }
    CHECK_OK(ramway_rpc_wait(client, slow, LONG, &reply));
    CHECK(!reply.more);
    ramway_rpc_reply_free(&reply);
    /* One that fails behind its elements. */
    call = counted(client, 13, 1);
    for (i = 0; i < 13; i++) {
        is_element(client, call, i);
    }
    has_ended(ramway_rpc_wait(client, call, LONG, &reply), RAMWAY_OS, &reply, RAMWAY_RPC_APPLICATION, 13, "after 13", true);
    /* Cancelled: its handler ends. */
    call = counted(client, 1000000, 1);
    is_element(client, call, 0);
    CHECK_OK(ramway_rpc_cancel(client, call));
    CHECK(hear() == 'c');
    /* A method with one reply, called as a stream: its reply is the only element. And the other way round. */
    CHECK_OK(ramway_rpc_start_stream(client, ECHO, &i, sizeof i, NULL, NULL, NULL, &call));
    is_element(client, call, i);
    CHECK_OK(ramway_rpc_wait(client, call, LONG, &reply));
    CHECK(!reply.more);
    ramway_rpc_reply_free(&reply);
    settles(client);
    CHECK_OK(ramway_rpc_close(client));
    terminated(server);
}

/* ---- ends ---- */

static void a_killed_server(void) {
    pid_t server = child(serves);
    ramway_rpc_client *client = connected();
    ramway_rpc_reply reply;
    struct seen seen;
    uint64_t call, queued;
    uint32_t i = 0;
    CHECK_OK(ramway_rpc_start(client, KEEP, &i, sizeof i, NULL, NULL, NULL, &call));
    CHECK(hear() == 'k');
    memset(&seen, 0, sizeof seen);
    CHECK_OK(ramway_rpc_start(client, KEEP, &i, sizeof i, NULL, add, &seen, NULL));
    CHECK_OK(ramway_rpc_start_stream(client, STREAM, &i, sizeof i, NULL, NULL, NULL, &queued));
    CHECK_OK(ramway_rpc_wait(client, queued, LONG, &reply));
    ramway_rpc_reply_free(&reply);
    CHECK(hear() == 'k');
    is_killed(server);
    has_ended(ramway_rpc_wait(client, call, LONG, &reply), RAMWAY_PEER_DEAD, &reply, RAMWAY_RPC_NO_STATUS, 0, "", true);
    CHECK_OK(ramway_rpc_poll(client, LONG));
    CHECK(seen.ends == 1 && seen.failed == 1);
    CHECK_STATUS(ramway_rpc_poll(client, LONG), RAMWAY_EMPTY);
    has_ended(ramway_rpc_call(client, ECHO, NULL, 0, NULL, &reply), RAMWAY_PEER_DEAD, &reply, RAMWAY_RPC_NO_STATUS, 0, "",
              false);
    CHECK(!ramway_rpc_is_peer_alive(client) && ramway_rpc_is_ready(client));
    CHECK_OK(ramway_rpc_close(client));
}

static void a_server_that_shuts_down(void (*life)(void)) {
    pid_t server = child(life);
    ramway_rpc_client *client = connected(), *other = connected();
    ramway_rpc_reply reply;
    ramway_status status;
    uint64_t call;
    uint32_t value = 3;
    CHECK_OK(ramway_rpc_ping(other, NULL));
    CHECK_OK(ramway_rpc_start(client, KEEP, &value, sizeof value, NULL, NULL, NULL, &call));
    CHECK(hear() == 'k');
    CHECK(kill(server, SIGTERM) == 0);
    /* The one without a call under way is closed; the other one's new calls are refused, until its call has ended. */
    while ((status = ramway_rpc_call(other, ECHO, NULL, 0, NULL, &reply)) == RAMWAY_OK) {
        ramway_rpc_reply_free(&reply);
    }
    CHECK_STATUS(status, RAMWAY_CLOSED);
    CHECK(!reply.may_have_run && (reply.status == RAMWAY_RPC_NO_STATUS || reply.status == RAMWAY_RPC_DRAINING));
    ramway_rpc_reply_free(&reply);
    has_ended(ramway_rpc_call(client, ECHO, NULL, 0, NULL, &reply), RAMWAY_CLOSED, &reply, RAMWAY_RPC_DRAINING, 0,
              "shutting down", false);
    CHECK_OK(ramway_rpc_ping(client, NULL));
    CHECK_OK(ramway_rpc_cancel(client, call));
    /* It is told that its call is cancelled only while it serves: its client goes. */
    CHECK_OK(ramway_rpc_close(client));
    CHECK_OK(ramway_rpc_close(other));
    ends_well(server);
}

static void calls_and_waits(void) {
    ramway_rpc_client *client = connected();
    uint64_t call;
    CHECK_OK(ramway_rpc_start(client, NEWS, NULL, 0, NULL, NULL, NULL, &call));
    CHECK_OK(ramway_rpc_ping(client, NULL));
    for (;;) {
        pause();
    }
}

static void a_killed_client(void) {
    pid_t server, hostile;
    ramway_rpc_client *client;
    max_clients = 2;
    server = child(serves);
    client = connected();
    hostile = child(calls_and_waits);
    CHECK(hear() == 'k');
    is_killed(hostile);
    /* Its call is cancelled, and the server has its place again. */
    CHECK(hear() == 'x');
    call_echo(client, 100, 3);
    hostile = child(calls_and_waits);
    CHECK(hear() == 'k');
    is_killed(hostile);
    CHECK(hear() == 'x');
    CHECK_OK(ramway_rpc_close(client));
    terminated(server);
    max_clients = 0;
}

static void is_a_plain_listener(void) {
    ramway_bus *bus;
    say('l');
    CHECK_STATUS(ramway_bus_listen("rpc-plain", NULL, LONG, &bus), RAMWAY_OK);
    CHECK_OK(ramway_bus_close(bus));
}

static void plain_peers(void) {
    pid_t server = child(serves), plain;
    ramway_rpc_client *client = connected();
    ramway_bus *bus;
    CHECK_STATUS(ramway_bus_connect(NAME, NULL, &bus), RAMWAY_ABI_MISMATCH);
    call_echo(client, 10, 0);
    CHECK_OK(ramway_rpc_close(client));
    terminated(server);
    plain = child(is_a_plain_listener);
    CHECK(hear() == 'l');
    CHECK_STATUS(ramway_rpc_connect("rpc-plain", NULL, &client), RAMWAY_ABI_MISMATCH);
    CHECK(client == NULL);
    CHECK_OK(ramway_bus_connect("rpc-plain", NULL, &bus));
    CHECK_OK(ramway_bus_close(bus));
    ends_well(plain);
}

/* ---- threads ---- */

static ramway_rpc_client *shared;
static atomic_int state;

static void *polls(void *user) {
    ramway_status status;
    (void)user;
    while ((status = ramway_rpc_poll(shared, RAMWAY_FOREVER)) == RAMWAY_BUSY) {
    }
    CHECK_STATUS(status, RAMWAY_INTERRUPTED);
    atomic_store(&state, 1);
    return NULL;
}

static void threads_and_forks(void) {
    pid_t server = child(serves), forked_pid;
    struct seen seen;
    ramway_rpc_reply reply;
    pthread_t thread;
    uint64_t call;
    uint32_t value = 1;
    ramway_status status;
    shared = connected();
    memset(&seen, 0, sizeof seen);
    CHECK_OK(ramway_rpc_start(shared, KEEP, &value, sizeof value, NULL, add, &seen, NULL));
    CHECK(hear() == 'k');
    CHECK(pthread_create(&thread, NULL, polls, NULL) == 0);
    while ((status = ramway_rpc_cancel(shared, 99)) == RAMWAY_OK) {
        usleep(1000);
    }
    CHECK_STATUS(status, RAMWAY_BUSY);
    CHECK_STATUS(ramway_rpc_close(shared), RAMWAY_BUSY);
    forked_pid = fork();
    CHECK(forked_pid >= 0);
    if (forked_pid == 0) {
        CHECK_STATUS(ramway_rpc_poll(shared, RAMWAY_TRY), RAMWAY_DETACHED);
        CHECK_OK(ramway_rpc_close(shared));
        _exit(0);
    }
    ends_well(forked_pid);
    CHECK_OK(ramway_rpc_wake(shared));
    CHECK(pthread_join(thread, NULL) == 0 && atomic_load(&state) == 1);
    CHECK_OK(ramway_rpc_start(shared, KEEP, &value, sizeof value, NULL, NULL, NULL, &call));
    CHECK(hear() == 'k');
    CHECK_OK(ramway_rpc_wake(shared));
    CHECK_STATUS(ramway_rpc_wait(shared, call, LONG, &reply), RAMWAY_INTERRUPTED);
    CHECK(opened(shared) == 0);
    CHECK_OK(ramway_rpc_wait(shared, call, LONG, &reply));
    ramway_rpc_reply_free(&reply);
    forked_pid = fork();
    CHECK(forked_pid >= 0);
    if (forked_pid == 0) {
        CHECK_STATUS(ramway_rpc_poll(shared, RAMWAY_TRY), RAMWAY_DETACHED);
        CHECK_STATUS(ramway_rpc_call(shared, ECHO, NULL, 0, NULL, &reply), RAMWAY_DETACHED);
        CHECK_STATUS(ramway_rpc_wait(shared, call, RAMWAY_TRY, &reply), RAMWAY_INVALID_ARGUMENT);
        CHECK(seen.ends == 0);
        CHECK_OK(ramway_rpc_close(shared));
        _exit(0);
    }
    ends_well(forked_pid);
    call_echo(shared, 5, 0);
    CHECK_OK(ramway_rpc_close(shared));
    terminated(server);
}

/* Requests on their way to the threads that answer them. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static ramway_rpc_request *work[64];
static size_t works;
static int no_more;

static void hand_out(ramway_rpc_request *request, void *user) {
    (void)user;
    pthread_mutex_lock(&mutex);
    CHECK(works < sizeof work / sizeof *work);
    work[works++] = request;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
}

static void *answers(void *user) {
    (void)user;
    for (;;) {
        ramway_rpc_request *request;
        size_t len;
        const void *body;
        uint32_t n, i;
        ramway_status status = RAMWAY_OK;
        pthread_mutex_lock(&mutex);
        while (works == 0 && !no_more) {
            pthread_cond_wait(&cond, &mutex);
        }
        if (works == 0) {
            pthread_mutex_unlock(&mutex);
            return NULL;
        }
        request = work[--works];
        pthread_mutex_unlock(&mutex);
        body = ramway_rpc_request_body(request, &len);
        if (!ramway_rpc_request_is_stream(request)) {
            CHECK_STATUS(ramway_rpc_request_send(request, body, len, RAMWAY_TRY), RAMWAY_INVALID_ARGUMENT);
            CHECK_OK(ramway_rpc_request_reply(request, body, len));
            continue;
        }
        memcpy(&n, body, sizeof n);
        for (i = 0; i < n && status == RAMWAY_OK; i++) {
            status = ramway_rpc_request_send(request, &i, sizeof i, i % 2 ? RAMWAY_FOREVER : LONG);
        }
        CHECK(status == RAMWAY_OK || status == RAMWAY_INTERRUPTED);
        CHECK_OK(ramway_rpc_request_finish(request));
    }
}

static void *runs(void *user) {
    CHECK_OK(ramway_rpc_server_run(user, RAMWAY_FOREVER));
    return NULL;
}

/* The server in one thread, its handlers' work in others, the clients in more. */
static void *calls_much(void *user) {
    ramway_rpc_client *client = connected();
    ramway_rpc_reply reply;
    struct seen seen;
    uint32_t i, elements = 20;
    uint64_t stream;
    (void)user;
    memset(&seen, 0, sizeof seen);
    for (i = 0; i < 200; i++) {
        CHECK_OK(ramway_rpc_start(client, 1, &i, sizeof i, NULL, add, &seen, NULL));
        if (i % 10 == 0) {
            CHECK_OK(ramway_rpc_start_stream(client, 1, &elements, sizeof elements, NULL, NULL, NULL, &stream));
            if (i % 20 == 0) {
                is_element(client, stream, 0);
                CHECK_OK(ramway_rpc_cancel(client, stream));
            } else {
                uint32_t k;
                for (k = 0; k < elements; k++) {
                    is_element(client, stream, k);
                }
                CHECK_OK(ramway_rpc_wait(client, stream, LONG, &reply));
                CHECK(!reply.more);
                ramway_rpc_reply_free(&reply);
            }
        }
    }
    while (seen.ends < 200) {
        CHECK_OK(ramway_rpc_poll(client, LONG));
    }
    CHECK(seen.sum == 200 * 199 / 2);
    CHECK_OK(ramway_rpc_close(client));
    return NULL;
}

static void answers_from_other_threads(void) {
    enum { WORKERS = 3, CLIENTS = 3 };
    ramway_rpc_server_options o = RAMWAY_RPC_SERVER_OPTIONS_INIT;
    pthread_t server, workers[WORKERS], clients[CLIENTS];
    ramway_rpc_server *handle;
    int i;
    o.max_in_flight = 8;
    CHECK_OK(ramway_rpc_server_bind(NAME, &o, &handle));
    CHECK_OK(ramway_rpc_server_deferred(handle, 1, NULL, hand_out, NULL));
    CHECK(pthread_create(&server, NULL, runs, handle) == 0);
    for (i = 0; i < WORKERS; i++) {
        CHECK(pthread_create(&workers[i], NULL, answers, NULL) == 0);
    }
    for (i = 0; i < CLIENTS; i++) {
        CHECK(pthread_create(&clients[i], NULL, calls_much, NULL) == 0);
    }
    for (i = 0; i < CLIENTS; i++) {
        CHECK(pthread_join(clients[i], NULL) == 0);
    }
    CHECK_OK(ramway_rpc_server_shutdown(handle, RAMWAY_FOREVER));
    CHECK(pthread_join(server, NULL) == 0);
    pthread_mutex_lock(&mutex);
    no_more = 1;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    for (i = 0; i < WORKERS; i++) {
        CHECK(pthread_join(workers[i], NULL) == 0);
    }
    CHECK_OK(ramway_rpc_server_close(handle));
}

/* ---- what nobody could use ---- */

static void options_that_nobody_could_use(void) {
    ramway_rpc_server_options so = RAMWAY_RPC_SERVER_OPTIONS_INIT;
    ramway_rpc_client_options co = RAMWAY_RPC_CLIENT_OPTIONS_INIT;
    ramway_rpc_server *server = (ramway_rpc_server *)1, *second;
    ramway_rpc_client *client = (ramway_rpc_client *)1;
    so.max_in_flight = 1048577;
    CHECK_STATUS(ramway_rpc_server_bind(NAME, &so, &server), RAMWAY_INVALID_ARGUMENT);
    CHECK(server == NULL);
    so.max_in_flight = 0;
    so.align = 24;
    CHECK_STATUS(ramway_rpc_server_bind(NAME, &so, &server), RAMWAY_INVALID_ARGUMENT);
    so.align = 0;
    so.wait_policy = 9;
    CHECK_STATUS(ramway_rpc_server_bind(NAME, &so, &server), RAMWAY_INVALID_ARGUMENT);
    so.wait_policy = 0;
    so.size = 3;
    CHECK_STATUS(ramway_rpc_server_bind(NAME, &so, &server), RAMWAY_INVALID_ARGUMENT);
    co.flags = 2;
    CHECK_STATUS(ramway_rpc_connect(NAME, &co, &client), RAMWAY_INVALID_ARGUMENT);
    CHECK(client == NULL);
    co.flags = RAMWAY_NO_MEMBARRIER;
    co.reserved = 1;
    CHECK_STATUS(ramway_rpc_connect(NAME, &co, &client), RAMWAY_UNSUPPORTED);
    co.reserved = 0;
    co.timeout_ns = 5 * MS;
    CHECK_STATUS(ramway_rpc_connect(NAME, &co, &client), RAMWAY_NOT_FOUND);
    CHECK_OK(ramway_rpc_server_bind(NAME, NULL, &server));
    CHECK_STATUS(ramway_rpc_server_bind(NAME, NULL, &second), RAMWAY_ALREADY_EXISTS);
    CHECK_OK(ramway_rpc_server_method(server, 1, NULL, silent, NULL));
    CHECK_STATUS(ramway_rpc_server_method(server, 1, NULL, silent, NULL), RAMWAY_ALREADY_EXISTS);
    CHECK_STATUS(ramway_rpc_server_deferred(server, 1, "again", silent, NULL), RAMWAY_ALREADY_EXISTS);
    CHECK_STATUS(ramway_rpc_server_method(server, RAMWAY_METHOD_RESERVED, NULL, silent, NULL), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_rpc_server_method(server, 2, "a\nb", silent, NULL), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_rpc_server_method(server, 2, "\xff", silent, NULL), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_rpc_server_run(server, 2 * MS), RAMWAY_TIMED_OUT);
    CHECK_STATUS(ramway_rpc_server_run(server, -2), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(ramway_rpc_server_wake(server));
    CHECK_STATUS(ramway_rpc_server_run(server, RAMWAY_FOREVER), RAMWAY_INTERRUPTED);
    CHECK_OK(ramway_rpc_server_poll(server));
    CHECK(ramway_rpc_server_clients(server) == 0 && access(ramway_rpc_server_path(server), F_OK) == 0);
    CHECK_OK(ramway_rpc_server_shutdown(server, RAMWAY_TRY));
    CHECK_OK(ramway_rpc_server_run(server, RAMWAY_FOREVER));
    CHECK_STATUS(ramway_rpc_server_poll(server), RAMWAY_CLOSED);
    CHECK_OK(ramway_rpc_server_close(server));
    CHECK(ramway_rpc_method_id("") == 0x811C9DC5u && ramway_rpc_method_id("Store.Get") == 0xBADEBBDCu);
    CHECK(ramway_rpc_method_id("\xff") == UINT32_MAX && ramway_last_status() == RAMWAY_INVALID_ARGUMENT);
    CHECK(strcmp(ramway_rpc_status_name(RAMWAY_RPC_OVERLOADED), "Overloaded") == 0);
}

int main(int argc, char **argv) {
    (void)argv;
    CHECK(pipe(from_child) == 0);
    if (argc > 1) {
        /* For a run that looks at threads only. */
        answers_from_other_threads();
        return 0;
    }
    options_that_nobody_could_use();
    calls(serves);
    calls(serves_by_poll);
    limits();
    bounded_bytes();
    streams();
    a_killed_server();
    a_server_that_shuts_down(serves);
    a_server_that_shuts_down(serves_by_poll);
    a_killed_client();
    plain_peers();
    threads_and_forks();
    answers_from_other_threads();
    return 0;
}
