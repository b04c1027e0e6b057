/* Tensors within one process: every element type, in place and by copy, on rings of several alignments. */
#include "check.h"
#include "ramway_inline.h"

#include <unistd.h>

static const ramway_dtype types[] = {
    {RAMWAY_DTYPE_INT, 8},           {RAMWAY_DTYPE_INT, 16},          {RAMWAY_DTYPE_INT, 32},
    {RAMWAY_DTYPE_INT, 64},          {RAMWAY_DTYPE_UINT, 8},          {RAMWAY_DTYPE_UINT, 16},
    {RAMWAY_DTYPE_UINT, 32},         {RAMWAY_DTYPE_UINT, 64},         {RAMWAY_DTYPE_FLOAT, 16},
    {RAMWAY_DTYPE_FLOAT, 32},        {RAMWAY_DTYPE_FLOAT, 64},        {RAMWAY_DTYPE_BFLOAT, 16},
    {RAMWAY_DTYPE_COMPLEX, 64},      {RAMWAY_DTYPE_COMPLEX, 128},     {RAMWAY_DTYPE_BOOL, 8},
    {RAMWAY_DTYPE_FLOAT8_E3M4, 8},   {RAMWAY_DTYPE_FLOAT8_E4M3, 8},   {RAMWAY_DTYPE_FLOAT8_E4M3B11FNUZ, 8},
    {RAMWAY_DTYPE_FLOAT8_E4M3FN, 8}, {RAMWAY_DTYPE_FLOAT8_E4M3FNUZ, 8}, {RAMWAY_DTYPE_FLOAT8_E5M2, 8},
    {RAMWAY_DTYPE_FLOAT8_E5M2FNUZ, 8}, {RAMWAY_DTYPE_FLOAT8_E8M0FNU, 8},
};
enum { TYPES = sizeof types / sizeof types[0] };

static void there_and_back(uint32_t align) {
    ramway_options options = RAMWAY_OPTIONS_INIT;
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message end;
    unsigned char data[15 * 16];
    size_t i, round;

    options.capacity = 4096;
    options.align = align;
    CHECK_OK(ramway_sender_create("c-tensor", &options, &s));
    CHECK_OK(ramway_receiver_open("c-tensor", NULL, &r));
    for (i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)(i * 7);
    }
    for (round = 0; round < 8; round++) {
        for (i = 0; i < TYPES; i++) {
            const uint64_t shape[2] = {3, 5};
            const size_t nbytes = 15 * (size_t)types[i].bits / 8;
            ramway_message m;
            ramway_tensor t;
            void *slot;
            size_t room = 0;

            if (round % 2 == 0) {
                CHECK_OK(ramway_send_tensor(s, types[i], shape, 2, i, data, nbytes, RAMWAY_TRY));
            } else {
                CHECK_OK(ramway_reserve_tensor(s, types[i], shape, 2, RAMWAY_TRY, &slot, &room));
                CHECK(room == nbytes && ((uintptr_t)slot & 63) == 0);
                memcpy(slot, data, nbytes);
                CHECK_OK(ramway_commit_tensor(s, i));
            }
            CHECK_OK(ramway_recv(r, RAMWAY_TRY, &m));
            CHECK(m.type_id == RAMWAY_TYPE_ID_TENSOR && m.tag == i);
            CHECK_OK(ramway_message_tensor(&m, &t));
            CHECK(t.dtype.code == types[i].code && t.dtype.bits == types[i].bits);
            CHECK(t.ndim == 2 && t.shape[0] == 3 && t.shape[1] == 5 && t.shape[2] == 0);
            CHECK(t.nbytes == nbytes && memcmp(t.data, data, nbytes) == 0 && ((uintptr_t)t.data & 63) == 0);
            CHECK_OK(ramway_release(r));
        }
        /* Moves on, so that the next round's payloads begin elsewhere. */
        CHECK_OK(ramway_send(s, 0, 0, data, 16 * round, RAMWAY_TRY));
        CHECK_OK(ramway_recv_into(r, RAMWAY_TRY, data, sizeof data, NULL));
    }
    CHECK_OK(ramway_sender_close(s));
    CHECK_STATUS(ramway_recv(r, RAMWAY_TRY, &end), RAMWAY_CLOSED);
    CHECK_OK(ramway_receiver_close(r));
}

static void refused(void) {
    const ramway_dtype f32 = {RAMWAY_DTYPE_FLOAT, 32}, strange = {RAMWAY_DTYPE_FLOAT, 8};
    const uint64_t huge[3] = {UINT64_C(1) << 32, UINT64_C(1) << 32, 0}, two = 2, many = 4096;
    uint64_t ones[33];
    unsigned char frame[200], bytes[8] = {0};
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message m;
    ramway_tensor t;
    void *slot;
    size_t i;

    for (i = 0; i < 33; i++) {
        ones[i] = 1;
    }
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    CHECK_STATUS(ramway_send_tensor(s, strange, &two, 1, 0, bytes, 2, RAMWAY_TRY), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_send_tensor(s, f32, &two, 1, 0, bytes, 7, RAMWAY_TRY), RAMWAY_INVALID_ARGUMENT);
    CHECK(strcmp(ramway_last_error(), "7 bytes of data, expected 8: float32 of the shape [2]") == 0);
    CHECK_STATUS(ramway_send_tensor(s, f32, ones, 33, 0, bytes, 4, RAMWAY_TRY), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_send_tensor(s, f32, huge, 3, 0, NULL, 0, RAMWAY_TRY), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_reserve_tensor(s, f32, &many, 1, RAMWAY_TRY, &slot, NULL), RAMWAY_TOO_LARGE);
    CHECK(slot == NULL && ramway_sender_len(s) == 0);

    /* No dimension is one element; one slot at a time, of whichever kind. */
    CHECK_OK(ramway_reserve_tensor(s, f32, NULL, 0, RAMWAY_TRY, &slot, NULL));
    memcpy(slot, bytes, 4);
    CHECK_STATUS(ramway_reserve(s, 1, RAMWAY_TRY, &(void *){NULL}), RAMWAY_BUSY);
    CHECK_STATUS(ramway_send_tensor(s, f32, &two, 1, 0, bytes, 8, RAMWAY_TRY), RAMWAY_BUSY);
    CHECK_OK(ramway_commit_tensor_unflushed(s, 5));
    CHECK_STATUS(ramway_commit_tensor(s, 5), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_recv(r, RAMWAY_TRY, &m), RAMWAY_EMPTY);
    CHECK_OK(ramway_flush(s));
    CHECK_OK(ramway_recv(r, RAMWAY_TRY, &m));
    CHECK_OK(ramway_message_tensor(&m, &t));
    CHECK(t.ndim == 0 && t.nbytes == 4 && m.tag == 5);

    /* Whatever is wrong with a frame is said, and the receiver goes on. */
    memcpy(frame, m.data, m.len);
    m.data = frame;
    for (i = 0; i < m.len - 4; i++) {
        frame[i] ^= 0x80;
        CHECK_STATUS(ramway_message_tensor(&m, &t), RAMWAY_INVALID_ARGUMENT);
        CHECK(strncmp(ramway_last_error(), "not a tensor frame: ", 20) == 0);
        frame[i] ^= 0x80;
    }
    for (; m.len > 0; ) {
        m.len--;
        CHECK_STATUS(ramway_message_tensor(&m, &t), RAMWAY_INVALID_ARGUMENT);
    }
    CHECK(t.ndim == 0 && t.nbytes == 4);
    CHECK_OK(ramway_release(r));

    /* A slot that was given up is none, also where the inline functions did it and opened another one. */
    CHECK_OK(ramway_reserve_tensor(s, f32, &two, 1, RAMWAY_TRY, &slot, NULL));
    CHECK_OK(ramway_abort(s));
    CHECK_STATUS(ramway_commit_tensor(s, 0), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(ramway_reserve_tensor(s, f32, &two, 1, RAMWAY_TRY, &slot, NULL));
    CHECK_OK(ramway_inline_abort(s));
    CHECK_OK(ramway_inline_reserve(s, 8, RAMWAY_TRY, &slot));
    CHECK_STATUS(ramway_commit_tensor(s, 0), RAMWAY_INVALID_ARGUMENT);
    memcpy(slot, bytes, 8);
    CHECK_OK(ramway_inline_commit(s, 1, 0, 8));
    CHECK_OK(ramway_recv(r, RAMWAY_TRY, &m));
    CHECK_STATUS(ramway_message_tensor(&m, &t), RAMWAY_INVALID_ARGUMENT);
    CHECK(strcmp(ramway_last_error(), "not a tensor frame: its type id is 0x1, and a tensor's is 0xffff0001") == 0);
    CHECK_OK(ramway_release(r));
    CHECK_STATUS(ramway_recv(r, RAMWAY_TRY, &m), RAMWAY_EMPTY);
    CHECK_OK(ramway_sender_close(s));
    CHECK_STATUS(ramway_recv(r, RAMWAY_TRY, &m), RAMWAY_CLOSED);
    CHECK_OK(ramway_receiver_close(r));
}

int main(void) {
    there_and_back(16);
    there_and_back(64);
    there_and_back(4096);
    refused();
    return 0;
}
