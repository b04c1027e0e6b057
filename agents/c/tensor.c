/* tensors. */
#include "program.h"

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

static const struct {
    size_t ndim;
    uint64_t dims[RAMWAY_NDIM_MAX];
} shapes[8] = {
    {0, {0}},
    {1, {0}},
    {1, {1}},
    {2, {2, 3}},
    {3, {5, 0, 7}},
    {4, {3, 1, 5, 2}},
    {1, {257}},
    {32, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}},
};

struct expected {
    ramway_dtype dtype;
    const uint64_t *shape;
    size_t ndim, nbytes;
    uint64_t tag;
    uint8_t data[LONGEST];
};

/* Tensor number `seq`; false where that is an ordinary message. */
static bool expect(struct expected *out, uint64_t seq) {
    if (seq % 24 >= TYPES) return false;
    const size_t at = seq / 24 % 8;
    out->dtype = types[seq % 24];
    out->shape = shapes[at].dims;
    out->ndim = shapes[at].ndim;
    out->nbytes = out->dtype.bits / 8;
    for (size_t i = 0; i < out->ndim; i++) out->nbytes *= (size_t)out->shape[i];
    const uint64_t values = out->dtype.code == RAMWAY_DTYPE_BOOL ? 2 : 256;
    for (size_t i = 0; i < out->nbytes; i++) out->data[i] = (uint8_t)((seq + i) % values);
    out->tag = (uint64_t)crc32(out->data, out->nbytes) << 32 | (seq & 0xFFFFFFFFu);
    return true;
}

static void bad(uint64_t seq, const char *what) __attribute__((noreturn));
static void bad(uint64_t seq, const char *what) {
    say("bad seq=%llu text=%s", (unsigned long long)seq, what);
    exit(1);
}

static void send(ramway_sender *tx, const struct args *args, const struct messages *all, uint64_t seq) {
    struct expected e;
    void *slot;
    size_t nbytes;
    if (!expect(&e, seq)) {
        struct made m = make(all, seq);
        must(ramway_send(tx, m.type_id, m.tag, m.data, m.len, limit(args)));
        return;
    }
    if (args->how != HOW_RESERVE) {
        must(ramway_send_tensor(tx, e.dtype, e.shape, e.ndim, e.tag, e.data, e.nbytes, limit(args)));
        return;
    }
    must(ramway_reserve_tensor(tx, e.dtype, e.shape, e.ndim, limit(args), &slot, &nbytes));
    if (nbytes != e.nbytes) bad(seq, "the slot's length");
    if ((uintptr_t)slot % 64 != 0) bad(seq, "the slot does not begin on a multiple of 64");
    memcpy(slot, e.data, nbytes);
    must(ramway_commit_tensor(tx, e.tag));
}

static void check_tensor(const struct messages *all, uint64_t seq, const ramway_message *m) {
    struct expected e;
    ramway_tensor t;
    ramway_status status = ramway_message_tensor(m, &t);
    if (!expect(&e, seq)) {
        if (status != RAMWAY_INVALID_ARGUMENT) bad(seq, "an ordinary message is a tensor");
        check(all, seq, m);
        return;
    }
    must(status);
    if (t.dtype.code != e.dtype.code || t.dtype.bits != e.dtype.bits) bad(seq, "the element type");
    if (t.ndim != e.ndim || memcmp(t.shape, e.shape, 8 * e.ndim) != 0) bad(seq, "the shape");
    if (t.nbytes != e.nbytes || memcmp(t.data, e.data, e.nbytes) != 0) bad(seq, "the bytes");
    if (m->tag != e.tag) bad(seq, "the tag");
    if ((uintptr_t)t.data % 64 != 0) bad(seq, "the elements do not begin on a multiple of 64");
}

void tensors(const struct args *args) {
    const struct messages all = messages_new(32, 32);
    if (args->producer) {
        struct ends ends = open_ends(args, args->ring, NULL);
        attached_sender(ends.sender);
        for (int64_t seq = 0; seq < args->count; seq++) send(ends.sender, args, &all, (uint64_t)seq);
        say("sent count=%lld next=%lld", (long long)args->count, (long long)args->count);
        close_ends(&ends);
        return;
    }
    struct ends ends = open_ends(args, NULL, args->ring);
    attached_receiver(ends.receiver);
    uint64_t received = 0;
    ramway_message m;
    ramway_status status;
    while ((status = ramway_inline_recv(ends.receiver, limit(args), &m)) == RAMWAY_OK) {
        check_tensor(&all, received++, &m);
        must(ramway_inline_release(ends.receiver));
    }
    say("end name=%s number=%d received=%llu", ramway_status_name(status), (int)status, (unsigned long long)received);
    close_ends(&ends);
}
