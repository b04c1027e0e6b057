/* tensor, and a tensor that is taken. */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

/* The types of a tensor's elements, in the order of ABI.md. */
static const ramway_dtype types[] = {
    {RAMWAY_DTYPE_INT, 8},           {RAMWAY_DTYPE_INT, 16},         {RAMWAY_DTYPE_INT, 32},
    {RAMWAY_DTYPE_INT, 64},          {RAMWAY_DTYPE_UINT, 8},         {RAMWAY_DTYPE_UINT, 16},
    {RAMWAY_DTYPE_UINT, 32},         {RAMWAY_DTYPE_UINT, 64},        {RAMWAY_DTYPE_FLOAT, 16},
    {RAMWAY_DTYPE_FLOAT, 32},        {RAMWAY_DTYPE_FLOAT, 64},       {RAMWAY_DTYPE_BFLOAT, 16},
    {RAMWAY_DTYPE_COMPLEX, 64},      {RAMWAY_DTYPE_COMPLEX, 128},    {RAMWAY_DTYPE_BOOL, 8},
    {RAMWAY_DTYPE_FLOAT8_E3M4, 8},   {RAMWAY_DTYPE_FLOAT8_E4M3, 8},  {RAMWAY_DTYPE_FLOAT8_E4M3B11FNUZ, 8},
    {RAMWAY_DTYPE_FLOAT8_E4M3FN, 8}, {RAMWAY_DTYPE_FLOAT8_E4M3FNUZ, 8}, {RAMWAY_DTYPE_FLOAT8_E5M2, 8},
    {RAMWAY_DTYPE_FLOAT8_E5M2FNUZ, 8}, {RAMWAY_DTYPE_FLOAT8_E8M0FNU, 8},
};
enum { TYPES = sizeof types / sizeof types[0], LONGEST = 257 * 16 };

static int digit(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

void tensor(struct ends *ends, struct line *line) {
    int64_t type = number(line, "type", 0);
    uint64_t tag = (uint64_t)number(line, "tag", 0), shape[RAMWAY_NDIM_MAX];
    const char *dims = text(line, "shape", ""), *data = text(line, "data", "");
    bool in_place = yes(line, "reserve");
    uint8_t bytes[LONGEST];
    size_t ndim = 0, nbytes = strlen(data) / 2, room, offset = 0;
    void *slot;
    ramway_status status;
    end_of(line);
    if (type >= TYPES || nbytes > LONGEST) refuse(line->word, "such a tensor");
    for (; *dims != 0; ndim++) {
        char *rest;
        shape[ndim] = strtoull(dims, &rest, 10);
        dims = *rest == 'x' ? rest + 1 : rest;
    }
    for (size_t i = 0; i < nbytes; i++) bytes[i] = (uint8_t)(digit(data[2 * i]) << 4 | digit(data[2 * i + 1]));
    if (in_place) {
        status = ramway_reserve_tensor(ends->sender, types[type], shape, ndim, OPEN_TIMEOUT_NS, &slot, &room);
        if (status == RAMWAY_OK) {
            if (room != nbytes) refuse(line->word, "the slot's length");
            offset = (uintptr_t)slot % 64;
            memcpy(slot, bytes, nbytes);
            status = ramway_commit_tensor(ends->sender, tag);
        }
    } else {
        status = ramway_send_tensor(ends->sender, types[type], shape, ndim, tag, bytes, nbytes, OPEN_TIMEOUT_NS);
    }
    if (status == RAMWAY_OK) say("sent offset=%zu", offset);
    else end(status, "%s", "");
}

bool say_tensor(const ramway_message *message) {
    ramway_tensor t;
    size_t type = 0;
    ramway_status status = ramway_message_tensor(message, &t);
    if (status == RAMWAY_INVALID_ARGUMENT) return false;
    must(status);
    while (type < TYPES && (types[type].code != t.dtype.code || types[type].bits != t.dtype.bits)) type++;
    printf("tensor type=%zu shape=", type);
    for (size_t i = 0; i < t.ndim; i++) printf("%s%llu", i == 0 ? "" : "x", (unsigned long long)t.shape[i]);
    printf(" tag=%llu offset=%zu data=", (unsigned long long)message->tag, (size_t)((uintptr_t)t.data % 64));
    for (size_t i = 0; i < t.nbytes; i++) printf("%02x", ((const uint8_t *)t.data)[i]);
    say("%s", "");
    return true;
}
