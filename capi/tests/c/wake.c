/* A receiver that sleeps for every message (RAMWAY_WAIT_BLOCK), and a sender that sends the next one right when it is
 * about to, over the inline functions, with and without membarrier on either side. A wake-up that is lost leaves the
 * receiver asleep, for its round of 100 ms, although there is a message. One that is awake and waits for a processor is
 * late too, on a busy machine, but does not sleep: so the kernel is asked which it is.
 *
 * This finds a look at `wait` that is missing or far too early. A single barrier that is missing opens a window of
 * nanoseconds, which no such test finds reliably: that is what the models in core/models are for. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "ramway_inline.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 20000, LATE_MS = 10 };

static uint32_t state = 2463534242u;
static void pause_a_little(void) {
    volatile uint32_t n;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    for (n = state % 512; n != 0; n--) {
    }
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whether a process of one thread sleeps, and is neither running nor waits to run, stopped or traced. */
static int sleeps(pid_t pid) {
    char path[64], text[512];
    const char *end;
    ssize_t len;
    int fd;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    len = read(fd, text, sizeof text - 1);
    CHECK(len > 0 && close(fd) == 0);
    text[len] = 0;
    /* The state stands behind the name, which may hold anything. */
    end = strrchr(text, ')');
    CHECK(end != NULL && end[1] == ' ');
    return end[2] == 'S';
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

/* How many messages the receiver slept over; three are enough. */
static int slept_over(uint32_t mine, uint32_t theirs) {
    ramway_options o = RAMWAY_OPTIONS_INIT;
    ramway_sender *s;
    int status, count = 0;
    uint64_t i;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        receive(theirs);
    }
    o.flags = mine;
    CHECK_OK(ramway_sender_open_or_create("wake", &o, &s));
    CHECK_OK(ramway_sender_wait_for_peer(s, RAMWAY_FOREVER, NULL));
    for (i = 1; i <= MESSAGES && count < 3; i++) {
        int64_t look;
        int slept = 0;
        pause_a_little();
        CHECK_OK(ramway_inline_send(s, 0, i, NULL, 0, RAMWAY_FOREVER));
        look = now_ms() + LATE_MS;
        /* Released: from here on the receiver looks for the next one, and goes to sleep. */
        while (ramway_sender_len(s) != 0) {
            if (now_ms() >= look) {
                /* The first of two may have been the moment before it looked. */
                slept += sleeps(child) && ramway_sender_len(s) != 0;
                look = now_ms() + LATE_MS;
            }
        }
        count += slept > 1;
    }
    CHECK_OK(ramway_sender_close(s));
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return count;
}

int main(void) {
    int setting;
    for (setting = 0; setting < 4; setting++) {
        uint32_t mine = setting & 1 ? RAMWAY_NO_MEMBARRIER : 0, theirs = setting & 2 ? RAMWAY_NO_MEMBARRIER : 0;
        int count = slept_over(mine, theirs);
        if (count != 0) {
            fprintf(stderr, "setting %d: the receiver slept over %d messages\n", setting, count);
            return 1;
        }
    }
    return 0;
}
