/* The flags, the same for every command. */
#define _GNU_SOURCE
#include "program.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static void usage(const char *what, const char *value) __attribute__((noreturn));
static void usage(const char *what, const char *value) {
    fprintf(stderr, "%s: %s\n", what, value);
    exit(2);
}

static int64_t number(const char *flag, const char *text) {
    char *end;
    long long value = strtoll(text, &end, 10);
    if (*text == 0 || *end != 0 || value < 0) usage(flag, text);
    return value;
}

/* Which of the blank-separated `words` it is. */
static int one_of(const char *flag, const char *text, const char *const *words) {
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) return i;
    }
    usage(flag, text);
}

struct args parse(int argc, char **argv) {
    static const char *const yes[] = {"no", "yes", NULL};
    static const char *const hows[] = {"", "send", "reserve", "try", "recv", "batch", "into", NULL};
    static const char *const waits[] = {"", "spin", "hybrid", "block", NULL};
    static const char *const roles[] = {"consumer", "producer", NULL};
    struct args a = {.wait = RAMWAY_WAIT_HYBRID, .check = true, .capacity = 65536, .align = 16, .timeout_ms = 20000,
                     .cpu = -1, .sizes = SIZES_MIXED, .endings = 1, .linger_ms = -1, .group = 1, .start = -1,
                     .count = -1, .until = -1, .poll_us = -1};
    const struct {
        const char *name;
        const char **text;
        bool *flag;
        int64_t *number;
    } flags[] = {
        {"ring", &a.ring, NULL, NULL},          {"back", &a.back, NULL, NULL},
        {"listen", &a.listen, NULL, NULL},      {"connect", &a.connect, NULL, NULL},
        {"region", &a.region, NULL, NULL},      {"create", NULL, &a.create, NULL},
        {"resume", NULL, &a.resume, NULL},      {"progress", NULL, &a.progress, NULL},
        {"oversize", NULL, &a.oversize, NULL},  {"check", NULL, &a.check, NULL},
        {"pause", NULL, &a.pause, NULL},        {"capacity", NULL, NULL, &a.capacity},
        {"align", NULL, NULL, &a.align},        {"timeout", NULL, NULL, &a.timeout_ms},
        {"cpu", NULL, NULL, &a.cpu},            {"size", NULL, NULL, &a.size},
        {"batch", NULL, NULL, &a.batch},        {"endings", NULL, NULL, &a.endings},
        {"linger", NULL, NULL, &a.linger_ms},   {"pace", NULL, NULL, &a.pace_us},
        {"work", NULL, NULL, &a.work_us},       {"group", NULL, NULL, &a.group},
        {"start", NULL, NULL, &a.start},        {"count", NULL, NULL, &a.count},
        {"until", NULL, NULL, &a.until},        {"poll", NULL, NULL, &a.poll_us},
        {"wait", NULL, NULL, NULL},             {"how", NULL, NULL, NULL},
        {"role", NULL, NULL, NULL},             {"sizes", NULL, NULL, NULL},
    };
    enum { COUNT = sizeof flags / sizeof flags[0] };
    struct option options[COUNT + 1];
    memset(options, 0, sizeof options);
    for (int i = 0; i < COUNT; i++) {
        options[i] = (struct option){.name = flags[i].name, .has_arg = required_argument};
    }
    for (int at; getopt_long(argc, argv, "", options, &at) == 0;) {
        const char *name = flags[at].name;
        if (flags[at].text != NULL) *flags[at].text = optarg;
        else if (flags[at].flag != NULL) *flags[at].flag = one_of(name, optarg, yes);
        else if (flags[at].number != NULL) *flags[at].number = number(name, optarg);
        else if (strcmp(name, "wait") == 0) a.wait = (uint32_t)one_of(name, optarg, waits);
        else if (strcmp(name, "how") == 0) a.how = (enum how)one_of(name, optarg, hows);
        else if (strcmp(name, "role") == 0) a.producer = one_of(name, optarg, roles);
        else if (strcmp(optarg, "mixed") == 0) a.sizes = SIZES_MIXED;
        else if (strcmp(optarg, "ramp") == 0) a.sizes = SIZES_RAMP;
        else a.sizes = number(name, optarg);
    }
    if (optind != argc - 1) usage("one command is needed", argv[0]);
    a.command = argv[optind];
    return a;
}
