/* echo and ping. */
#include "program.h"

#include <stdlib.h>

/* Sends a message without a copy of one's own in between. */
static void answer(ramway_sender *tx, const struct args *args, struct made m) {
    void *slot;
    must(ramway_inline_reserve(tx, m.len, limit(args), &slot));
    memcpy(slot, m.data, m.len);
    must(ramway_inline_commit(tx, m.type_id, m.tag, m.len));
}

void echo(const struct args *args) {
    struct ends ends = open_ends(args, args->back, args->ring);
    attached_sender(ends.sender);
    long long received = 0, bytes = 0, first = -1, last = -1;
    int64_t began;
    ramway_status status;
    ramway_message m;
    for (;;) {
        began = args->timeout_ms == 0 ? 0 : now_ns();
        status = ramway_inline_recv(ends.receiver, limit(args), &m);
        if (status != RAMWAY_OK) break;
        received++;
        bytes += (long long)m.len;
        last = (long long)(m.tag & 0xFFFFFFFFu);
        if (received == 1) first = last;
        answer(ends.sender, args, (struct made){m.type_id, m.tag, m.data, m.len});
        must(ramway_inline_release(ends.receiver));
    }
    say("end name=%s number=%d received=%lld first=%lld last=%lld bytes=%lld elapsed_ms=%lld", ramway_status_name(status),
        (int)status, received, first, last, bytes, began == 0 ? 0 : (long long)((now_ns() - began) / 1000000));
    close_ends(&ends);
}

void ping(const struct args *args) {
    struct ends ends = open_ends(args, args->ring, args->back);
    attached_sender(ends.sender);
    struct messages all = messages_new(args->sizes, ramway_sender_max_message_len(ends.sender));
    struct timer timer = timer_start(args->count, args->group);
    for (int64_t seq = 0; seq < args->count; seq++) {
        ramway_message m;
        answer(ends.sender, args, make(&all, (uint64_t)seq));
        must(ramway_inline_recv(ends.receiver, limit(args), &m));
        check(&all, (uint64_t)seq, &m);
        must(ramway_inline_release(ends.receiver));
        timer_trip(&timer, seq);
    }
    timer_report(&timer);
    close_ends(&ends);
}

struct timer timer_start(int64_t count, int64_t group) {
    struct timer timer = {.count = count, .group = group > 0 ? group : 1};
    timer.ns = malloc(sizeof(double) * (size_t)(count / timer.group + 1));
    if (timer.ns == NULL) abort();
    timer.last = now_ns();
    return timer;
}

void timer_trip(struct timer *timer, int64_t seq) {
    if ((seq + 1) % timer->group != 0) return;
    int64_t now = now_ns();
    if (seq >= timer->count / 10) timer->ns[timer->samples++] = (double)(now - timer->last) / (double)timer->group;
    timer->last = now;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const struct timer *timer, double part) {
    return timer->samples == 0 ? 0 : timer->ns[(int64_t)((double)(timer->samples - 1) * part)];
}

void timer_report(struct timer *timer) {
    qsort(timer->ns, (size_t)timer->samples, sizeof(double), compare);
    say("rtt count=%lld min_ns=%.1f p50_ns=%.1f p99_ns=%.1f max_ns=%.1f", (long long)timer->count, quantile(timer, 0),
        quantile(timer, 0.5), quantile(timer, 0.99), quantile(timer, 1));
}
