/* Many processes at one end: an inbox with producers, an outbox with workers; some are killed, some are hostile. */
#define _DEFAULT_SOURCE
#include "child.h"
#include "ramway_inline.h"

#include <pthread.h>
#include <stdatomic.h>

#define NAME "many"

static pid_t child(void (*life)(void)) { return forked(life, _exit); }

static ramway_bus *connected(void) {
    ramway_bus *bus;
    CHECK_OK(ramway_bus_connect(NAME, NULL, &bus));
    return bus;
}

/* ---- an inbox ---- */

static ramway_inbox *bound(uint32_t max_peers, uint64_t capacity) {
    ramway_inbox_options o = RAMWAY_INBOX_OPTIONS_INIT;
    ramway_inbox *inbox;
    o.max_peers = max_peers;
    o.capacity = capacity;
    CHECK_OK(ramway_inbox_bind(NAME, &o, &inbox));
    return inbox;
}

enum { COUNT = 20000 };

static void sends_and_closes(void) {
    ramway_bus *bus = connected();
    uint64_t k;
    for (k = 1; k <= COUNT; k++) {
        CHECK_OK(ramway_send(ramway_bus_sender(bus), 7, k, &k, sizeof k, LONG));
    }
    CHECK_OK(ramway_bus_close(bus));
}

static void sends_for_ever(void) {
    ramway_bus *bus = connected();
    uint64_t k;
    for (k = 1;; k++) {
        ramway_status status = ramway_inline_send(ramway_bus_sender(bus), 7, k, &k, sizeof k, LONG);
        if (k == 3000) {
            say('3');
        }
        if (status != RAMWAY_OK) {
            CHECK_STATUS(status, RAMWAY_CLOSED);
            say('c');
            CHECK_OK(ramway_bus_close(bus));
            return;
        }
    }
}

static void count_one(const ramway_peer *peer, void *count) {
    CHECK(peer->id > 0 && peer->uid == geteuid() && peer->pid > 0);
    ++*(size_t *)count;
}

static size_t connections(ramway_inbox *inbox) {
    size_t count = 0;
    CHECK_OK(ramway_inbox_peers(inbox, count_one, &count));
    return count;
}

static void in_order_and_departures_last(void) {
    enum { PEERS = 6 };
    ramway_inbox *inbox = bound(0, 4096);
    pid_t pids[PEERS];
    uint64_t last[PEERS + 1] = {0};
    int i, gone = 0, killed = 0;
    for (i = 0; i < PEERS - 1; i++) {
        pids[i] = child(sends_and_closes);
    }
    pids[i] = child(sends_for_ever);
    while (gone < PEERS) {
        ramway_incoming in;
        CHECK_OK(ramway_inbox_recv(inbox, LONG, &in));
        CHECK(in.peer.id >= 1 && in.peer.id <= PEERS && in.peer.uid == geteuid());
        if (in.left == RAMWAY_LEFT_NOT) {
            uint64_t value;
            CHECK(in.message.len == 8 && in.message.type_id == 7 && in.message.tag == last[in.peer.id] + 1);
            memcpy(&value, in.message.data, 8);
            CHECK(value == in.message.tag);
            last[in.peer.id] = value;
            CHECK_OK(ramway_inbox_release(inbox));
            if (in.peer.pid == (uint32_t)pids[PEERS - 1] && value == 3000) {
                CHECK(hear() == '3');
                is_killed(pids[PEERS - 1]);
                killed = 1;
            }
            continue;
        }
        CHECK(in.message.data == NULL && in.message.len == 0);
        gone++;
        if (in.left == RAMWAY_LEFT_DIED) {
            CHECK(in.peer.pid == (uint32_t)pids[PEERS - 1] && killed && last[in.peer.id] >= 3000);
        } else {
            CHECK(in.left == RAMWAY_LEFT_CLOSED && last[in.peer.id] == COUNT);
        }
        CHECK(connections(inbox) <= (size_t)(PEERS - gone));
    }
    CHECK(connections(inbox) == 0);
    for (i = 0; i < PEERS - 1; i++) {
        ends_well(pids[i]);
    }
    CHECK_OK(ramway_inbox_free(inbox));
}

/* ---- fairness: all messages are there before the first is taken ---- */

static int to_child[2];

static void sends_when_told(int count) {
    ramway_bus *bus = connected();
    uint64_t k;
    char go;
    CHECK(read(to_child[0], &go, 1) == 1);
    for (k = 1; k <= (uint64_t)count; k++) {
        CHECK_OK(ramway_send(ramway_bus_sender(bus), 7, k, NULL, 0, LONG));
    }
    say('t');
    for (;;) {
        pause();
    }
}

static void floods(void) { sends_when_told(1000); }
static void sends_ten(void) { sends_when_told(10); }

static void in_rotation_also_beside_a_flood(void) {
    ramway_inbox *inbox = bound(0, 0);
    pid_t pids[3];
    ramway_incoming in;
    uint64_t k, of[3];
    CHECK(pipe(to_child) == 0);
    pids[0] = child(floods);
    pids[1] = child(sends_ten);
    pids[2] = child(sends_ten);
    while (connections(inbox) < 3) {
        CHECK_STATUS(ramway_inbox_recv(inbox, MS, &in), RAMWAY_TIMED_OUT);
    }
    CHECK(write(to_child[1], "go!", 3) == 3);
    for (k = 0; k < 3; k++) {
        CHECK(hear() == 't');
    }
    for (k = 0; k < 1020; k++) {
        CHECK_OK(ramway_inbox_recv(inbox, LONG, &in));
        CHECK(in.left == RAMWAY_LEFT_NOT);
        if (k < 30) {
            CHECK(in.message.tag == k / 3 + 1);
            of[k % 3] = in.peer.id;
            CHECK(k % 3 != 2 || (of[0] != of[1] && of[1] != of[2] && of[0] != of[2]));
        } else {
            CHECK(in.peer.pid == (uint32_t)pids[0] && in.message.tag == k - 19);
        }
        CHECK_OK(ramway_inbox_release(inbox));
    }
    CHECK_STATUS(ramway_inbox_recv(inbox, RAMWAY_TRY, &in), RAMWAY_EMPTY);
    for (k = 0; k < 3; k++) {
        is_killed(pids[k]);
        CHECK_OK(ramway_inbox_recv(inbox, LONG, &in));
        CHECK(in.left == RAMWAY_LEFT_DIED && in.peer.pid == (uint32_t)pids[k]);
    }
    close(to_child[0]);
    close(to_child[1]);
    CHECK_OK(ramway_inbox_free(inbox));
}

static void a_message_that_is_held(void) {
    ramway_inbox *inbox = bound(1, 4096);
    pid_t pid = child(sends_for_ever), refused;
    ramway_incoming in, other;
    ramway_bus *bus;
    ramway_status status;
    CHECK_OK(ramway_inbox_release(inbox));
    CHECK_OK(ramway_inbox_recv(inbox, LONG, &in));
    CHECK(in.message.tag == 1);
    memset(&other, 0x55, sizeof other);
    CHECK_STATUS(ramway_inbox_recv(inbox, RAMWAY_TRY, &other), RAMWAY_BUSY);
    CHECK(strstr(ramway_last_error(), "ramway_inbox_release") != NULL && other.left == 0x55555555u);
    CHECK_STATUS(ramway_inbox_close(inbox), RAMWAY_BUSY);
    CHECK(connections(inbox) == 1);
    /* The producer has sent what fits, and waits: nothing of the message was overwritten. */
    usleep(20000);
    CHECK(memcmp(in.message.data, "\1\0\0\0\0\0\0\0", 8) == 0);
    CHECK_OK(ramway_inbox_release(inbox));
    CHECK_OK(ramway_inbox_release(inbox));
    /* One beyond the most is refused. */
    refused = fork();
    CHECK(refused >= 0);
    if (refused == 0) {
        ramway_bus_options o = RAMWAY_BUS_OPTIONS_INIT;
        o.timeout_ns = 100 * MS;
        status = ramway_bus_connect(NAME, &o, &bus);
        CHECK(status == RAMWAY_BUSY || status == RAMWAY_TIMED_OUT);
        say('b');
        _exit(0);
    }
    for (;;) {
        CHECK_OK(ramway_inbox_recv(inbox, LONG, &in));
        CHECK_OK(ramway_inbox_release(inbox));
        if (in.message.tag == 3000) {
            CHECK(hear() != 'c');
            CHECK(hear() != 'c');
            break;
        }
    }
    ends_well(refused);
    /* Closed: the producer is told, what it has sent comes, then its departure, then the end. */
    CHECK(ramway_inbox_path(inbox) != NULL && access(ramway_inbox_path(inbox), F_OK) == 0);
    CHECK_OK(ramway_inbox_close(inbox));
    CHECK_OK(ramway_inbox_close(inbox));
    CHECK(ramway_inbox_path(inbox) == NULL);
    while ((status = ramway_inbox_recv(inbox, LONG, &in)) == RAMWAY_OK && in.left == RAMWAY_LEFT_NOT) {
        CHECK_OK(ramway_inbox_release(inbox));
    }
    CHECK_OK(status);
    CHECK(in.left == RAMWAY_LEFT_CLOSED);
    CHECK(hear() == 'c');
    CHECK_STATUS(ramway_inbox_recv(inbox, LONG, &in), RAMWAY_CLOSED);
    ends_well(pid);
    CHECK_OK(ramway_inbox_free(inbox));
}

/* Says that there is more than its ring holds. */
static void scribbles(void) {
    ramway_bus *bus = connected();
    const struct ramway_inline_sender *sender = (const struct ramway_inline_sender *)(void *)ramway_bus_sender(bus);
    uint64_t k = 1;
    CHECK_OK(ramway_send(ramway_bus_sender(bus), 7, k, &k, 8, LONG));
    __atomic_fetch_add(&sender->hot->block->tail.tail, UINT64_C(1) << 40, __ATOMIC_SEQ_CST);
    say('s');
    for (;;) {
        pause();
    }
}

/* Sends a message that is longer than its ring. */
static void sends_a_wrong_length(void) {
    ramway_bus *bus = connected();
    const struct ramway_inline_sender *sender = (const struct ramway_inline_sender *)(void *)ramway_bus_sender(bus);
    uint64_t k = 1;
    CHECK_OK(ramway_send(ramway_bus_sender(bus), 7, k, &k, 8, LONG));
    k = sender->hot->tail & (sender->hot->capacity - 1);
    {
        void *slot;
        CHECK_OK(ramway_inline_reserve(ramway_bus_sender(bus), 8, LONG, &slot));
        CHECK_OK(ramway_inline_commit_unflushed(ramway_bus_sender(bus), 7, 2, 8));
        *(volatile uint32_t *)(void *)(sender->hot->data + k) = UINT32_C(1) << 30;
        CHECK_OK(ramway_inline_flush(ramway_bus_sender(bus)));
    }
    say('s');
    for (;;) {
        pause();
    }
}

static void a_hostile_producer(void (*life)(void)) {
    ramway_inbox *inbox = bound(0, 0);
    pid_t hostile = child(life), good;
    ramway_incoming in;
    uint64_t next = 1;
    int corrupt = 0, closed = 0;
    good = child(sends_and_closes);
    while (!corrupt || !closed) {
        CHECK_OK(ramway_inbox_recv(inbox, LONG, &in));
        corrupt += in.left == RAMWAY_LEFT_CORRUPT && in.peer.pid == (uint32_t)hostile;
        closed += in.left == RAMWAY_LEFT_CLOSED && in.peer.pid == (uint32_t)good;
        CHECK(in.left == RAMWAY_LEFT_NOT || corrupt + closed > 0);
        if (in.left == RAMWAY_LEFT_NOT && in.peer.pid == (uint32_t)good) {
            CHECK(in.message.tag == next);
            next++;
        }
        CHECK_OK(ramway_inbox_release(inbox));
    }
    CHECK(hear() == 's' && next == COUNT + 1 && corrupt == 1 && closed == 1);
    is_killed(hostile);
    ends_well(good);
    CHECK_OK(ramway_inbox_free(inbox));
}

static atomic_int state;
static ramway_inbox *shared;

static void *receives(void *unused) {
    ramway_incoming in;
    ramway_status status;
    (void)unused;
    while ((status = ramway_inbox_recv(shared, LONG, &in)) == RAMWAY_BUSY) {
    }
    CHECK_STATUS(status, RAMWAY_INTERRUPTED);
    atomic_store(&state, 1);
    return NULL;
}

static void calls_back(const ramway_peer *peer, void *user) {
    ramway_incoming in;
    (void)peer;
    CHECK_STATUS(ramway_inbox_recv(shared, RAMWAY_TRY, &in), RAMWAY_BUSY);
    CHECK(strstr(ramway_last_error(), "callback") != NULL);
    *(int *)user = 1;
}

static void threads_and_forks(void) {
    ramway_incoming in;
    pthread_t thread;
    ramway_status status;
    int called = 0, code;
    pid_t pid;
    shared = bound(0, 0);
    CHECK_STATUS(ramway_inbox_recv(shared, RAMWAY_TRY, &in), RAMWAY_EMPTY);
    CHECK_STATUS(ramway_inbox_recv(shared, 5 * MS, &in), RAMWAY_TIMED_OUT);
    CHECK_STATUS(ramway_inbox_recv(shared, -2, &in), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(ramway_inbox_wake(shared));
    CHECK_STATUS(ramway_inbox_recv(shared, LONG, &in), RAMWAY_INTERRUPTED);
    CHECK(pthread_create(&thread, NULL, receives, NULL) == 0);
    while ((status = ramway_inbox_release(shared)) == RAMWAY_OK) {
        usleep(1000);
    }
    CHECK_STATUS(status, RAMWAY_BUSY);
    CHECK_STATUS(ramway_inbox_free(shared), RAMWAY_BUSY);
    CHECK_STATUS(ramway_inbox_close(shared), RAMWAY_BUSY);
    CHECK(ramway_inbox_path(shared) == NULL && ramway_last_status() == RAMWAY_BUSY);
    usleep(20000);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_STATUS(ramway_inbox_recv(shared, RAMWAY_TRY, &in), RAMWAY_DETACHED);
        CHECK_OK(ramway_inbox_free(shared));
        _exit(0);
    }
    CHECK(waitpid(pid, &code, 0) == pid && code == 0 && atomic_load(&state) == 0);
    CHECK_OK(ramway_inbox_wake(shared));
    CHECK(pthread_join(thread, NULL) == 0 && atomic_load(&state) == 1);
    pid = child(sends_and_closes);
    CHECK_OK(ramway_inbox_recv(shared, LONG, &in));
    CHECK_OK(ramway_inbox_peers(shared, calls_back, &called));
    CHECK(called == 1);
    CHECK_OK(ramway_inbox_release(shared));
    /* One that nobody uses, in a fork's child. */
    code = (int)fork();
    CHECK(code >= 0);
    if (code == 0) {
        CHECK_STATUS(ramway_inbox_recv(shared, RAMWAY_TRY, &in), RAMWAY_DETACHED);
        CHECK_OK(ramway_inbox_free(shared));
        _exit(0);
    }
    ends_well((pid_t)code);
    do {
        CHECK_OK(ramway_inbox_recv(shared, LONG, &in));
        CHECK_OK(ramway_inbox_release(shared));
    } while (in.left == RAMWAY_LEFT_NOT);
    ends_well(pid);
    CHECK_OK(ramway_inbox_free(shared));
}

/* ---- an outbox ---- */

static int done[2]; /* a pipe: each worker writes a task's tag there when it has done it */

/* All tasks may be done, and the outbox gone, before a worker that was started late connects. */
static void works(void) {
    ramway_bus_options o = RAMWAY_BUS_OPTIONS_INIT;
    ramway_bus *bus;
    ramway_message m;
    ramway_status status;
    o.timeout_ns = 1000 * MS;
    status = ramway_bus_connect(NAME, &o, &bus);
    if (status != RAMWAY_OK) {
        CHECK(status == RAMWAY_NOT_FOUND || status == RAMWAY_PEER_DEAD || status == RAMWAY_TIMED_OUT);
        return;
    }
    while ((status = ramway_recv(ramway_bus_receiver(bus), LONG, &m)) == RAMWAY_OK) {
        CHECK(m.len == 8 && m.type_id == 5 && memcmp(m.data, &m.tag, 8) == 0);
        CHECK(write(done[1], &m.tag, 8) == 8);
        CHECK_OK(ramway_release(ramway_bus_receiver(bus)));
    }
    CHECK(status == RAMWAY_CLOSED || status == RAMWAY_PEER_DEAD);
    CHECK_OK(ramway_bus_close(bus));
}

static void takes_and_keeps(void) {
    ramway_bus *bus = connected();
    ramway_message m;
    CHECK_OK(ramway_recv(ramway_bus_receiver(bus), LONG, &m));
    say('k');
    for (;;) {
        pause();
    }
}

static ramway_outbox *outbox_of(uint32_t prefetch, uint32_t max_deliveries, uint32_t flags) {
    ramway_outbox_options o = RAMWAY_OUTBOX_OPTIONS_INIT;
    ramway_outbox *outbox;
    o.prefetch = prefetch;
    o.max_deliveries = max_deliveries;
    o.flags = flags;
    CHECK_OK(ramway_outbox_bind(NAME, &o, &outbox));
    return outbox;
}

static uint64_t tag_done(void) {
    uint64_t tag;
    CHECK(read(done[0], &tag, 8) == 8);
    return tag;
}

/*
 * Workers are killed all the time; each task is done at least once. No task may be taken out: on a busy machine a worker may not
 * run between two kills, so that a task can be with three of those that are killed.
 */
static void every_task_is_done(uint32_t prefetch, uint32_t flags) {
    enum { TASKS = 3000, WORKERS = 4, KILLS = TASKS / 500 };
    ramway_outbox *outbox = outbox_of(prefetch, KILLS + 1, flags);
    static unsigned char times[TASKS];
    pid_t pids[WORKERS];
    ramway_undelivered u;
    uint64_t k, drained = 0;
    int i, undone = 0;
    memset(times, 0, sizeof times);
    CHECK(pipe(done) == 0);
    for (i = 0; i < WORKERS; i++) {
        pids[i] = child(works);
    }
    for (k = 0; k < TASKS; k++) {
        CHECK_OK(ramway_outbox_send(outbox, 5, k, &k, 8, LONG));
        if (k % 500 == 499) {
            i = (int)(k / 500) % WORKERS;
            is_killed(pids[i]);
            pids[i] = child(works);
        }
        /* What is done is read, so that the pipe never fills. */
        while (k - drained > 100) {
            times[tag_done()]++;
            drained++;
        }
    }
    CHECK_OK(ramway_outbox_drain(outbox, LONG));
    CHECK(ramway_outbox_outstanding(outbox) == 0);
    CHECK_STATUS(ramway_outbox_take_undelivered(outbox, &u), RAMWAY_EMPTY);
    CHECK_OK(ramway_outbox_free(outbox));
    for (i = 0; i < WORKERS; i++) {
        ends_well(pids[i]);
    }
    close(done[1]);
    while (read(done[0], &k, 8) == 8) {
        times[k]++;
    }
    close(done[0]);
    for (k = 0; k < TASKS; k++) {
        undone += times[k] == 0;
    }
    CHECK(undone == 0);
}

static void count_worker(const ramway_peer *worker, size_t messages, void *counts) {
    CHECK(worker->id > 0 && worker->pid > 0);
    ((size_t *)counts)[0]++;
    ((size_t *)counts)[1] += messages;
}

static void what_kills_three_workers_is_taken_out(void) {
    ramway_outbox *outbox = outbox_of(0, 3, RAMWAY_COPIES);
    ramway_undelivered u;
    uint64_t tag = 9;
    size_t counts[2] = {0, 0};
    pid_t pid;
    int i;
    CHECK_STATUS(ramway_outbox_send(outbox, 5, 9, &tag, 8, RAMWAY_TRY), RAMWAY_FULL);
    CHECK_STATUS(ramway_outbox_send(outbox, 5, 9, &tag, 8, 5 * MS), RAMWAY_TIMED_OUT);
    CHECK_STATUS(ramway_outbox_send(outbox, 5, 9, &tag, 8, -7), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_outbox_send(outbox, 0xFFFF0000u, 9, &tag, 8, RAMWAY_TRY), RAMWAY_INVALID_ARGUMENT);
    CHECK(ramway_outbox_path(outbox) != NULL && access(ramway_outbox_path(outbox), F_OK) == 0);
    for (i = 0; i < 3; i++) {
        pid = child(takes_and_keeps);
        if (i == 0) {
            CHECK_OK(ramway_outbox_send(outbox, 5, 9, &tag, 8, LONG));
            CHECK_OK(ramway_outbox_workers(outbox, count_worker, counts));
            CHECK(counts[0] == 1 && counts[1] == 1 && ramway_outbox_outstanding(outbox) == 1);
            CHECK_STATUS(ramway_outbox_send(outbox, 5, 10, &tag, 8, RAMWAY_TRY), RAMWAY_FULL);
            CHECK_STATUS(ramway_outbox_drain(outbox, RAMWAY_TRY), RAMWAY_TIMED_OUT);
        } else {
            /* Deaths are seen, and messages given again, inside the calls only. */
            ramway_status status;
            fd_set set;
            struct timeval none;
            do {
                status = ramway_outbox_drain(outbox, 5 * MS);
                CHECK_STATUS(status, RAMWAY_TIMED_OUT);
                FD_ZERO(&set);
                FD_SET(from_child[0], &set);
                none.tv_sec = 0;
                none.tv_usec = 0;
            } while (select(from_child[0] + 1, &set, NULL, NULL, &none) == 0);
        }
        CHECK(hear() == 'k');
        is_killed(pid);
    }
    CHECK_OK(ramway_outbox_drain(outbox, LONG));
    CHECK_OK(ramway_outbox_take_undelivered(outbox, &u));
    CHECK(u.len == 8 && u.tag == 9 && u.type_id == 5 && u.deliveries == 3 && memcmp(u.data, &tag, 8) == 0);
    CHECK_STATUS(ramway_outbox_take_undelivered(outbox, &u), RAMWAY_EMPTY);
    CHECK(memcmp(u.data, &tag, 8) == 0);
    CHECK_OK(ramway_outbox_free(outbox));
}

static ramway_outbox *shared_outbox;

static void *drains(void *unused) {
    ramway_status status;
    (void)unused;
    /* The other thread sends in between, to see when this one is inside. */
    while ((status = ramway_outbox_drain(shared_outbox, RAMWAY_FOREVER)) == RAMWAY_BUSY) {
    }
    CHECK_STATUS(status, RAMWAY_INTERRUPTED);
    atomic_store(&state, 2);
    return NULL;
}

static void an_outbox_and_threads(void) {
    pthread_t thread;
    ramway_status status;
    uint64_t tag = 1;
    pid_t keeper = child(takes_and_keeps);
    int code;
    pid_t pid;
    shared_outbox = outbox_of(0, 3, 0);
    CHECK_OK(ramway_outbox_send(shared_outbox, 5, 1, &tag, 8, LONG));
    CHECK(hear() == 'k');
    CHECK_OK(ramway_outbox_wake(shared_outbox));
    CHECK_STATUS(ramway_outbox_send(shared_outbox, 5, 1, &tag, 8, LONG), RAMWAY_INTERRUPTED);
    CHECK(pthread_create(&thread, NULL, drains, NULL) == 0);
    do {
        status = ramway_outbox_send(shared_outbox, 5, 1, &tag, 8, RAMWAY_TRY);
        CHECK(status == RAMWAY_FULL || status == RAMWAY_BUSY);
        usleep(1000);
    } while (status != RAMWAY_BUSY);
    CHECK(strstr(ramway_last_error(), "the outbox is in use") != NULL);
    CHECK_STATUS(ramway_outbox_free(shared_outbox), RAMWAY_BUSY);
    CHECK(ramway_outbox_outstanding(shared_outbox) == 0 && ramway_last_status() == RAMWAY_BUSY);
    usleep(20000);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_STATUS(ramway_outbox_drain(shared_outbox, RAMWAY_TRY), RAMWAY_DETACHED);
        CHECK_OK(ramway_outbox_free(shared_outbox));
        _exit(0);
    }
    CHECK(waitpid(pid, &code, 0) == pid && code == 0);
    CHECK_OK(ramway_outbox_wake(shared_outbox));
    CHECK(pthread_join(thread, NULL) == 0 && atomic_load(&state) == 2);
    CHECK_OK(ramway_outbox_free(shared_outbox));
    is_killed(keeper);
}

static void options_that_nobody_could_use(void) {
    ramway_inbox_options in = RAMWAY_INBOX_OPTIONS_INIT;
    ramway_outbox_options out = RAMWAY_OUTBOX_OPTIONS_INIT;
    ramway_inbox *inbox = (ramway_inbox *)1, *second;
    ramway_outbox *outbox = (ramway_outbox *)1;
    in.reserved = 1;
    CHECK_STATUS(ramway_inbox_bind(NAME, &in, &inbox), RAMWAY_UNSUPPORTED);
    CHECK(inbox == NULL);
    in.reserved = 0;
    in.size = 3;
    CHECK_STATUS(ramway_inbox_bind(NAME, &in, &inbox), RAMWAY_INVALID_ARGUMENT);
    in.size = sizeof in;
    in.wait_policy = 9;
    CHECK_STATUS(ramway_inbox_bind(NAME, &in, &inbox), RAMWAY_INVALID_ARGUMENT);
    in.wait_policy = 0;
    in.align = 24;
    CHECK_STATUS(ramway_inbox_bind(NAME, &in, &inbox), RAMWAY_INVALID_ARGUMENT);
    in.align = 0;
    in.timeout_ns = -3;
    CHECK_STATUS(ramway_inbox_bind(NAME, &in, &inbox), RAMWAY_INVALID_ARGUMENT);
    in.timeout_ns = RAMWAY_FOREVER;
    CHECK_OK(ramway_inbox_bind(NAME, &in, &inbox));
    CHECK_STATUS(ramway_inbox_bind(NAME, NULL, &second), RAMWAY_ALREADY_EXISTS);
    CHECK_OK(ramway_inbox_free(inbox));
    out.flags = 6;
    CHECK_STATUS(ramway_outbox_bind(NAME, &out, &outbox), RAMWAY_INVALID_ARGUMENT);
    CHECK(outbox == NULL && strstr(ramway_last_error(), "RAMWAY_COPIES") != NULL);
}

int main(void) {
    CHECK(pipe(from_child) == 0);
    options_that_nobody_could_use();
    in_order_and_departures_last();
    in_rotation_also_beside_a_flood();
    a_message_that_is_held();
    a_hostile_producer(scribbles);
    a_hostile_producer(sends_a_wrong_length);
    threads_and_forks();
    every_task_is_done(0, 0);
    every_task_is_done(4, RAMWAY_COPIES);
    what_kills_three_workers_is_taken_out();
    an_outbox_and_threads();
    return 0;
}
