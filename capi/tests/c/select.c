/* Waiting for many sources at once: within one process, and with others that are killed. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "ramway_inline.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define LONG (60000 * MS)
enum { MOST = 160 };

static ramway_select *sel;
static ramway_source sources[MOST];
static size_t ready[MOST], n;

static void wait_for(size_t count) { CHECK_OK(ramway_select_wait(sel, sources, count, LONG, ready, &n)); }

static void nothing_of(size_t count) {
    CHECK_STATUS(ramway_select_wait(sel, sources, count, RAMWAY_TRY, ready, &n), RAMWAY_EMPTY);
    CHECK(n == 0);
}

/* Exactly this one is ready. */
static void only(size_t count, size_t index) {
    wait_for(count);
    CHECK(n == 1 && ready[0] == index);
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- what is ready, in which order ---- */

static ramway_sender *tx[MOST];
static ramway_receiver *rx[MOST];

static void rings(size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        CHECK_OK(ramway_ring_pair(4096, &tx[i], &rx[i]));
        sources[i] = ramway_source_receiver(rx[i]);
    }
}

static void close_rings(size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        CHECK_OK(ramway_receiver_close(rx[i]));
        CHECK_OK(ramway_sender_close(tx[i]));
    }
}

static void take(ramway_receiver *receiver) {
    ramway_message m;
    CHECK_OK(ramway_recv(receiver, RAMWAY_TRY, &m));
    CHECK_OK(ramway_release(receiver));
}

/* By futex_waitv, and by an io_uring. */
static void rings_that_are_ready(size_t count) {
    int64_t begin;
    size_t i;
    rings(count);
    nothing_of(count);
    begin = now_ms();
    CHECK_STATUS(ramway_select_wait(sel, sources, count, 20 * MS, ready, &n), RAMWAY_TIMED_OUT);
    CHECK(n == 0 && now_ms() - begin >= 19);
    for (i = 0; i < count; i++) {
        size_t at = i * 7 % count;
        CHECK_OK(ramway_send(tx[at], 1, 0, "x", 1, RAMWAY_TRY));
        only(count, at);
        take(rx[at]);
    }
    nothing_of(count);
    close_rings(count);
}

static void the_one_served_last_is_last(void) {
    size_t turn, k, first[3] = {0, 0, 0};
    rings(3);
    for (k = 0; k < 3; k++) {
        CHECK_OK(ramway_send(tx[k], 1, 0, "x", 1, RAMWAY_TRY));
    }
    for (turn = 0; turn < 300; turn++) {
        size_t before = ready[0];
        wait_for(3);
        CHECK(n == 3 && (turn == 0 || (ready[2] == before && ready[0] != before)));
        first[ready[0]]++;
    }
    CHECK(first[0] == 100 && first[1] == 100 && first[2] == 100);
    close_rings(3);
}

static void an_end_is_seen_beside_a_source_that_is_always_ready(void) {
    int turn, seen = 0;
    ramway_message m;
    rings(2);
    CHECK_OK(ramway_send(tx[0], 1, 0, "never taken", 11, RAMWAY_TRY));
    wait_for(2);
    CHECK_OK(ramway_sender_close(tx[1]));
    for (turn = 0; turn < 16; turn++) {
        wait_for(2);
        seen += n == 2;
    }
    CHECK(seen > 0);
    CHECK_STATUS(ramway_recv(rx[1], RAMWAY_TRY, &m), RAMWAY_CLOSED);
    CHECK_OK(ramway_receiver_close(rx[1]));
    close_rings(1);
}

/* ---- every kind ---- */

static void every_kind(void) {
    ramway_topic_options topic = RAMWAY_TOPIC_OPTIONS_INIT;
    ramway_publisher *pub;
    ramway_subscriber *sub, *slow;
    ramway_topic_message tm;
    ramway_region *region, *writer;
    ramway_listener *listener;
    ramway_bus *bus;
    pid_t pid;
    int fds[2], status;
    char byte = 'x';
    enum { RECEIVER, SUBSCRIBER, ROOM, PUBLISHERS_ROOM, REGION, LISTENER, PIPE, KINDS };
    topic.capacity = 4096;
    rings(2);
    CHECK_OK(ramway_publisher_create("select-topic", &topic, &pub));
    CHECK_OK(ramway_subscriber_open("select-topic", NULL, &slow));
    topic.policy = RAMWAY_LOSSY;
    topic.capacity = 0;
    CHECK_OK(ramway_subscriber_open("select-topic", &topic, &sub));
    CHECK_OK(ramway_region_create("select-region", 8, NULL, &writer));
    CHECK_OK(ramway_region_open("select-region", NULL, &region));
    CHECK_OK(ramway_listener_bind("select-listener", NULL, &listener));
    CHECK(pipe(fds) == 0);
    while (ramway_send(tx[1], 1, 0, "full", 4, RAMWAY_TRY) == RAMWAY_OK) {
    }
    while (ramway_send(pub, 1, 0, "full", 4, RAMWAY_TRY) == RAMWAY_OK) {
    }
    while (ramway_subscriber_recv(sub, RAMWAY_TRY, &tm) == RAMWAY_OK) {
        CHECK_OK(ramway_release(sub));
    }
    sources[RECEIVER] = ramway_source_receiver(rx[0]);
    sources[SUBSCRIBER] = ramway_source_receiver(sub);
    sources[ROOM] = ramway_source_room(tx[1], 100);
    sources[PUBLISHERS_ROOM] = ramway_source_room(pub, 100);
    sources[REGION] = ramway_source_region(region);
    sources[LISTENER] = ramway_source_listener(listener);
    sources[PIPE] = ramway_source_fd(fds[0]);
    nothing_of(KINDS);
    CHECK_STATUS(ramway_select_wait(sel, sources, KINDS, 20 * MS, ready, &n), RAMWAY_TIMED_OUT);

    CHECK_OK(ramway_send(tx[0], 1, 0, "x", 1, RAMWAY_TRY));
    only(KINDS, RECEIVER);
    take(rx[0]);
    take(rx[1]);
    /* One message of 4 bytes is no room for 100. */
    nothing_of(KINDS);
    while (ramway_sender_len(tx[1]) != 0) {
        take(rx[1]);
    }
    only(KINDS, ROOM);
    while (ramway_send(tx[1], 1, 0, "full", 4, RAMWAY_TRY) == RAMWAY_OK) {
    }
    nothing_of(KINDS);
    CHECK_OK(ramway_receiver_close(slow));
    only(KINDS, PUBLISHERS_ROOM);
    CHECK_OK(ramway_send(pub, 1, 0, "x", 1, RAMWAY_TRY));
    wait_for(KINDS);
    CHECK(n == 2 && ready[0] + ready[1] == SUBSCRIBER + PUBLISHERS_ROOM);
    take(sub);
    /* A publisher without a reliable subscriber always has room: from here on it is left out. */
    sources[PUBLISHERS_ROOM] = ramway_source_fd(fds[0]);
    nothing_of(KINDS);
    CHECK_OK(ramway_region_notify(writer));
    only(KINDS, REGION);
    CHECK_OK(ramway_region_wait(region, RAMWAY_TRY));
    nothing_of(KINDS);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_OK(ramway_bus_connect("select-listener", NULL, &bus));
        CHECK_OK(ramway_bus_close(bus));
        _exit(0);
    }
    do {
        only(KINDS, LISTENER);
        status = (int)ramway_listener_accept(listener, RAMWAY_TRY, &bus);
        CHECK(status == RAMWAY_OK || status == RAMWAY_EMPTY);
    } while (status != RAMWAY_OK);
    CHECK_OK(ramway_bus_close(bus));
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(write(fds[1], &byte, 1) == 1);
    wait_for(KINDS);
    CHECK(n == 2 && ready[0] + ready[1] == PIPE + PUBLISHERS_ROOM);
    CHECK(read(fds[0], &byte, 1) == 1);
    nothing_of(KINDS);
    /* A hang-up, and a number that is no descriptor any more, are worth a call: it says what is wrong. */
    close(fds[1]);
    wait_for(KINDS);
    CHECK(n == 2 && read(fds[0], &byte, 1) == 0);
    close(fds[0]);
    wait_for(KINDS);
    CHECK(n == 2 && read(fds[0], &byte, 1) == -1);

    CHECK_OK(ramway_listener_close(listener));
    CHECK_OK(ramway_region_close(region));
    CHECK_OK(ramway_region_close(writer));
    CHECK_OK(ramway_receiver_close(sub));
    CHECK_OK(ramway_sender_close(pub));
    close_rings(2);
}

/* ---- processes ---- */

/* Sends by the rings of this process's parent, in a given order, and waits for each answer. */
static void answers(const char *prefix, size_t count, int rounds) {
    ramway_sender *to[MOST];
    ramway_receiver *back;
    ramway_options o = RAMWAY_OPTIONS_INIT;
    ramway_message m;
    char name[64];
    size_t i;
    int round;
    o.timeout_ns = LONG;
    for (i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s-%zu", prefix, i);
        CHECK_OK(ramway_sender_open(name, &o, &to[i]));
    }
    CHECK_OK(ramway_receiver_open("select-back", &o, &back));
    for (round = 0; round < rounds; round++) {
        CHECK_OK(ramway_send(to[(size_t)round * 7 % count], 1, (uint64_t)round, "x", 1, LONG));
        CHECK_OK(ramway_recv(back, LONG, &m));
        CHECK_OK(ramway_release(back));
    }
    /* Killed by the parent, with all of them open. */
    for (;;) {
        pause();
    }
}

static void another_process_sends_and_dies(size_t count, uint32_t policy, int rounds) {
    ramway_sender *back;
    ramway_message m;
    char name[64];
    size_t i, dead = 0;
    int round, slow = 0;
    pid_t pid;
    for (i = 0; i < count; i++) {
        snprintf(name, sizeof name, "select-%zu", i);
        CHECK_OK(ramway_receiver_create(name, NULL, &rx[i]));
        sources[i] = ramway_source_receiver(rx[i]);
    }
    CHECK_OK(ramway_sender_create("select-back", NULL, &back));
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(120);
        answers("select", count, rounds);
    }
    CHECK_OK(ramway_select_set_wait_policy(sel, policy));
    for (round = 0; round < rounds; round++) {
        int64_t begin = now_ms();
        wait_for(count);
        slow += now_ms() - begin >= 90 && round > 0;
        CHECK(n == 1 && ready[0] == (size_t)round * 7 % count);
        CHECK_OK(ramway_recv(rx[ready[0]], RAMWAY_TRY, &m));
        CHECK(m.tag == (uint64_t)round);
        CHECK_OK(ramway_release(rx[ready[0]]));
        CHECK_OK(ramway_send(back, 1, 0, NULL, 0, LONG));
    }
    /* A wake-up that is lost costs a round of 100 ms; a busy machine may make a few late. */
    CHECK(slow <= rounds / 50);
    nothing_of(count);
    while (ramway_sender_len(back) != 0) {
        usleep(1000);
    }
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    /* Every one says so, though not all in one answer. */
    while (dead < count) {
        wait_for(count);
        for (i = 0; i < n; i++) {
            CHECK_STATUS(ramway_recv(rx[ready[i]], RAMWAY_TRY, &m), RAMWAY_PEER_DEAD);
        }
        dead = n > dead ? n : dead;
    }
    for (i = 0; i < count; i++) {
        CHECK_OK(ramway_receiver_close(rx[i]));
    }
    CHECK_OK(ramway_sender_close(back));
    /* It holds an end that nobody has seen. */
    CHECK_OK(ramway_unlink("select-back"));
    CHECK_OK(ramway_select_set_wait_policy(sel, RAMWAY_WAIT_DEFAULT));
}

/* ---- other threads ---- */

static atomic_int state;

static void *waits(void *unused) {
    size_t r[MOST], count;
    ramway_status status;
    (void)unused;
    atomic_store(&state, 1);
    /* The other thread calls in between, to see when this one is inside. */
    while ((status = ramway_select_wait(sel, sources, 2, LONG, r, &count)) == RAMWAY_BUSY) {
    }
    CHECK_STATUS(status, RAMWAY_INTERRUPTED);
    CHECK(count == 0);
    atomic_store(&state, 2);
    return NULL;
}

static void on_alarm(int unused) {
    (void)unused;
    (void)ramway_select_wake(sel);
}

static void a_signal(void) {
    struct itimerval soon;
    memset(&soon, 0, sizeof soon);
    soon.it_value.tv_usec = 20000;
    rings(2);
    signal(SIGALRM, on_alarm);
    CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    CHECK_STATUS(ramway_select_wait(sel, sources, 2, LONG, ready, &n), RAMWAY_INTERRUPTED);
    signal(SIGALRM, SIG_DFL);
    close_rings(2);
}

static void a_second_thread(void) {
    ramway_select *other;
    pthread_t thread;
    ramway_status status;
    int pid, code;
    /* Before a wait it is for the next one; and what is ready counts more. */
    rings(2);
    CHECK_OK(ramway_select_wake(sel));
    CHECK_OK(ramway_select_wake(sel));
    nothing_of(2);
    CHECK_STATUS(ramway_select_wait(sel, sources, 2, LONG, ready, &n), RAMWAY_INTERRUPTED);
    CHECK_STATUS(ramway_select_wait(sel, sources, 2, MS, ready, &n), RAMWAY_TIMED_OUT);

    CHECK_OK(ramway_select_new(&other));
    atomic_store(&state, 0);
    CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
    /* Until it is inside. */
    while ((status = ramway_select_set_wait_policy(sel, RAMWAY_WAIT_DEFAULT)) == RAMWAY_OK) {
        usleep(1000);
    }
    CHECK_STATUS(status, RAMWAY_BUSY);
    CHECK(strstr(ramway_last_error(), "the select is in use") != NULL);
    CHECK_STATUS(ramway_select_wait(sel, sources, 2, RAMWAY_TRY, ready, &n), RAMWAY_BUSY);
    CHECK_STATUS(ramway_select_free(sel), RAMWAY_BUSY);
    usleep(20000);
    /* The same receivers in another select. */
    CHECK_STATUS(ramway_select_wait(other, sources, 2, RAMWAY_TRY, ready, &n), RAMWAY_BUSY);
    CHECK(strstr(ramway_last_error(), "source 0: ") != NULL && strstr(ramway_last_error(), "another thread") != NULL);
    /* A fork's child has neither, and can free both. */
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_STATUS(ramway_select_wait(sel, sources, 2, RAMWAY_TRY, ready, &n), RAMWAY_DETACHED);
        CHECK_OK(ramway_select_free(sel));
        sources[0] = ramway_source_fd(0);
        CHECK_STATUS(ramway_select_wait(other, sources, 1, RAMWAY_TRY, ready, &n), RAMWAY_DETACHED);
        CHECK_OK(ramway_select_free(other));
        _exit(0);
    }
    CHECK(waitpid(pid, &code, 0) == pid && code == 0);
    CHECK(atomic_load(&state) == 1);
    CHECK_OK(ramway_select_wake(sel));
    CHECK(pthread_join(thread, NULL) == 0 && atomic_load(&state) == 2);
    CHECK_STATUS(ramway_select_wait(other, sources, 2, RAMWAY_TRY, ready, &n), RAMWAY_EMPTY);
    CHECK_OK(ramway_select_free(other));
    close_rings(2);
}

/* ---- misuse ---- */

static void refused(size_t count, ramway_status status, const char *why) {
    n = 7;
    CHECK_STATUS(ramway_select_wait(sel, sources, count, RAMWAY_TRY, ready, &n), status);
    CHECK(n == 0);
    if (strstr(ramway_last_error(), why) == NULL) {
        fprintf(stderr, "'%s' is not in '%s'\n", why, ramway_last_error());
        exit(1);
    }
}

static void what_cannot_be_waited_for(void) {
    const ramway_source good[2] = {ramway_source_fd(0), ramway_source_fd(0)};
    ramway_message m;
    void *slot;
    rings(2);
    CHECK_STATUS(ramway_select_wait(sel, sources, 0, RAMWAY_FOREVER, ready, &n), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_select_wait(sel, NULL, 0, MS, NULL, &n), RAMWAY_TIMED_OUT);
    CHECK_STATUS(ramway_select_wait(sel, NULL, 0, RAMWAY_TRY, NULL, &n), RAMWAY_EMPTY);
    CHECK_STATUS(ramway_select_wait(sel, sources, 2, -5, ready, &n), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_select_set_wait_policy(sel, 99), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_select_wait(sel, sources, SIZE_MAX, RAMWAY_TRY, ready, &n), RAMWAY_INVALID_ARGUMENT);
    sources[1] = ramway_source_receiver(NULL);
    refused(2, RAMWAY_INVALID_ARGUMENT, "source 1: the receiver is a null pointer");
    sources[1] = ramway_source_room(NULL, 1);
    refused(2, RAMWAY_INVALID_ARGUMENT, "source 1: the sender is a null pointer");
    sources[1] = ramway_source_region(NULL);
    refused(2, RAMWAY_INVALID_ARGUMENT, "source 1: the region is a null pointer");
    sources[1] = ramway_source_listener(NULL);
    refused(2, RAMWAY_INVALID_ARGUMENT, "source 1: the listener is a null pointer");
    sources[1] = ramway_source_fd(-1);
    refused(2, RAMWAY_INVALID_ARGUMENT, "source 1: a descriptor of -1");
    memset(&sources[1], 0, sizeof *sources);
    refused(2, RAMWAY_INVALID_ARGUMENT, "source 1: a kind of 0");
    sources[1].kind = 77;
    sources[1].handle = rx[1];
    refused(2, RAMWAY_INVALID_ARGUMENT, "source 1: a kind of 77");
    sources[1] = sources[0];
    refused(2, RAMWAY_BUSY, "source 1: this handle is waited for already: it is named twice");
    sources[1] = ramway_source_receiver(rx[1]);
    nothing_of(2);

    CHECK_OK(ramway_send(tx[0], 1, 0, "held", 4, RAMWAY_TRY));
    CHECK_OK(ramway_send(tx[0], 1, 0, "next", 4, RAMWAY_TRY));
    CHECK_OK(ramway_inline_recv(rx[0], RAMWAY_TRY, &m));
    refused(2, RAMWAY_BUSY, "source 0: a message of this receiver is not released");
    CHECK(memcmp(m.data, "held", 4) == 0);
    CHECK_OK(ramway_inline_release(rx[0]));
    only(2, 0);
    take(rx[0]);
    nothing_of(2);
    sources[0] = ramway_source_room(tx[0], 8);
    CHECK_OK(ramway_reserve(tx[0], 8, RAMWAY_TRY, &slot));
    refused(2, RAMWAY_BUSY, "source 0: a slot of this sender is open");
    memcpy(slot, "12345678", 8);
    CHECK_OK(ramway_commit(tx[0], 1, 0, 8));
    only(2, 0);
    /* What can never fit is worth a call, which says so. */
    sources[0] = ramway_source_room(tx[0], 1 << 20);
    only(2, 0);
    CHECK(ramway_receiver_readiness_fd(rx[1]) >= 0);
    sources[0] = good[0];
    /* The first calls after one that found something only peek. */
    CHECK_OK(ramway_select_free(sel));
    CHECK_OK(ramway_select_new(&sel));
    refused(2, RAMWAY_BUSY, "has a readiness descriptor");
    close_rings(2);
}

/* Nothing is kept of a source: it may be closed, and another may take its index, also where waits stay armed. */
static void sources_that_go(void) {
    enum { COUNT = 40 };
    int turn;
    rings(COUNT);
    for (turn = 0; turn < 30; turn++) {
        size_t at = (size_t)turn % COUNT;
        CHECK_STATUS(ramway_select_wait(sel, sources, COUNT, MS, ready, &n), RAMWAY_TIMED_OUT);
        CHECK_OK(ramway_receiver_close(rx[at]));
        CHECK_OK(ramway_sender_close(tx[at]));
        CHECK_OK(ramway_ring_pair(4096, &tx[at], &rx[at]));
        sources[at] = ramway_source_receiver(rx[at]);
        CHECK_OK(ramway_send(tx[at], 1, 0, "x", 1, RAMWAY_TRY));
        only(COUNT, at);
        take(rx[at]);
        /* Fewer than before, and as many again. */
        nothing_of(3);
    }
    close_rings(COUNT);
}

int main(void) {
    static const uint32_t policies[] = {RAMWAY_WAIT_HYBRID, RAMWAY_WAIT_BLOCK};
    size_t i;
    CHECK_OK(ramway_select_new(&sel));
    rings_that_are_ready(1);
    rings_that_are_ready(3);
    rings_that_are_ready(40);
    rings_that_are_ready(MOST);
    the_one_served_last_is_last();
    an_end_is_seen_beside_a_source_that_is_always_ready();
    every_kind();
    for (i = 0; i < 2; i++) {
        another_process_sends_and_dies(3, policies[i], 3000);
        another_process_sends_and_dies(40, policies[i], 1000);
    }
    a_signal();
    a_second_thread();
    what_cannot_be_waited_for();
    sources_that_go();
    CHECK_OK(ramway_select_free(sel));
    return 0;
}
