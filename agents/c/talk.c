/* echo, ping, last, take, region, write and hold. */
#define _GNU_SOURCE
#include "agent.h"

#include <stdlib.h>
#include <string.h>

/* Sends a message without a copy of one's own in between. */
static void answer(ramway_sender *tx, int64_t limit, struct made m) {
    void *slot;
    must(ramway_inline_reserve(tx, m.len, limit, &slot));
    memcpy(slot, m.data, m.len);
    must(ramway_inline_commit(tx, m.type_id, m.tag, m.len));
}

void echo(struct ends *ends, struct line *line) {
    int64_t limit = limits_of(line).whole, began;
    end_of(line);
    long long received = 0, bytes = 0, first = -1, last = -1;
    ramway_status status;
    ramway_message m;
    for (;;) {
        began = now_ns();
        status = ramway_inline_recv(ends->receiver, limit, &m);
        if (status != RAMWAY_OK) break;
        received++;
        bytes += (long long)m.len;
        last = (long long)(m.tag & 0xFFFFFFFFu);
        if (received == 1) first = last;
        answer(ends->sender, limit, (struct made){m.type_id, m.tag, m.data, m.len});
        must(ramway_inline_release(ends->receiver));
    }
    end(status, " received=%lld first=%lld last=%lld bytes=%lld elapsed_ms=%lld", received, first, last, bytes,
        (long long)((now_ns() - began) / 1000000));
}

void ping(struct ends *ends, struct line *line) {
    int64_t limit = limits_of(line).whole, count = number(line, "count", 0);
    struct messages all = messages_new(line, ramway_sender_max_message_len(ends->sender));
    end_of(line);
    for (int64_t seq = 0; seq < count; seq++) {
        ramway_message m;
        answer(ends->sender, limit, make(&all, (uint64_t)seq));
        must(ramway_inline_recv(ends->receiver, limit, &m));
        check(&all, (uint64_t)seq, &m);
        must(ramway_inline_release(ends->receiver));
    }
    say("answered count=%lld", (long long)count);
    free(all.pattern);
}

void last(struct ends *ends, struct line *line) {
    uint64_t tag;
    end_of(line);
    if (ramway_sender_last_tag(ends->sender, &tag)) say("last tag=%llu", (unsigned long long)tag);
    else say("last none");
}

void take(struct ends *ends, struct line *line) {
    int64_t limit = limits_of(line).whole;
    bool tensor = yes(line, "tensor");
    const char *how = text(line, "how", "");
    end_of(line);
    if (strcmp(how, "try") == 0) limit = RAMWAY_TRY;
    else if (*how != 0) refuse("how", how);
    ramway_topic_message m;
    ramway_status status = ends->topic ? ramway_subscriber_recv(ends->receiver, limit, &m)
                                       : ramway_recv(ends->receiver, limit, &m.message);
    if (status != RAMWAY_OK) {
        char lost[32] = "";
        if (status == RAMWAY_LAGGED) snprintf(lost, sizeof lost, " lost=%llu", (unsigned long long)ramway_last_lost());
        end(status, "%s", lost);
        return;
    }
    if (!tensor || !say_tensor(&m.message)) {
        char stamp[64] = "";
        if (ends->topic) {
            snprintf(stamp, sizeof stamp, " seq=%llu lost=%llu", (unsigned long long)m.seq, (unsigned long long)m.lost);
        }
        say("message type_id=%u tag=%llu len=%zu crc32=%u%s", (unsigned)m.message.type_id, (unsigned long long)m.message.tag,
            m.message.len, (unsigned)crc32(m.message.data, m.message.len), stamp);
    }
    must(ramway_release(ends->receiver));
}

void region(struct ends *ends, struct line *line) {
    (void)ends;
    ramway_options options = RAMWAY_OPTIONS_INIT;
    ramway_region *region = NULL;
    const char *name = text(line, "name", "");
    end_of(line);
    options.timeout_ns = OPEN_TIMEOUT_NS;
    must(ramway_region_open(name, &options, &region));
    uint64_t len = ramway_region_len(region);
    say("region len=%llu crc32=%u", (unsigned long long)len, (unsigned)crc32(ramway_region_data(region), len));
    must(ramway_region_close(region));
}

/* Writes and reads single bytes of a message by its address, until `release`. */
static void look_at(volatile uint8_t *address, size_t len, uint64_t tag) {
    struct line line;
    say("view addr=%p len=%zu tag=%llu", (void *)(uintptr_t)address, len, (unsigned long long)tag);
    while (next_line(&line)) {
        uint64_t offset = (uint64_t)number(&line, "offset", 0);
        if (offset >= len) refuse(line.word, "offset");
        if (strcmp(line.word, "poke") == 0) {
            address[offset] = (uint8_t)number(&line, "value", 0);
            say("poked");
        } else if (strcmp(line.word, "peek") == 0) {
            say("byte value=%u", (unsigned)address[offset]);
        } else if (strcmp(line.word, "release") == 0) {
            say("released");
            return;
        } else {
            refuse("while a message is held", line.word);
        }
        end_of(&line);
    }
}

/* Reserves, fills, and commits what is to be kept. */
void write_one(struct ends *ends, struct line *line) {
    void *slot;
    size_t len = (size_t)number(line, "len", 0), kept = (size_t)number(line, "kept", (int64_t)len);
    bool unflushed = yes(line, "unflushed");
    end_of(line);
    must(ramway_reserve(ends->sender, len, OPEN_TIMEOUT_NS, &slot));
    memset(slot, 0x11, len);
    must((unflushed ? ramway_commit_unflushed : ramway_commit)(ends->sender, 0, 0, kept));
    look_at(slot, len, 0);
}

void hold(struct ends *ends, struct line *line) {
    ramway_message m;
    end_of(line);
    must(ramway_recv(ends->receiver, OPEN_TIMEOUT_NS, &m));
    look_at((volatile uint8_t *)(uintptr_t)m.data, m.len, m.tag);
    must(ramway_release(ends->receiver));
}
