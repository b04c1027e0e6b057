/* read and show. */
#include "program.h"

#include <stdlib.h>
#include <unistd.h>

enum { SHOWN = 4096 };

static void end(ramway_status status) {
    say("end name=%s number=%d", ramway_status_name(status), (int)status);
}

static void pause_if(const struct args *args) {
    char line[64];
    /* Its end is as good as a line. */
    if (args->pause && fgets(line, sizeof line, stdin) == NULL) return;
}

static void read_region(const struct args *args) {
    ramway_options options = RAMWAY_OPTIONS_INIT;
    ramway_region *region = NULL;
    options.timeout_ns = 10000000000LL;
    must(ramway_region_open(args->region, &options, &region));
    uint64_t len = ramway_region_len(region);
    say("region len=%llu crc32=%u", (unsigned long long)len, (unsigned)crc32(ramway_region_data(region), len));
    must(ramway_region_close(region));
    say("closed");
}

void read_back(const struct args *args) {
    if (args->region != NULL) {
        read_region(args);
        return;
    }
    struct ends ends;
    ramway_status status;
    if (args->producer) {
        ends = open_ends(args, args->ring, NULL);
        attached_sender(ends.sender);
        pause_if(args);
        uint64_t tag;
        if (ramway_sender_last_tag(ends.sender, &tag)) say("last tag=%llu", (unsigned long long)tag);
        else say("last none");
        struct messages all = messages_new(args->size, ramway_sender_max_message_len(ends.sender));
        struct made m = make(&all, 0);
        status = ramway_send(ends.sender, m.type_id, m.tag, m.data, m.len, RAMWAY_TRY);
        if (status == RAMWAY_OK) say("sent");
        else end(status);
    } else {
        ends = open_ends(args, NULL, args->ring);
        attached_receiver(ends.receiver);
        pause_if(args);
        for (;;) {
            ramway_message m;
            status = ramway_recv(ends.receiver, limit(args), &m);
            if (status != RAMWAY_OK) break;
            say("message type_id=%u tag=%llu len=%zu crc32=%u", (unsigned)m.type_id, (unsigned long long)m.tag, m.len,
                (unsigned)crc32(m.data, m.len));
            must(ramway_release(ends.receiver));
        }
        end(status);
    }
    close_ends(&ends);
}

/* Writes and reads single bytes of the message by its address, as standard input says. */
static void obey(volatile uint8_t *address) {
    char line[64];
    unsigned offset, value;
    say("view addr=%p len=%d pid=%ld", (void *)(uintptr_t)address, SHOWN, (long)getpid());
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "poke %u %u", &offset, &value) == 2 && offset < SHOWN) {
            address[offset] = (uint8_t)value;
            say("poked");
        } else if (sscanf(line, "peek %u", &offset) == 1 && offset < SHOWN) {
            say("byte value=%u", (unsigned)address[offset]);
        } else {
            return;
        }
    }
}

void show(const struct args *args) {
    struct ends ends;
    if (args->producer) {
        void *slot;
        ends = open_ends(args, args->ring, NULL);
        attached_sender(ends.sender);
        must(ramway_reserve(ends.sender, SHOWN, limit(args), &slot));
        memset(slot, 0x11, SHOWN);
        must(ramway_commit(ends.sender, 0, 0, SHOWN));
        obey(slot);
    } else {
        ramway_message m;
        ends = open_ends(args, NULL, args->ring);
        attached_receiver(ends.receiver);
        must(ramway_recv(ends.receiver, limit(args), &m));
        obey((volatile uint8_t *)(uintptr_t)m.data);
        must(ramway_release(ends.receiver));
    }
    close_ends(&ends);
}
