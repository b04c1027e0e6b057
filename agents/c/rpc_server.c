/* A server of RPC with the agents' methods, in a thread of its own, and its commands. */
#define _GNU_SOURCE
#include "agent.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    ramway_rpc_server *handle;
    pthread_t thread;
    bool runs; /* the thread is not joined */
    ramway_status ended;
    char text[500]; /* what it failed with */
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t answered;
    bool over; /* the thread serves no more */
    unsigned asks, answers; /* how often the number of clients was asked for */
    size_t clients;
    bool open; /* the gate */
    struct held *held;
} server = {.mutex = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER};

/* What the handlers have seen. */
static atomic_ullong began, ended, cancelled, elements;

static uint32_t word(const void *body, size_t at) {
    uint32_t value;
    memcpy(&value, (const char *)body + 4 * at, 4);
    return value;
}

/* The request's words, `count` of them; null, and it is answered, if there are not that many. */
static const void *asked(ramway_rpc_request *request, size_t count, size_t *len) {
    const void *body = ramway_rpc_request_body(request, len);
    if (*len >= 4 * count) return body;
    ramway_rpc_request_fail(request, 0, "the request is no request of this method");
    return NULL;
}

static void echo_of(ramway_rpc_request *request) {
    size_t len, meta_len;
    const void *body = ramway_rpc_request_body(request, &len), *meta = ramway_rpc_request_meta(request, &meta_len);
    ramway_rpc_request_set_reply_meta(request, meta, meta_len);
    ramway_rpc_request_reply(request, body, len);
}

static void method_1(ramway_rpc_request *request, void *user) {
    (void)user;
    began++;
    echo_of(request);
    ended++;
}

static size_t count_up(void *to, size_t len, void *first) {
    for (size_t i = 0; i < len; i++) ((uint8_t *)to)[i] = (uint8_t)(*(uint32_t *)first + i);
    return len;
}

static void method_2(ramway_rpc_request *request, void *user) {
    size_t len;
    (void)user;
    began++;
    const void *body = asked(request, 2, &len);
    if (body != NULL) {
        uint32_t seq = word(body, 0);
        ramway_rpc_request_reply_with(request, word(body, 1), count_up, &seq);
    }
    ended++;
}

static void method_3(ramway_rpc_request *request, void *user) {
    size_t len;
    (void)user;
    began++;
    const void *body = asked(request, 1, &len);
    if (body != NULL) {
        char *text = strndup((const char *)body + 4, len - 4);
        ramway_rpc_request_fail(request, word(body, 0), text);
        free(text);
    }
    ended++;
}

/* A call of method 4, which goes on by the server's thread alone. */
struct stream {
    ramway_rpc_request *request;
    uint32_t count, size, code, seq, sent;
    uint8_t *pattern;
    bool is_over;
};

static void drop_stream(void *user) {
    struct stream *stream = user;
    free(stream->pattern);
    free(stream);
}

static void go_on(void *user) {
    struct stream *s = user;
    if (s->is_over) return;
    ramway_status status = RAMWAY_OK;
    while (s->sent < s->count && status == RAMWAY_OK) {
        status = ramway_rpc_request_send(s->request, s->pattern + (s->seq + s->sent) % 256, s->size, RAMWAY_TRY);
        if (status != RAMWAY_OK) break;
        s->sent++;
        elements++;
    }
    if (status == RAMWAY_FULL) return;
    s->is_over = true;
    ended++;
    if (status != RAMWAY_OK) cancelled++;
    if (status != RAMWAY_OK || s->code == 0) {
        ramway_rpc_request_finish(s->request);
        return;
    }
    char text[40];
    snprintf(text, sizeof text, "after %u", (unsigned)s->count);
    ramway_rpc_request_fail(s->request, s->code, text);
}

static void method_4(ramway_rpc_request *request, void *user) {
    size_t len;
    (void)user;
    began++;
    const void *body = asked(request, 4, &len);
    struct stream *s = calloc(1, sizeof *s);
    if (body == NULL || s == NULL) {
        free(s);
        ended++;
        return;
    }
    *s = (struct stream){request, word(body, 0), word(body, 1), word(body, 2), word(body, 3), 0, NULL, false};
    s->pattern = malloc((size_t)s->size + 256);
    if (s->pattern == NULL) abort();
    for (size_t i = 0; i < (size_t)s->size + 256; i++) s->pattern[i] = (uint8_t)i;
    ramway_rpc_request_on_change(request, go_on, drop_stream, s);
    go_on(s);
}

/* A call of method 5 that waits for the gate, or is cancelled. */
struct held {
    ramway_rpc_request *request;
    bool answered;
    struct held *next, **here;
};

/* With the mutex. */
static void leave(struct held *held) {
    held->answered = true;
    *held->here = held->next;
    if (held->next != NULL) held->next->here = held->here;
}

static void held_changed(void *user) {
    struct held *held = user;
    pthread_mutex_lock(&server.mutex);
    if (!held->answered && ramway_rpc_request_is_cancelled(held->request)) {
        leave(held);
        cancelled++;
        ended++;
        ramway_rpc_request_finish(held->request);
    }
    pthread_mutex_unlock(&server.mutex);
}

static void method_5(ramway_rpc_request *request, void *user) {
    (void)user;
    began++;
    pthread_mutex_lock(&server.mutex);
    if (server.open) {
        pthread_mutex_unlock(&server.mutex);
        ended++;
        echo_of(request);
        return;
    }
    struct held *held = malloc(sizeof *held);
    if (held == NULL) abort();
    *held = (struct held){request, false, server.held, &server.held};
    if (server.held != NULL) server.held->here = &held->next;
    server.held = held;
    ramway_rpc_request_on_change(request, held_changed, free, held);
    pthread_mutex_unlock(&server.mutex);
}

static void method_6(ramway_rpc_request *request, void *user) {
    (void)user;
    began++;
    ramway_rpc_request_fail_unexpectedly(request, "method 6");
    ended++;
}

static void method_7(ramway_rpc_request *request, void *user) {
    ramway_peer peer = {0, 0, 0};
    int64_t left = ramway_rpc_request_remaining_ns(request);
    (void)user;
    began++;
    ramway_rpc_request_peer(request, &peer);
    uint32_t words[2] = {peer.pid, left < 0 ? 0 : (uint32_t)((left + 999999) / 1000000)};
    ramway_rpc_request_reply(request, words, sizeof words);
    ended++;
}

static void method_sum(ramway_rpc_request *request, void *user) {
    size_t len;
    (void)user;
    began++;
    const void *body = ramway_rpc_request_body(request, &len);
    uint32_t sum = crc32(body, len);
    ramway_rpc_request_reply(request, &sum, sizeof sum);
    ended++;
}

static void *serve(void *user) {
    ramway_status status;
    (void)user;
    while ((status = ramway_rpc_server_run(server.handle, RAMWAY_FOREVER)) == RAMWAY_INTERRUPTED) {
        size_t clients = ramway_rpc_server_clients(server.handle);
        pthread_mutex_lock(&server.mutex);
        server.clients = clients;
        server.answers = server.asks;
        pthread_cond_broadcast(&server.answered);
        pthread_mutex_unlock(&server.mutex);
    }
    server.ended = status;
    snprintf(server.text, sizeof server.text, "%s", status == RAMWAY_OK ? "" : ramway_last_error());
    pthread_mutex_lock(&server.mutex);
    server.over = true;
    pthread_cond_broadcast(&server.answered);
    pthread_mutex_unlock(&server.mutex);
    return NULL;
}

void open_server(struct ends *ends, struct line *line, const char *name) {
    static const struct {
        uint32_t number;
        void (*handler)(ramway_rpc_request *request, void *user);
        bool deferred;
    } methods[] = {{1, method_1, false}, {2, method_2, false}, {3, method_3, false}, {4, method_4, true},
                   {5, method_5, true},  {6, method_6, false}, {7, method_7, false}};
    ramway_rpc_server_options options = RAMWAY_RPC_SERVER_OPTIONS_INIT;
    options.capacity = (uint64_t)number(line, "capacity", 65536);
    options.align = (uint32_t)number(line, "align", 16);
    options.wait_policy = wait_policy(line);
    options.max_clients = (uint32_t)number(line, "max_clients", 0);
    options.max_in_flight = (uint32_t)number(line, "max_in_flight", 0);
    options.max_bytes = (uint64_t)number(line, "max_bytes", 0);
    end_of(line);
    must(ramway_rpc_server_bind(name, &options, &server.handle));
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        must((methods[i].deferred ? ramway_rpc_server_deferred : ramway_rpc_server_method)(
            server.handle, methods[i].number, NULL, methods[i].handler, NULL));
    }
    must(ramway_rpc_server_method(server.handle, ramway_rpc_method_id(SUM), SUM, method_sum, NULL));
    began = ended = cancelled = elements = 0;
    server.over = server.open = false;
    if (pthread_create(&server.thread, NULL, serve, NULL) != 0) abort();
    server.runs = true;
    ends->serves = true;
    say("attached pid=%ld capacity=%llu", (long)getpid(), (unsigned long long)options.capacity);
}

/* The server's thread is asked: only it uses the server. */
static size_t count_clients(void) {
    pthread_mutex_lock(&server.mutex);
    unsigned mine = ++server.asks;
    ramway_rpc_server_wake(server.handle);
    while (!server.over && server.answers != mine) pthread_cond_wait(&server.answered, &server.mutex);
    size_t clients = server.over ? 0 : server.clients;
    pthread_mutex_unlock(&server.mutex);
    return clients;
}

static void served(struct line *line) {
    end_of(line);
    size_t clients = count_clients();
    /* First those that have ended: so no more have ended than have begun. */
    unsigned long long over = ended, all = began;
    say("served began=%llu running=%llu cancelled=%llu elements=%llu clients=%zu", all, all - over,
        (unsigned long long)cancelled, (unsigned long long)elements, clients);
}

static void open_gate(struct line *line) {
    end_of(line);
    pthread_mutex_lock(&server.mutex);
    server.open = true;
    while (server.held != NULL) {
        struct held *first = server.held;
        ramway_rpc_request *request = first->request;
        leave(first);
        ended++;
        echo_of(request);
    }
    pthread_mutex_unlock(&server.mutex);
    say("opened");
}

/* False: it failed, and that was said. */
static bool join(void) {
    if (!server.runs) return true;
    server.runs = false;
    pthread_join(server.thread, NULL);
    if (server.ended == RAMWAY_OK) return true;
    say("error name=%s number=%d text=%s", ramway_status_name(server.ended), (int)server.ended, server.text);
    return false;
}

void serve_command(struct line *line) {
    if (strcmp(line->word, "served") == 0) {
        served(line);
    } else if (strcmp(line->word, "gate") == 0) {
        open_gate(line);
    } else if (strcmp(line->word, "shutdown") == 0) {
        int64_t limit = number(line, "limit", 0);
        end_of(line);
        must(ramway_rpc_server_shutdown(server.handle, limit * 1000000));
        say("draining");
    } else if (strcmp(line->word, "join") == 0) {
        end_of(line);
        if (join()) say("ended");
    } else {
        refuse("no command of a server", line->word);
    }
}

/* What is held when a server goes was cancelled, and so is answered, but for what its last round did not see. */
bool close_server(void) {
    ramway_rpc_server_shutdown(server.handle, RAMWAY_TRY);
    bool well = join();
    ramway_rpc_server_close(server.handle);
    pthread_mutex_lock(&server.mutex);
    while (server.held != NULL) {
        ramway_rpc_request *request = server.held->request;
        leave(server.held);
        ramway_rpc_request_finish(request);
    }
    pthread_mutex_unlock(&server.mutex);
    return well;
}
