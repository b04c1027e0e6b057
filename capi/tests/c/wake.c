/* A receiver that sleeps for every message (RAMWAY_WAIT_BLOCK), and a sender that sends the next one right when it is
 * about to, over the inline functions, with and without membarrier on either side. A wake-up that is lost costs the
 * sleeper its round of 100 ms. A busy machine may make one late, so a setting has three tries.
 *
 * This finds a look at `wait` that is missing or far too early. A single barrier that is missing opens a window of
 * nanoseconds, which no such test finds reliably: that is what the models in core/models are for. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "ramway_inline.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 20000, LATE_MS = 95 };

static uint32_t state = 2463534242u;
static void pause_a_little(void) {
    volatile uint32_t n;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    for (n = state % 512; n != 0; n--) {
    }
}

static void receive(uint32_t flags) {
    ramway_options o = RAMWAY_OPTIONS_INIT;
    ramway_receiver *r;
    ramway_message m;
    ramway_status status;
    uint64_t next = 1;
    o.flags = flags;
    o.wait_policy = RAMWAY_WAIT_BLOCK;
    CHECK_OK(ramway_receiver_open_or_create("wake", &o, &r));
    while ((status = ramway_inline_recv(r, RAMWAY_FOREVER, &m)) == RAMWAY_OK) {
        CHECK(m.tag == next++);
        CHECK_OK(ramway_inline_release(r));
    }
    CHECK_STATUS(status, RAMWAY_CLOSED);
    CHECK_OK(ramway_receiver_close(r));
    exit(0);
}

static int late_messages(uint32_t mine, uint32_t theirs) {
    ramway_options o = RAMWAY_OPTIONS_INIT;
    ramway_sender *s;
    int status, late = 0;
    uint64_t i;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        receive(theirs);
    }
    o.flags = mine;
    CHECK_OK(ramway_sender_open_or_create("wake", &o, &s));
    for (i = 1; i <= MESSAGES; i++) {
        struct timespec from, to;
        int64_t ms;
        pause_a_little();
        clock_gettime(CLOCK_MONOTONIC, &from);
        CHECK_OK(ramway_inline_send(s, 0, i, NULL, 0, RAMWAY_FOREVER));
        /* Released: from here on the receiver looks for the next one, and goes to sleep. */
        while (ramway_sender_len(s) != 0) {
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        ms = (int64_t)(to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
        /* The first one waits for the other process to begin. */
        late += i > 1 && ms >= LATE_MS;
    }
    CHECK_OK(ramway_sender_close(s));
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return late;
}

int main(void) {
    int setting;
    for (setting = 0; setting < 4; setting++) {
        uint32_t mine = setting & 1 ? RAMWAY_NO_MEMBARRIER : 0, theirs = setting & 2 ? RAMWAY_NO_MEMBARRIER : 0;
        int late = 1, tries;
        for (tries = 0; tries < 3 && late != 0; tries++) {
            late = late_messages(mine, theirs);
        }
        if (late != 0) {
            fprintf(stderr, "setting %d: %d of %d messages took %d ms or more, three times\n", setting, late, MESSAGES,
                    LATE_MS);
            return 1;
        }
    }
    return 0;
}
