/* produce and consume. */
#define _GNU_SOURCE
#include "agent.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The keys that both have. */
struct plan {
    struct limits limits;
    const char *how;
    int64_t start, count, batch, endings; /* -1: not given */
    bool progress, topic;
};

static struct plan plan_of(const struct ends *ends, struct line *line, int64_t batch) {
    return (struct plan){.topic = ends->topic,
                         .limits = limits_of(line),
                         .how = text(line, "how", ""),
                         .start = number(line, "start", -1),
                         .count = number(line, "count", -1),
                         .batch = number(line, "batch", batch),
                         .endings = number(line, "endings", 1),
                         .progress = yes(line, "progress")};
}

static bool is(const char *how, const char *word) {
    return strcmp(how, word) == 0;
}

/* Whether the stream goes on after this, with a successor of the other side. */
static bool goes_on(struct plan *plan, ramway_status status) {
    return (status == RAMWAY_CLOSED || status == RAMWAY_PEER_DEAD) && --plan->endings > 0;
}

/* Waits until an epoch is another than the noted one; false if it stays that. */
static bool successor(const struct plan *plan, uint32_t (*epoch_of)(const void *), const void *end, uint32_t noted) {
    const struct timespec millisecond = {0, 1000000};
    int64_t began = now_ns();
    while (epoch_of(end) == noted) {
        if (plan->limits.whole >= 0 && now_ns() - began >= plan->limits.whole) return false;
        nanosleep(&millisecond, NULL);
    }
    return true;
}

static uint32_t epoch_of_receiver(const void *sender) {
    return ramway_sender_peer_epoch(sender);
}

static uint32_t epoch_of_sender(const void *receiver) {
    return ramway_receiver_peer_epoch(receiver);
}

/* The same by the calls of a topic. */
static ramway_status publish(ramway_publisher *tx, const struct plan *plan, struct made m, bool flush, int64_t timeout) {
    if (!is(plan->how, "reserve") && flush) return ramway_inline_publisher_send(tx, m.type_id, m.tag, m.data, m.len, timeout);
    void *slot;
    ramway_status status = ramway_inline_publisher_reserve(tx, m.len, timeout, &slot);
    if (status != RAMWAY_OK) return status;
    memcpy(slot, m.data, m.len);
    return (flush ? ramway_inline_publisher_commit : ramway_inline_publisher_commit_unflushed)(tx, m.type_id, m.tag, m.len);
}

/* Sends one message as `how` says, waiting for room for as long as a call may last. */
static ramway_status put(ramway_sender *tx, const struct plan *plan, struct made m, bool flush) {
    int64_t timeout = is(plan->how, "try") ? RAMWAY_TRY : plan->limits.call;
    if (plan->topic) return publish(tx, plan, m, flush, timeout);
    if (!is(plan->how, "reserve") && flush) return ramway_inline_send(tx, m.type_id, m.tag, m.data, m.len, timeout);
    void *slot;
    ramway_status status = ramway_inline_reserve(tx, m.len, timeout, &slot);
    if (status != RAMWAY_OK) return status;
    memcpy(slot, m.data, m.len);
    return (flush ? ramway_inline_commit : ramway_inline_commit_unflushed)(tx, m.type_id, m.tag, m.len);
}

static void report_sender(ramway_status status, int64_t sent, int64_t next, int64_t began) {
    end(status, " sent=%lld next=%lld elapsed_ms=%lld", (long long)sent, (long long)next,
        (long long)((now_ns() - began) / 1000000));
}

void produce(struct ends *ends, struct line *line) {
    ramway_sender *tx = ends->sender;
    struct plan plan = plan_of(ends, line, 1);
    struct messages all = messages_new(line, ramway_sender_max_message_len(tx));
    end_of(line);
    if (plan.count < 0) refuse("produce", "count is missing");
    int64_t next = plan.start < 0 ? 0 : plan.start, last = next + plan.count, sent = 0;
    while (next < last) {
        bool flush = (sent + 1) % plan.batch == 0 || next + 1 == last;
        uint32_t noted = ramway_sender_peer_epoch(tx);
        int64_t began = now_ns();
        ramway_status status;
        do status = put(tx, &plan, make(&all, (uint64_t)next), flush);
        while (poll_again(&plan.limits, &status, began));
        if (status != RAMWAY_OK) {
            report_sender(status, sent, next, began);
            if (!goes_on(&plan, status)) break;
            if (successor(&plan, epoch_of_receiver, tx, noted)) continue;
            report_sender(RAMWAY_TIMED_OUT, sent, next, began);
            break;
        }
        if (plan.progress) say("at seq=%lld", (long long)next);
        sent++;
        next++;
    }
    if (next == last) say("sent count=%lld next=%lld", (long long)sent, (long long)next);
    free(all.pattern);
}

/* What a consumer has seen so far. */
struct seen {
    const struct plan *plan;
    struct messages all;
    int64_t next, first, received, bytes; /* -1: not known yet */
    int64_t lost; /* of a topic: how many messages it was told that it lost */
};

/* What a topic's message says of itself; the first one has 1. */
static void see_number(struct seen *seen, const ramway_topic_message *m) {
    int64_t seq = (int64_t)m->seq - 1, lost = (int64_t)m->lost;
    if (seen->next >= 0 && seen->next + lost != seq) bad((uint64_t)seq, "its number and what was lost", &m->message);
    seen->next = seq;
    seen->lost += lost;
}

static void see(struct seen *seen, const ramway_topic_message *m) {
    const ramway_message *message = &m->message;
    if (seen->plan->topic) see_number(seen, m);
    if (seen->next < 0) seen->next = (int64_t)(message->tag & 0xFFFFFFFFu);
    check(&seen->all, (uint64_t)seen->next, message);
    if (seen->first < 0) seen->first = seen->next;
    if (seen->plan->progress) say("at seq=%lld", (long long)seen->next);
    seen->next++;
    seen->received++;
    seen->bytes += (int64_t)message->len;
}

static int64_t left(const struct seen *seen) {
    return seen->plan->count < 0 ? INT64_MAX : seen->plan->count - seen->received;
}

static void report_receiver(const struct seen *seen, ramway_status status, int64_t ns) {
    char lost[32] = "";
    if (seen->plan->topic) snprintf(lost, sizeof lost, " lost=%lld", (long long)seen->lost);
    end(status, " received=%lld first=%lld last=%lld bytes=%lld elapsed_ms=%lld%s", (long long)seen->received,
        (long long)seen->first, (long long)(seen->first < 0 ? -1 : seen->next - 1), (long long)seen->bytes,
        (long long)(ns / 1000000), lost);
}

enum { BATCH_MAX = 256 };

/* A batch of a ring, in the place of a topic's. */
static ramway_status batch_of_ring(ramway_receiver *rx, int64_t limit, ramway_topic_message *out, size_t max, size_t *count) {
    ramway_message messages[BATCH_MAX];
    ramway_status status = ramway_inline_recv_batch(rx, limit, messages, max, count);
    for (size_t i = 0; status == RAMWAY_OK && i < *count; i++) out[i].message = messages[i];
    return status;
}

/* Receives one message, or a batch of them, as `how` says. */
static ramway_status get(ramway_receiver *rx, struct seen *seen, uint8_t *buffer) {
    const struct plan *plan = seen->plan;
    ramway_topic_message messages[BATCH_MAX];
    size_t count = 1, room = seen->all.max;
    int64_t limit = is(plan->how, "try") ? RAMWAY_TRY : plan->limits.call;
    ramway_status status;
    if (is(plan->how, "into")) {
        status = plan->topic ? ramway_subscriber_recv_into(rx, limit, buffer, room, messages)
                             : ramway_recv_into(rx, limit, buffer, room, &messages->message);
        if (status == RAMWAY_OK) see(seen, messages);
        return status;
    }
    if (is(plan->how, "batch")) {
        int64_t max = plan->batch < BATCH_MAX ? plan->batch : BATCH_MAX;
        if (max > left(seen)) max = left(seen);
        status = (plan->topic ? ramway_inline_subscriber_recv_batch : batch_of_ring)(rx, limit, messages, (size_t)max, &count);
    } else {
        status = plan->topic ? ramway_inline_subscriber_recv(rx, limit, messages)
                             : ramway_inline_recv(rx, limit, &messages->message);
    }
    if (status != RAMWAY_OK) return status;
    for (size_t i = 0; i < count; i++) see(seen, &messages[i]);
    return plan->topic ? ramway_inline_subscriber_release(rx) : ramway_inline_release(rx);
}

/* It was ejected: says how many messages that cost, and goes on. */
static void lagged(struct seen *seen) {
    int64_t lost = (int64_t)ramway_last_lost();
    say("lagged lost=%lld", (long long)lost);
    seen->lost += lost;
    if (seen->next >= 0) seen->next += lost;
}

void consume(struct ends *ends, struct line *line) {
    ramway_receiver *rx = ends->receiver;
    struct plan plan = plan_of(ends, line, 32);
    uint64_t max = longest(ends->topic, ramway_receiver_capacity(rx));
    struct seen seen = {&plan, messages_new(line, max), plan.start, -1, 0, 0, 0};
    end_of(line);
    uint8_t *buffer = malloc(max);
    int64_t took = 0;
    ramway_status status = RAMWAY_OK;
    while (left(&seen) > 0) {
        uint32_t noted = ramway_receiver_peer_epoch(rx);
        int64_t began = now_ns();
        do status = get(rx, &seen, buffer);
        while (poll_again(&plan.limits, &status, began));
        took = now_ns() - began;
        if (status == RAMWAY_OK) continue;
        if (status == RAMWAY_LAGGED) {
            lagged(&seen);
            status = RAMWAY_OK;
            continue;
        }
        if (!goes_on(&plan, status)) break;
        report_receiver(&seen, status, took);
        status = RAMWAY_OK;
        if (successor(&plan, epoch_of_sender, rx, noted)) continue;
        status = RAMWAY_TIMED_OUT;
        break;
    }
    report_receiver(&seen, status, took);
    free(seen.all.pattern);
    free(buffer);
}
