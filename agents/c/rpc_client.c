/* A client of RPC and its commands. */
#include "agent.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A row of calls: what they ask, and what they must bring. */
struct calls {
    uint32_t method;
    struct messages all;
    uint8_t *meta; /* bytes 0, 1, ..., 255, 0, ... */
    size_t meta_len;
    int64_t deadline_us; /* -1: none */
    uint8_t *body; /* of a request that is no message's payload */
};

/* One call. */
struct request {
    uint64_t seq;
    const uint8_t *body;
    size_t len;
};

/* How many calls had which outcome. */
struct tally {
    struct outcome {
        const char *name;
        uint64_t count;
    } outcomes[40];
    size_t names;
    uint64_t cancelled, may_have_run, bytes;
    int64_t began;
};

/* A call that is kept. */
struct kept {
    struct calls *calls;
    uint64_t seq, number;
};

/* A stream that is kept. */
struct reading {
    uint64_t seq, number, received;
    uint32_t size, count, code;
    bool ended;
};

static ramway_rpc_client *client;
static struct kept *kept;
static size_t keeps, kept_from, kept_room;
static struct reading *streams;
static size_t stream_count;

static void *room_for(void *all, size_t bytes) {
    void *larger = realloc(all, bytes);
    if (larger == NULL) abort();
    return larger;
}

static uint8_t *pattern_of(size_t len) {
    uint8_t *pattern = room_for(NULL, len + 256);
    for (size_t i = 0; i < len + 256; i++) pattern[i] = (uint8_t)i;
    return pattern;
}

static void wrong(uint64_t seq, const char *what, uint64_t found, uint64_t expected) {
    say("bad seq=%llu text=%s is %llu instead of %llu", (unsigned long long)seq, what, (unsigned long long)found,
        (unsigned long long)expected);
    exit(1);
}

static void same(uint64_t seq, const char *what, const void *found, size_t len, const void *expected, size_t expected_len) {
    if (len != expected_len) wrong(seq, what, len, expected_len);
    for (size_t i = 0; i < len; i++) {
        uint8_t a = ((const uint8_t *)found)[i], b = ((const uint8_t *)expected)[i];
        if (a != b) wrong(seq, what, a, b);
    }
}

static void fault_is(uint64_t seq, const ramway_rpc_reply *reply, uint32_t code, const char *text) {
    if (reply->code != code) wrong(seq, "the error's number", reply->code, code);
    if (strcmp(reply->text, text) != 0) {
        say("bad seq=%llu text=the error's text is '%s' instead of '%s'", (unsigned long long)seq, reply->text, text);
        exit(1);
    }
}

static void add(struct tally *tally, const char *name) {
    size_t at = 0;
    while (at < tally->names && strcmp(tally->outcomes[at].name, name) != 0) at++;
    if (at == tally->names) tally->outcomes[tally->names++] = (struct outcome){name, 0};
    tally->outcomes[at].count++;
}

static void add_failed(struct tally *tally, const ramway_rpc_reply *reply) {
    bool said = reply->status != RAMWAY_RPC_NO_STATUS;
    add(tally, said ? ramway_rpc_status_name(reply->status) : ramway_status_name((int)reply->error));
    tally->may_have_run += reply->may_have_run;
}

/* `called` and `streamed`. */
static void say_tally(const struct tally *tally, const char *word, const char *key, uint64_t count) {
    printf("%s %s=%llu", word, key, (unsigned long long)count);
    for (size_t i = 0; i < tally->names; i++) {
        printf(" %s=%llu", tally->outcomes[i].name, (unsigned long long)tally->outcomes[i].count);
    }
    if (tally->cancelled > 0) printf(" cancelled=%llu", (unsigned long long)tally->cancelled);
    say(" may_have_run=%llu bytes=%llu elapsed_ms=%lld", (unsigned long long)tally->may_have_run,
        (unsigned long long)tally->bytes, (long long)((now_ns() - tally->began) / 1000000));
}

static struct calls *calls_of(struct line *line) {
    struct calls *calls = calloc(1, sizeof *calls);
    const char *method = text(line, "method", NULL);
    char *rest;
    if (calls == NULL) abort();
    if (method == NULL) refuse(line->word, "method is missing");
    calls->method = strcmp(method, "sum") == 0 ? ramway_rpc_method_id(SUM) : (uint32_t)strtoul(method, &rest, 10);
    calls->all = messages_new(line, (uint64_t)number(line, "longest", 4096));
    calls->meta_len = (size_t)number(line, "meta", 0);
    calls->meta = pattern_of(calls->meta_len);
    calls->deadline_us = number(line, "deadline", -1);
    calls->body = room_for(NULL, 64);
    return calls;
}

/* Valid until the next one. */
static struct request request_of(struct calls *calls, uint64_t seq) {
    struct made m = make(&calls->all, seq);
    struct request request = {seq, calls->body, 0};
    uint32_t words[2] = {(uint32_t)seq, (uint32_t)m.len};
    switch (calls->method) {
    case 2:
        memcpy(calls->body, words, request.len = sizeof words);
        break;
    case 3:
        words[0] = (uint32_t)seq + 1;
        memcpy(calls->body, words, 4);
        request.len = 4 + (size_t)sprintf((char *)calls->body + 4, "call %llu", (unsigned long long)seq);
        break;
    case 6:
    case 7:
        break;
    default:
        request.body = m.data;
        request.len = m.len;
    }
    return request;
}

static ramway_rpc_call_options options_of(const struct calls *calls, uint64_t seq) {
    ramway_rpc_call_options options = RAMWAY_RPC_CALL_OPTIONS_INIT;
    if (calls->deadline_us >= 0) options.timeout_ns = calls->deadline_us * 1000;
    options.meta = calls->meta + (seq + 1) % 256;
    options.meta_len = calls->meta_len;
    return options;
}

static void check_seven(const struct calls *calls, uint64_t seq, const ramway_rpc_reply *reply) {
    uint32_t words[2];
    uint64_t most = calls->deadline_us < 0 ? 0 : ((uint64_t)calls->deadline_us + 999) / 1000;
    if (reply->len != sizeof words) wrong(seq, "the reply's length", reply->len, sizeof words);
    memcpy(words, reply->body, sizeof words);
    if (words[0] != (uint32_t)getpid()) wrong(seq, "the process", words[0], (uint64_t)getpid());
    if (words[1] > most || (words[1] == 0) != (most == 0)) wrong(seq, "the time left", words[1], most);
}

/* Counts what came of a call, if it is as it must be. */
static void count(struct calls *calls, struct tally *tally, uint64_t seq, ramway_rpc_reply *reply) {
    char expected[40];
    if (reply->status != RAMWAY_RPC_OK) {
        if (reply->status == RAMWAY_RPC_APPLICATION && calls->method == 3) {
            snprintf(expected, sizeof expected, "call %llu", (unsigned long long)seq);
            fault_is(seq, reply, (uint32_t)seq + 1, expected);
        }
        add_failed(tally, reply);
        ramway_rpc_reply_free(reply);
        return;
    }
    struct made m = make(&calls->all, seq);
    uint32_t sum = crc32(m.data, m.len);
    bool echoes = calls->method == 1 || calls->method == 5;
    if (calls->method == 7) check_seven(calls, seq, reply);
    else if (calls->method == ramway_rpc_method_id(SUM)) same(seq, "the reply", reply->body, reply->len, &sum, sizeof sum);
    else if (calls->method <= 2 || echoes) same(seq, "the reply", reply->body, reply->len, m.data, m.len);
    else wrong(seq, "a method that cannot reply", calls->method, 0);
    same(seq, "the metadata", reply->meta, reply->meta_len, calls->meta + (seq + 1) % 256, echoes ? calls->meta_len : 0);
    tally->bytes += reply->len;
    add(tally, "Ok");
    ramway_rpc_reply_free(reply);
}

static ramway_status start_one(struct calls *calls, uint64_t seq, uint64_t *call_number) {
    struct request request = request_of(calls, seq);
    ramway_rpc_call_options options = options_of(calls, seq);
    return ramway_rpc_start(client, calls->method, request.body, request.len, &options, NULL, NULL, call_number);
}

static void keep(struct calls *calls, uint64_t seq, uint64_t call_number) {
    if (keeps == kept_room) kept = room_for(kept, (kept_room = 2 * kept_room + 64) * sizeof *kept);
    kept[keeps++] = (struct kept){calls, seq, call_number};
}

static void end_oldest(struct tally *tally, const struct kept *oldest, bool cancel) {
    ramway_rpc_reply reply;
    if (cancel && oldest->seq % 2 == 1) {
        tally->cancelled++;
        ramway_rpc_cancel(client, oldest->number);
        return;
    }
    ramway_rpc_wait(client, oldest->number, RAMWAY_FOREVER, &reply);
    count(oldest->calls, tally, oldest->seq, &reply);
}

static void call(struct line *line) {
    struct calls *calls = calls_of(line);
    uint64_t many = (uint64_t)number(line, "count", 1), first = (uint64_t)number(line, "start", 0);
    size_t in_flight = (size_t)number(line, "in_flight", 1), oldest = 0, started = 0;
    bool cancel = yes(line, "cancel");
    struct tally tally = {.began = now_ns()};
    ramway_rpc_reply reply;
    end_of(line);
    struct kept *row = room_for(NULL, (size_t)many * sizeof *row + 1);
    for (uint64_t seq = first; seq < first + many; seq++) {
        if (in_flight == 1 && !cancel) {
            struct request request = request_of(calls, seq);
            ramway_rpc_call_options options = options_of(calls, seq);
            ramway_rpc_call(client, calls->method, request.body, request.len, &options, &reply);
            count(calls, &tally, seq, &reply);
            continue;
        }
        if (started - oldest >= in_flight) end_oldest(&tally, &row[oldest++], cancel);
        row[started] = (struct kept){calls, seq, 0};
        ramway_status status = start_one(calls, seq, &row[started].number);
        if (status == RAMWAY_OK) started++;
        else add(&tally, ramway_status_name((int)status));
    }
    while (oldest < started) end_oldest(&tally, &row[oldest++], cancel);
    free(row);
    say_tally(&tally, "called", "count", many);
}

static void start(struct line *line) {
    struct calls *calls = calls_of(line);
    uint64_t many = (uint64_t)number(line, "count", 1), first = (uint64_t)number(line, "start", 0), call_number = 0;
    end_of(line);
    for (uint64_t seq = first; seq < first + many; seq++) {
        must(start_one(calls, seq, &call_number));
        keep(calls, seq, call_number);
    }
    say("started count=%llu", (unsigned long long)many);
}

static void collect(struct line *line) {
    int64_t limit = number(line, "timeout", 20000) * 1000000;
    struct tally tally = {.began = now_ns()};
    uint64_t collected = 0;
    end_of(line);
    for (; kept_from < keeps; kept_from++) {
        ramway_rpc_reply reply;
        if (ramway_rpc_wait(client, kept[kept_from].number, limit, &reply) == RAMWAY_EMPTY) {
            end(RAMWAY_TIMED_OUT, "%s", "");
            return;
        }
        count(kept[kept_from].calls, &tally, kept[kept_from].seq, &reply);
        collected++;
    }
    keeps = kept_from = 0;
    say_tally(&tally, "called", "count", collected);
}

static void stream(struct line *line) {
    ramway_rpc_call_options options = RAMWAY_RPC_CALL_OPTIONS_INIT;
    uint32_t many = (uint32_t)number(line, "count", 0), size = (uint32_t)number(line, "size", 0);
    uint32_t code = (uint32_t)number(line, "code", 0), rows = (uint32_t)number(line, "streams", 1);
    uint64_t first = (uint64_t)number(line, "start", 0);
    options.window = (uint32_t)number(line, "window", 0);
    options.timeout_ns = number(line, "deadline", 0) * 1000;
    end_of(line);
    for (uint64_t seq = first; seq < first + rows; seq++) {
        uint32_t words[4] = {many, size, code, (uint32_t)seq};
        struct reading reading = {.seq = seq, .size = size, .count = many, .code = code};
        must(ramway_rpc_start_stream(client, 4, words, sizeof words, &options, NULL, NULL, &reading.number));
        streams = room_for(streams, (stream_count + 1) * sizeof *streams);
        streams[stream_count++] = reading;
    }
    say("started count=%u", (unsigned)rows);
}

/* Receives one element, and says how many that were: none where the stream has ended. -1: nothing came in time. */
static int next_of(struct reading *r, int64_t limit, struct tally *tally) {
    ramway_rpc_reply reply;
    char expected[40];
    if (ramway_rpc_wait(client, r->number, limit, &reply) == RAMWAY_EMPTY) return -1;
    if (reply.more) {
        uint8_t *pattern = pattern_of(r->size);
        same(r->seq, "the element", reply.body, reply.len, pattern + (r->seq + r->received) % 256, r->size);
        free(pattern);
        r->received++;
        tally->bytes += reply.len;
        ramway_rpc_reply_free(&reply);
        return 1;
    }
    r->ended = true;
    if (reply.status == RAMWAY_RPC_OK || reply.status == RAMWAY_RPC_APPLICATION) {
        if (r->received != r->count) wrong(r->seq, "the number of elements", r->received, r->count);
        snprintf(expected, sizeof expected, "after %u", (unsigned)r->count);
        if (reply.status == RAMWAY_RPC_APPLICATION) fault_is(r->seq, &reply, r->code, expected);
        else if (r->code != 0) wrong(r->seq, "a stream that is to fail: its status", 0, RAMWAY_RPC_APPLICATION);
    }
    if (reply.status == RAMWAY_RPC_OK) add(tally, "Ok");
    else add_failed(tally, &reply);
    ramway_rpc_reply_free(&reply);
    return 0;
}

static void next(struct line *line) {
    int64_t limit = number(line, "timeout", 20000) * 1000000, rounds = number(line, "count", -1);
    struct tally tally = {.began = now_ns()};
    uint64_t received = 0;
    end_of(line);
    for (; stream_count > 0 && rounds != 0; rounds -= rounds > 0) {
        size_t left = 0;
        for (size_t i = 0; i < stream_count; i++) {
            int elements = next_of(&streams[i], limit, &tally);
            if (elements < 0) {
                /* Those that have ended in this round go with the others. */
                for (; i < stream_count; i++) streams[left++] = streams[i];
                stream_count = left;
                end(RAMWAY_TIMED_OUT, "%s", "");
                return;
            }
            received += (uint64_t)elements;
            if (!streams[i].ended) streams[left++] = streams[i];
        }
        stream_count = left;
    }
    say_tally(&tally, "streamed", "received", received);
}

static void cancel_all(struct line *line) {
    size_t many = stream_count + keeps - kept_from;
    end_of(line);
    for (size_t i = 0; i < stream_count; i++) ramway_rpc_cancel(client, streams[i].number);
    for (; kept_from < keeps; kept_from++) ramway_rpc_cancel(client, kept[kept_from].number);
    stream_count = keeps = kept_from = 0;
    say("cancelled count=%zu", many);
}

static void health(struct line *line) {
    end_of(line);
    ramway_status status = ramway_rpc_ping(client, NULL);
    if (status == RAMWAY_OK) say("healthy");
    else end(status, "%s", "");
}

static void say_method(uint32_t method, const char *name, void *comma) {
    printf("%s%u", (const char *)comma, (unsigned)method);
    if (name != NULL) printf(" %s", name);
    strcpy(comma, ",");
}

static void describe(struct line *line) {
    char comma[2] = "";
    end_of(line);
    printf("described text=");
    ramway_status status = ramway_rpc_describe(client, NULL, say_method, comma);
    say("%s", "");
    must(status);
}

void open_client(struct ends *ends, struct line *line, const char *name) {
    ramway_rpc_client_options options = RAMWAY_RPC_CLIENT_OPTIONS_INIT;
    options.wait_policy = wait_policy(line);
    options.max_buffered = (uint64_t)number(line, "max_buffered", 0);
    options.timeout_ns = number(line, "timeout", OPEN_TIMEOUT_S * 1000) * 1000000;
    end_of(line);
    must(ramway_rpc_connect(name, &options, &client));
    stream_count = keeps = kept_from = 0;
    ends->calls = true;
    say("attached pid=%ld peer_pid=%u max_in_flight=%u", (long)getpid(), (unsigned)ramway_rpc_peer_pid(client),
        (unsigned)ramway_rpc_max_in_flight(client));
}

void call_command(struct line *line) {
    static const struct {
        const char *name;
        void (*run)(struct line *line);
    } commands[] = {{"call", call}, {"start", start},         {"collect", collect}, {"stream", stream},
                    {"next", next}, {"cancel", cancel_all},   {"health", health},   {"describe", describe}};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].name, line->word) != 0) continue;
        commands[i].run(line);
        return;
    }
    if (strcmp(line->word, "state") != 0) refuse("no command of a client", line->word);
    end_of(line);
    say("state in_flight=%zu", ramway_rpc_in_flight(client));
}

void close_client(void) {
    /* What closing says of a server that is dead does not matter. */
    ramway_rpc_close(client);
}
