/* C's agent: ../README.md has the protocol. */
#ifndef AGENT_H
#define AGENT_H

#include <ramway.h>
#include <ramway_inline.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- line.c ---- */

/* A command, `word key=value key=value ...`. What a command does not ask for is refused. */
struct line {
    char *word;
    size_t fields;
    struct field {
        char *key, *value;
        bool asked;
    } field[32];
};

/* The next line of standard input; false when that ends. Overwrites the one before. */
bool next_line(struct line *line);
const char *text(struct line *line, const char *key, const char *otherwise);
int64_t number(struct line *line, const char *key, int64_t otherwise);
bool yes(struct line *line, const char *key);
uint32_t wait_policy(struct line *line);
/* Nothing else was said. */
void end_of(const struct line *line);

/* How long a wait may last, in nanoseconds as the library wants it: all of it, and one call. */
struct limits {
    int64_t whole, call;
    bool polls;
};

struct limits limits_of(struct line *line);
/* With `poll`, whether a call that found nothing is made again. A time-out of 0 says Full and Empty, and at the end of the
 * wait it is TimedOut whatever the last call said. */
bool poll_again(const struct limits *limits, ramway_status *status, int64_t began);

/* ---- message.c ---- */

enum { SIZES_MIXED = -1, SIZES_RAMP = -2 };

/* Every message of a ring whose longest has `max` bytes. */
struct messages {
    int64_t sizes;
    uint64_t max;
    uint8_t *pattern; /* bytes 0, 1, ..., 255, 0, ...: every payload is a piece of it */
};

struct made {
    uint32_t type_id;
    uint64_t tag;
    const uint8_t *data;
    size_t len;
};

uint32_t crc32(const uint8_t *bytes, size_t len);
struct messages messages_new(struct line *line, uint64_t max);
struct made make(const struct messages *all, uint64_t seq);
/* Ends the agent if what came is not message number `seq`. */
void check(const struct messages *all, uint64_t seq, const ramway_message *message);
/* Ends the agent with `bad`. */
void bad(uint64_t seq, const char *wrong, const ramway_message *message) __attribute__((noreturn));

/* ---- main.c ---- */

struct ends {
    ramway_sender *sender;
    ramway_receiver *receiver;
    bool topic; /* they are its publisher, or a subscriber of it */
    bool serves, calls; /* a server or a client of RPC is open */
};

enum { OPEN_TIMEOUT_S = 10 }; /* how long to wait for a name, a role or the other side */
#define OPEN_TIMEOUT_NS (OPEN_TIMEOUT_S * 1000000000LL)

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void end(ramway_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says `error` and ends the command unless `status` is success. */
void must(ramway_status status);
void refuse(const char *what, const char *which) __attribute__((noreturn));
int64_t now_ns(void);
/* Of the messages of a ring, or of a topic, with this capacity. */
uint64_t longest(bool topic, uint64_t capacity);
/* `open topic=`: one side, without `attached`. */
void open_topic(struct ends *ends, struct line *line, const char *name, bool consumer);

/* ---- rpc_server.c, rpc_client.c ---- */

#define SUM "Agent.Sum" /* the method that is registered by name */

void open_server(struct ends *ends, struct line *line, const char *name);
void serve_command(struct line *line);
/* False: it had failed, and that was said. */
bool close_server(void);
void open_client(struct ends *ends, struct line *line, const char *name);
void call_command(struct line *line);
void close_client(void);

/* ---- the commands ---- */

typedef void command(struct ends *ends, struct line *line);
command produce, consume, echo, ping, last, take, region, write_one, hold, tensor, measure;
/* Of a message that was taken: false where it is no tensor. */
bool say_tensor(const ramway_message *message);

#endif
