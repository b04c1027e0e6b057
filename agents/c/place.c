/* Rings and buses by the flags. */
#define _GNU_SOURCE
#include "program.h"

#include <stdlib.h>
#include <unistd.h>

/* How long to wait for a name, a role or the other side. */
#define PATIENCE_NS 10000000000LL

struct ends open_ends(const struct args *args, const char *to, const char *from) {
    struct ends ends = {NULL, NULL};
    if (args->listen != NULL || args->connect != NULL) {
        ramway_bus_options options = RAMWAY_BUS_OPTIONS_INIT;
        ramway_bus *bus = NULL;
        options.wait_policy = args->wait;
        if (args->listen != NULL) {
            options.capacity = (uint64_t)args->capacity;
            options.align = (uint32_t)args->align;
            must(ramway_bus_listen(args->listen, &options, PATIENCE_NS, &bus));
        } else {
            options.timeout_ns = PATIENCE_NS;
            must(ramway_bus_connect(args->connect, &options, &bus));
        }
        must(ramway_bus_split(bus, &ends.sender, &ends.receiver));
        return ends;
    }
    ramway_options options = RAMWAY_OPTIONS_INIT;
    options.wait_policy = args->wait;
    options.timeout_ns = PATIENCE_NS;
    if (args->create) {
        options.capacity = (uint64_t)args->capacity;
        options.align = (uint32_t)args->align;
    }
    if (to != NULL) must((args->create ? ramway_sender_create : ramway_sender_open)(to, &options, &ends.sender));
    if (from != NULL) must((args->create ? ramway_receiver_create : ramway_receiver_open)(from, &options, &ends.receiver));
    if (ends.sender == NULL && ends.receiver == NULL) {
        fprintf(stderr, "--ring, --listen or --connect is needed\n");
        exit(2);
    }
    return ends;
}

uint64_t longest(uint64_t capacity) {
    return capacity - 16 < 2147483631u ? capacity - 16 : 2147483631u;
}

static void attached(uint32_t epoch, uint32_t peer_epoch, uint64_t capacity) {
    say("attached pid=%ld epoch=%u peer_epoch=%u capacity=%llu max=%llu", (long)getpid(), (unsigned)epoch,
        (unsigned)peer_epoch, (unsigned long long)capacity, (unsigned long long)longest(capacity));
}

void attached_sender(const ramway_sender *sender) {
    attached(ramway_sender_epoch(sender), ramway_sender_peer_epoch(sender), ramway_sender_capacity(sender));
}

void attached_receiver(const ramway_receiver *receiver) {
    attached(ramway_receiver_epoch(receiver), ramway_receiver_peer_epoch(receiver), ramway_receiver_capacity(receiver));
}

void close_ends(struct ends *ends) {
    /* What closing says on a bus whose peer is dead does not matter. */
    if (ends->sender != NULL) ramway_sender_close(ends->sender);
    if (ends->receiver != NULL) ramway_receiver_close(ends->receiver);
    say("closed");
}
