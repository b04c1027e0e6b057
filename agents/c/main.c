/* C's agent: what is open, and which command it is. */
#define _GNU_SOURCE
#include "agent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Where a command that fails goes back to. */
static jmp_buf next_command;

void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

void end(ramway_status status, const char *format, ...) {
    va_list arguments;
    printf("end name=%s number=%d", status == RAMWAY_OK ? "Count" : ramway_status_name(status), (int)status);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    say("%s", "");
}

void must(ramway_status status) {
    if (status == RAMWAY_OK) return;
    say("error name=%s number=%d text=%s", ramway_status_name(status), (int)status, ramway_last_error());
    longjmp(next_command, 1);
}

void refuse(const char *what, const char *which) {
    say("refused text=%s: %s", what, which);
    exit(2);
}

int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

uint64_t longest(bool topic, uint64_t capacity) {
    uint64_t fits = topic ? capacity / 2 - 32 : capacity - 16, most = topic ? 2147483615u : 2147483631u;
    return fits < most ? fits : most;
}

static void open_bus(struct ends *ends, const char *listen, const char *connect, ramway_bus_options *options) {
    ramway_bus *bus = NULL;
    if (listen != NULL) {
        must(ramway_bus_listen(listen, options, OPEN_TIMEOUT_NS, &bus));
    } else {
        options->timeout_ns = OPEN_TIMEOUT_NS;
        must(ramway_bus_connect(connect, options, &bus));
    }
    must(ramway_bus_split(bus, &ends->sender, &ends->receiver));
}

/* Rings, or a bus. */
static void open_rings(struct ends *ends, struct line *line, bool consumer) {
    const char *ring = text(line, "ring", NULL), *back = text(line, "back", NULL);
    const char *listen = text(line, "listen", NULL), *connect = text(line, "connect", NULL);
    bool create = yes(line, "create");
    uint64_t capacity = (uint64_t)number(line, "capacity", 65536);
    uint32_t align = (uint32_t)number(line, "align", 16);
    bool prefault = yes(line, "prefault");
    ramway_options options = RAMWAY_OPTIONS_INIT;
    ramway_bus_options bus_options = RAMWAY_BUS_OPTIONS_INIT;
    options.wait_policy = bus_options.wait_policy = wait_policy(line);
    options.timeout_ns = OPEN_TIMEOUT_NS;
    if (prefault) options.flags |= RAMWAY_PREFAULT;
    if (create) {
        options.capacity = capacity;
        options.align = align;
    }
    if (listen != NULL) {
        bus_options.capacity = capacity;
        bus_options.align = align;
    }
    end_of(line);
    if (listen != NULL || connect != NULL) {
        open_bus(ends, listen, connect, &bus_options);
    } else {
        const char *to = consumer ? NULL : ring, *from = consumer ? ring : back;
        if (to != NULL) must((create ? ramway_sender_create : ramway_sender_open)(to, &options, &ends->sender));
        if (from != NULL) must((create ? ramway_receiver_create : ramway_receiver_open)(from, &options, &ends->receiver));
    }
}

static void open_ends(struct ends *ends, struct line *line) {
    const char *rpc = text(line, "rpc", NULL), *role = text(line, "role", "");
    if (rpc != NULL) {
        if (strcmp(role, "server") == 0) open_server(ends, line, rpc);
        else if (strcmp(role, "client") == 0) open_client(ends, line, rpc);
        else refuse("no role", role);
        return;
    }
    const char *topic = text(line, "topic", NULL);
    bool consumer = strcmp(role, "consumer") == 0;
    uint32_t epoch, peer_epoch;
    uint64_t capacity;
    ends->topic = topic != NULL;
    if (topic != NULL) open_topic(ends, line, topic, consumer);
    else open_rings(ends, line, consumer);
    if (consumer) {
        epoch = ramway_receiver_epoch(ends->receiver);
        peer_epoch = ramway_receiver_peer_epoch(ends->receiver);
        capacity = ramway_receiver_capacity(ends->receiver);
    } else {
        epoch = ramway_sender_epoch(ends->sender);
        peer_epoch = ramway_sender_peer_epoch(ends->sender);
        capacity = ramway_sender_capacity(ends->sender);
    }
    say("attached pid=%ld epoch=%u peer_epoch=%u capacity=%llu max=%llu", (long)getpid(), (unsigned)epoch,
        (unsigned)peer_epoch, (unsigned long long)capacity, (unsigned long long)longest(ends->topic, capacity));
}

static void close_ends(struct ends *ends, struct line *line) {
    end_of(line);
    /* What closing says on a bus whose peer is dead does not matter. */
    if (ends->sender != NULL) ramway_sender_close(ends->sender);
    if (ends->receiver != NULL) ramway_receiver_close(ends->receiver);
    bool well = !ends->serves || close_server();
    if (ends->calls) close_client();
    *ends = (struct ends){NULL, NULL, false, false, false};
    if (well) say("closed");
}

static void about(struct ends *ends, struct line *line) {
    (void)ends;
    end_of(line);
    say("about text=C");
}

int main(void) {
    enum { SENDS = 1, RECEIVES = 2 };
    static const struct {
        const char *name;
        command *run;
        int needs;
    } commands[] = {
        {"open", open_ends, 0},        {"close", close_ends, 0},     {"about", about, 0},     {"region", region, 0},
        {"produce", produce, SENDS},   {"last", last, SENDS},        {"tensor", tensor, SENDS}, {"write", write_one, SENDS},
        {"consume", consume, RECEIVES}, {"take", take, RECEIVES},    {"hold", hold, RECEIVES},
        {"echo", echo, SENDS | RECEIVES}, {"ping", ping, SENDS | RECEIVES}, {"measure", measure, 0},
    };
    static struct ends ends;
    static struct line line;
    /* A command that failed ends here. */
    setjmp(next_command);
    while (next_line(&line)) {
        size_t at = 0;
        while (at < sizeof commands / sizeof commands[0] && strcmp(line.word, commands[at].name) != 0) at++;
        /* With a server or a client of RPC nothing else is used. */
        if ((ends.serves || ends.calls) && strcmp(line.word, "close") != 0) {
            (ends.serves ? serve_command : call_command)(&line);
            continue;
        }
        if (at == sizeof commands / sizeof commands[0]) refuse("no command", line.word);
        if ((commands[at].needs & SENDS) != 0 && ends.sender == NULL) refuse("nothing to send to", line.word);
        if ((commands[at].needs & RECEIVES) != 0 && ends.receiver == NULL) refuse("nothing to receive from", line.word);
        commands[at].run(&ends, &line);
    }
    return 0;
}
