/* produce, consume and die. */
#include "program.h"

#include <stdlib.h>

/* Sends one message as --how says, waiting for room for as long as a wait may last. */
static ramway_status put(ramway_sender *tx, const struct args *args, struct made m, bool flush) {
    int64_t timeout = args->how == HOW_TRY ? RAMWAY_TRY : call_limit(args);
    if (args->how != HOW_RESERVE && flush) return ramway_inline_send(tx, m.type_id, m.tag, m.data, m.len, timeout);
    void *slot;
    ramway_status status = ramway_inline_reserve(tx, m.len, timeout, &slot);
    if (status != RAMWAY_OK) return status;
    memcpy(slot, m.data, m.len);
    return (flush ? ramway_inline_commit : ramway_inline_commit_unflushed)(tx, m.type_id, m.tag, m.len);
}

/* With --poll, whether a call that found nothing is made again: for as long as a wait may last. A time-out of 0 says Full
 * and Empty, and at the end of the wait it is TimedOut whatever the last call said. */
static bool poll_again(const struct args *args, ramway_status *status, int64_t began) {
    if (args->poll_us < 0 || (*status != RAMWAY_TIMED_OUT && *status != RAMWAY_FULL && *status != RAMWAY_EMPTY)) return false;
    if (limit(args) < 0 || now_ns() - began < limit(args)) return true;
    *status = RAMWAY_TIMED_OUT;
    return false;
}

static ramway_status put_polling(ramway_sender *tx, const struct args *args, struct made m, bool flush) {
    int64_t began = now_ns();
    ramway_status status;
    do status = put(tx, args, m, flush);
    while (poll_again(args, &status, began));
    return status;
}

static bool is_ending(ramway_status status) {
    return status == RAMWAY_CLOSED || status == RAMWAY_PEER_DEAD;
}

static void report_sender(ramway_status status, int64_t sent, int64_t next, int64_t began) {
    say("end name=%s number=%d sent=%lld next=%lld elapsed_ms=%lld", ramway_status_name(status), (int)status,
        (long long)sent, (long long)next, (long long)((now_ns() - began) / 1000000));
}

void produce(const struct args *args) {
    struct ends ends = open_ends(args, args->ring, NULL);
    ramway_sender *tx = ends.sender;
    attached_sender(tx);
    uint64_t max = ramway_sender_max_message_len(tx);
    struct messages all = messages_new(args->sizes, max);
    int64_t next = args->start < 0 ? 0 : args->start, end = next + args->count, batch = args->batch > 0 ? args->batch : 1;
    if (args->resume) {
        uint64_t tag;
        if (ramway_sender_last_tag(tx, &tag)) next = (int64_t)(tag & 0xFFFFFFFFu) + 1;
        say("resuming next=%lld", (long long)next);
    }
    if (args->oversize) {
        ramway_status status = put(tx, args, make_of_length(&all, (uint64_t)next, max + 1), true);
        report_sender(status, 0, next, now_ns());
        if (status == RAMWAY_OK) exit(1);
    }
    int64_t sent = 0, endings = 0;
    while (next < end) {
        bool flush = (sent + 1) % batch == 0 || next + 1 == end;
        uint32_t epoch = ramway_sender_peer_epoch(tx);
        int64_t began = now_ns();
        ramway_status status = put_polling(tx, args, make(&all, (uint64_t)next), flush);
        if (status != RAMWAY_OK) {
            report_sender(status, sent, next, began);
            if (!is_ending(status) || ++endings >= args->endings) break;
            int64_t waiting = now_ns();
            while (ramway_sender_peer_epoch(tx) == epoch && (limit(args) < 0 || now_ns() - waiting < limit(args))) {
                sleep_us(1000);
            }
            if (ramway_sender_peer_epoch(tx) != epoch) continue;
            report_sender(RAMWAY_TIMED_OUT, sent, next, waiting);
            break;
        }
        if (args->progress) say("at seq=%lld", (long long)next);
        sent++;
        next++;
        if (args->pace_us > 0) sleep_us(args->pace_us);
    }
    if (next >= end) say("sent count=%lld next=%lld", (long long)sent, (long long)next);
    linger(args);
    close_ends(&ends);
}

/* What a consumer has seen so far. */
struct seen {
    const struct args *args;
    struct messages all;
    int64_t next, first, received, bytes; /* -1: not known yet */
};

static void take(struct seen *seen, const ramway_message *message) {
    if (seen->next < 0) seen->next = (int64_t)(message->tag & 0xFFFFFFFFu);
    check(&seen->all, (uint64_t)seen->next, message);
    if (seen->first < 0) seen->first = seen->next;
    if (seen->args->progress) say("at seq=%lld", (long long)seen->next);
    if (seen->args->work_us > 0) sleep_us(seen->args->work_us);
    seen->next++;
    seen->received++;
    seen->bytes += (int64_t)message->len;
}

static int64_t left(const struct seen *seen) {
    int64_t by_count = seen->args->count < 0 ? INT64_MAX : seen->args->count - seen->received;
    int64_t by_number = seen->args->until < 0 ? INT64_MAX : seen->args->until - (seen->next < 0 ? 0 : seen->next);
    return by_count < by_number ? by_count : by_number;
}

static void report_receiver(const struct seen *seen, const char *name, int number, int64_t ns) {
    say("end name=%s number=%d received=%lld first=%lld last=%lld bytes=%lld elapsed_ms=%lld", name, number,
        (long long)seen->received, (long long)seen->first, (long long)(seen->first < 0 ? -1 : seen->next - 1),
        (long long)seen->bytes, (long long)(ns / 1000000));
}

enum { BATCH_MAX = 256 };

/* Receives one message, or a batch of them, as --how says. */
static ramway_status get(ramway_receiver *rx, struct seen *seen, uint8_t *buffer) {
    const struct args *args = seen->args;
    ramway_message messages[BATCH_MAX];
    size_t count = 1;
    ramway_status status;
    if (args->how == HOW_INTO) {
        status = ramway_recv_into(rx, call_limit(args), buffer, seen->all.max, messages);
        if (status == RAMWAY_OK) take(seen, messages);
        return status;
    }
    if (args->how == HOW_BATCH) {
        int64_t max = args->batch > 0 ? args->batch : 32;
        if (max > BATCH_MAX) max = BATCH_MAX;
        if (max > left(seen)) max = left(seen);
        status = ramway_inline_recv_batch(rx, call_limit(args), messages, (size_t)max, &count);
    } else {
        status = ramway_inline_recv(rx, args->how == HOW_TRY ? RAMWAY_TRY : call_limit(args), messages);
    }
    if (status != RAMWAY_OK) return status;
    for (size_t i = 0; i < count; i++) take(seen, &messages[i]);
    return ramway_inline_release(rx);
}

void consume(const struct args *args) {
    struct ends ends = open_ends(args, NULL, args->ring);
    ramway_receiver *rx = ends.receiver;
    attached_receiver(rx);
    uint64_t max = longest(ramway_receiver_capacity(rx));
    struct seen seen = {args, messages_new(args->sizes, max), args->start, -1, 0, 0};
    uint8_t *buffer = malloc(max);
    int64_t endings = 0, took = 0;
    const char *name = "Count";
    int number = 0;
    while (left(&seen) > 0) {
        uint32_t epoch = ramway_receiver_peer_epoch(rx);
        int64_t began = now_ns();
        ramway_status status;
        do status = get(rx, &seen, buffer);
        while (poll_again(args, &status, began));
        took = now_ns() - began;
        if (status == RAMWAY_OK) continue;
        if (is_ending(status) && ++endings < args->endings) {
            report_receiver(&seen, ramway_status_name(status), (int)status, took);
            int64_t waiting = now_ns();
            while (ramway_receiver_peer_epoch(rx) == epoch && (limit(args) < 0 || now_ns() - waiting < limit(args))) {
                sleep_us(1000);
            }
            if (ramway_receiver_peer_epoch(rx) != epoch) continue;
            status = RAMWAY_TIMED_OUT;
        }
        name = ramway_status_name(status);
        number = (int)status;
        break;
    }
    report_receiver(&seen, name, number, took);
    linger(args);
    close_ends(&ends);
    free(buffer);
}

void die(const struct args *args) {
    if (args->producer) {
        struct ends ends = open_ends(args, args->ring, NULL);
        attached_sender(ends.sender);
        struct messages all = messages_new(args->sizes, ramway_sender_max_message_len(ends.sender));
        uint64_t next = (uint64_t)(args->start < 0 ? 0 : args->start), end = next + (uint64_t)args->count;
        for (; next < end; next++) must(put_polling(ends.sender, args, make(&all, next), true));
        struct made m = make(&all, next);
        void *slot;
        must(ramway_inline_reserve(ends.sender, m.len, limit(args), &slot));
        memcpy(slot, m.data, m.len / 2);
        must(ramway_inline_commit_unflushed(ends.sender, m.type_id, m.tag, m.len / 2));
        say("dying next=%llu", (unsigned long long)next);
        kill_myself();
    }
    struct ends ends = open_ends(args, NULL, args->ring);
    attached_receiver(ends.receiver);
    struct seen seen = {args, messages_new(args->sizes, longest(ramway_receiver_capacity(ends.receiver))), args->start,
                        -1, 0, 0};
    for (;;) {
        ramway_message message;
        must(ramway_inline_recv(ends.receiver, limit(args), &message));
        take(&seen, &message);
        if (seen.received == args->count) break;
        must(ramway_inline_release(ends.receiver));
    }
    say("dying next=%lld", (long long)seen.next - 1);
    kill_myself();
}
