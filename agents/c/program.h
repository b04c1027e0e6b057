/* C's agent: ../README.md says what each command and flag means. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <ramway.h>
#include <ramway_inline.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- args.c ---- */

enum how { HOW_DEFAULT, HOW_SEND, HOW_RESERVE, HOW_TRY, HOW_RECV, HOW_BATCH, HOW_INTO };
enum { SIZES_MIXED = -1, SIZES_RAMP = -2 };

struct args {
    const char *command, *ring, *back, *listen, *connect, *region;
    bool create, resume, progress, oversize, check, pause, producer;
    uint32_t wait;
    enum how how;
    int64_t capacity, align, timeout_ms, cpu, sizes, size, batch, endings, linger_ms, pace_us, work_us, group;
    int64_t start, count, until, poll_us; /* -1: not given */
};

struct args parse(int argc, char **argv);

/* The longest single wait, as the library wants it. */
static inline int64_t limit(const struct args *args) {
    return args->timeout_ms == 0 ? RAMWAY_FOREVER : args->timeout_ms * 1000000;
}

/* The time-out of one call: with --poll that, else the longest single wait. */
static inline int64_t call_limit(const struct args *args) {
    return args->poll_us < 0 ? limit(args) : args->poll_us * 1000;
}

/* ---- message.c ---- */

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
struct messages messages_new(int64_t sizes, uint64_t max);
struct made make(const struct messages *all, uint64_t seq);
struct made make_of_length(const struct messages *all, uint64_t seq, size_t len);
/* Ends the program if what came is not message number `seq`. */
void check(const struct messages *all, uint64_t seq, const ramway_message *message);

/* ---- place.c ---- */

struct ends {
    ramway_sender *sender;
    ramway_receiver *receiver;
};

/* The ring or bus of the flags: on rings `to` names the one to send to and `from` the one to receive from, or NULL.
 * Ends the program with an `error` event if that does not work. */
struct ends open_ends(const struct args *args, const char *to, const char *from);
void attached_sender(const ramway_sender *sender);
void attached_receiver(const ramway_receiver *receiver);
void close_ends(struct ends *ends);
uint64_t longest(uint64_t capacity);

/* ---- main.c ---- */

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fail(ramway_status status) __attribute__((noreturn));
/* Prints `error` unless `status` is success. */
void must(ramway_status status);
void linger(const struct args *args);
int64_t now_ns(void);
void sleep_us(int64_t us);
void kill_myself(void) __attribute__((noreturn));

/* ---- the commands ---- */

void produce(const struct args *args);
void consume(const struct args *args);
void die(const struct args *args);
void echo(const struct args *args);
void ping(const struct args *args);
void read_back(const struct args *args);
void show(const struct args *args);
void tensors(const struct args *args);
void flood(const struct args *args);
void drain(const struct args *args);
void fast_ping(const struct args *args);

/* Times of groups of round trips, all but the first tenth. */
struct timer {
    int64_t count, group, last, samples;
    double *ns;
};

struct timer timer_start(int64_t count, int64_t group);
void timer_trip(struct timer *timer, int64_t seq);
void timer_report(struct timer *timer);

#endif
