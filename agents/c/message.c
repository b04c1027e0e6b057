/* What message number `seq` is, and whether it arrived as such. */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

uint32_t crc32(const uint8_t *bytes, size_t len) {
    static uint32_t table[256];
    if (table[1] == 0) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int bit = 0; bit < 8; bit++) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
            table[i] = c;
        }
    }
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < len; i++) crc = table[(crc ^ bytes[i]) & 0xFF] ^ (crc >> 8);
    return crc ^ 0xFFFFFFFFu;
}

struct messages messages_new(struct line *line, uint64_t max) {
    const char *sizes = text(line, "sizes", "mixed");
    bool ramp = strcmp(sizes, "ramp") == 0, mixed = strcmp(sizes, "mixed") == 0;
    struct messages all = {.sizes = ramp ? SIZES_RAMP : mixed ? SIZES_MIXED : number(line, "sizes", 0), .max = max};
    uint64_t len = all.sizes > (int64_t)max ? (uint64_t)all.sizes : max;
    all.pattern = malloc(len + 256);
    if (all.pattern == NULL) abort();
    for (uint64_t i = 0; i < len + 256; i++) all.pattern[i] = (uint8_t)i;
    return all;
}

static uint64_t length_of(const struct messages *all, uint64_t seq) {
    uint64_t x = (uint32_t)(seq * 2654435761u);
    if (all->sizes >= 0) return (uint64_t)all->sizes;
    if (all->sizes == SIZES_RAMP) return seq % (all->max + 1);
    if (seq % 1000 == 999) return all->max;
    if (seq % 100 == 0) return 0;
    if (seq % 50 == 1) return x % (all->max + 1);
    return x % 257;
}

static uint64_t tag_of(uint64_t seq, const uint8_t *data, size_t len) {
    return (uint64_t)crc32(data, len) << 32 | (seq & 0xFFFFFFFFu);
}

struct made make(const struct messages *all, uint64_t seq) {
    const uint8_t *data = all->pattern + seq % 256;
    size_t len = length_of(all, seq);
    return (struct made){(uint32_t)(seq % 60000), tag_of(seq, data, len), data, len};
}

void check(const struct messages *all, uint64_t seq, const ramway_message *message) {
    uint64_t len = length_of(all, seq);
    const char *wrong = NULL;
    if (message->len != len) wrong = "the length";
    else if (message->type_id != seq % 60000) wrong = "the type id";
    /* Of the bytes that came, so that each of them is read. */
    else if (message->tag != tag_of(seq, message->data, len)) wrong = "the tag";
    else if (memcmp(message->data, all->pattern + seq % 256, len) != 0) wrong = "the bytes";
    if (wrong != NULL) bad(seq, wrong, message);
}

void bad(uint64_t seq, const char *wrong, const ramway_message *message) {
    say("bad seq=%llu text=%s: length %zu, type id %u, tag 0x%llx", (unsigned long long)seq, wrong, message->len,
        (unsigned)message->type_id, (unsigned long long)message->tag);
    exit(1);
}
