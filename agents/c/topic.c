/* open topic=. */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

/* Where a subscriber begins: `from`. */
static void begins(ramway_topic_options *options, const char *from) {
    const char *colon = strchr(from, ':');
    size_t len = colon == NULL ? strlen(from) : (size_t)(colon - from);
    static const struct {
        const char *name;
        uint32_t start;
    } places[] = {{"oldest", RAMWAY_FROM_OLDEST}, {"now", RAMWAY_FROM_NOW}, {"history", RAMWAY_HISTORY}, {"after", RAMWAY_AFTER_SEQ}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (strlen(places[i].name) != len || strncmp(places[i].name, from, len) != 0) continue;
        options->start = places[i].start;
        options->start_number = colon == NULL ? 0 : strtoull(colon + 1, NULL, 10);
        return;
    }
    refuse("no place to begin", from);
}

static uint32_t policy_of(const char *policy) {
    if (strcmp(policy, "reliable") == 0) return RAMWAY_RELIABLE;
    if (strcmp(policy, "lossy") == 0) return RAMWAY_LOSSY;
    if (strcmp(policy, "latest") == 0) return RAMWAY_LATEST;
    refuse("no policy", policy);
}

void open_topic(struct ends *ends, struct line *line, const char *name, bool consumer) {
    ramway_topic_options options = RAMWAY_TOPIC_OPTIONS_INIT;
    const char *policy = text(line, "policy", "reliable"), *from = text(line, "from", NULL);
    int64_t eject_after = number(line, "eject_after", 0), wait_for = number(line, "wait_for", -1);
    bool create = yes(line, "create");
    options.wait_policy = wait_policy(line);
    options.timeout_ns = number(line, "timeout", OPEN_TIMEOUT_S * 1000) * 1000000;
    options.policy = policy_of(policy);
    options.label = text(line, "label", NULL);
    options.eject_after_ns = eject_after * 1000000;
    if (yes(line, "durable")) options.flags |= RAMWAY_DURABLE;
    if (from != NULL) begins(&options, from);
    if (create) {
        options.capacity = (uint64_t)number(line, "capacity", 65536);
        options.align = (uint32_t)number(line, "align", 32);
    }
    end_of(line);
    if (consumer) {
        if (wait_for >= 0) refuse("a producer's", "wait_for");
        must((create ? ramway_subscriber_create : ramway_subscriber_open)(name, &options, &ends->receiver));
        return;
    }
    must((create ? ramway_publisher_create : ramway_publisher_open)(name, &options, &ends->sender));
    if (wait_for >= 0) must(ramway_publisher_wait_for_subscribers(ends->sender, (size_t)wait_for, OPEN_TIMEOUT_NS));
}
