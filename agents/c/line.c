/* Commands as lines. */
#define _GNU_SOURCE
#include "agent.h"

#include <stdlib.h>
#include <string.h>

bool next_line(struct line *line) {
    static char *bytes;
    static size_t room;
    char *left = NULL;
    line->fields = 0;
    line->word = "";
    if (getline(&bytes, &room, stdin) < 0) return false;
    for (char *word = strtok_r(bytes, " \n", &left); word != NULL; word = strtok_r(NULL, " \n", &left)) {
        char *value = strchr(word, '=');
        if (word == bytes) {
            line->word = word;
        } else if (value == NULL || line->fields == sizeof line->field / sizeof line->field[0]) {
            refuse("not key=value", word);
        } else {
            *value = 0;
            line->field[line->fields++] = (struct field){word, value + 1, false};
        }
    }
    return true;
}

const char *text(struct line *line, const char *key, const char *otherwise) {
    for (size_t i = 0; i < line->fields; i++) {
        if (strcmp(line->field[i].key, key) != 0) continue;
        line->field[i].asked = true;
        return line->field[i].value;
    }
    return otherwise;
}

int64_t number(struct line *line, const char *key, int64_t otherwise) {
    const char *value = text(line, key, NULL);
    if (value == NULL) return otherwise;
    char *rest;
    /* Tags need all 64 bits. */
    unsigned long long found = strtoull(value, &rest, 10);
    if (*value == 0 || *rest != 0) refuse("no number", key);
    return (int64_t)found;
}

bool yes(struct line *line, const char *key) {
    return strcmp(text(line, key, "no"), "yes") == 0;
}

uint32_t wait_policy(struct line *line) {
    const char *wait = text(line, "wait", "hybrid");
    if (strcmp(wait, "spin") == 0) return RAMWAY_WAIT_SPIN;
    return strcmp(wait, "block") == 0 ? RAMWAY_WAIT_BLOCK : RAMWAY_WAIT_HYBRID;
}

void end_of(const struct line *line) {
    for (size_t i = 0; i < line->fields; i++) {
        if (!line->field[i].asked) refuse(line->word, line->field[i].key);
    }
}

struct limits limits_of(struct line *line) {
    int64_t ms = number(line, "timeout", 20000), us = number(line, "poll", -1);
    struct limits limits = {.whole = ms == 0 ? RAMWAY_FOREVER : ms * 1000000, .polls = us >= 0};
    limits.call = us < 0 ? limits.whole : us * 1000;
    return limits;
}

bool poll_again(const struct limits *limits, ramway_status *status, int64_t began) {
    if (!limits->polls || (*status != RAMWAY_TIMED_OUT && *status != RAMWAY_FULL && *status != RAMWAY_EMPTY)) return false;
    if (limits->whole < 0 || now_ns() - began < limits->whole) return true;
    *status = RAMWAY_TIMED_OUT;
    return false;
}
