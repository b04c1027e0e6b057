/* C's program of the conformance kit. */
#define _GNU_SOURCE
#include "program.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

void fail(ramway_status status) {
    say("error name=%s number=%d text=%s", ramway_status_name(status), (int)status, ramway_last_error());
    exit(1);
}

void must(ramway_status status) {
    if (status != RAMWAY_OK) fail(status);
}

int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void sleep_us(int64_t us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

void linger(const struct args *args) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    if (args->linger_ms >= 0) poll(&input, 1, (int)args->linger_ms);
}

void kill_myself(void) {
    kill(getpid(), SIGKILL);
    abort();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(const struct args *);
    } commands[] = {{"produce", produce}, {"consume", consume}, {"echo", echo}, {"die", die}, {"read", read_back},
                    {"show", show},       {"flood", flood},     {"drain", drain},
                    {"tensors", tensors}};
    struct args args = parse(argc, argv);
    if (args.cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)args.cpu, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    if (strcmp(args.command, "ping") == 0) {
        (args.check ? ping : fast_ping)(&args);
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(args.command, commands[i].name) == 0) {
            commands[i].run(&args);
            return 0;
        }
    }
    fprintf(stderr, "no such command: %s\n", args.command);
    return 2;
}
