/* Waiting for a peer, waking a wait, rings without a name, what is there, and time-outs that cannot be. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "ramway_inline.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define LONG (60000 * MS)

/* A child that takes one end of a ring without a name, says so through a pipe, and stays until it is killed. */
static pid_t child_with(int fd, int send) {
    int pipes[2];
    char ready;
    pid_t pid;
    CHECK(pipe(pipes) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        ramway_sender *s = NULL;
        ramway_receiver *r = NULL;
        if (send) {
            CHECK_OK(ramway_sender_from_fd(fd, NULL, &s));
            CHECK_OK(ramway_send(s, 1, 7, "child", 5, RAMWAY_FOREVER));
        } else {
            CHECK_OK(ramway_receiver_from_fd(fd, NULL, &r));
        }
        CHECK(write(pipes[1], "x", 1) == 1);
        for (;;) {
            pause();
        }
    }
    CHECK(read(pipes[0], &ready, 1) == 1);
    close(pipes[0]);
    close(pipes[1]);
    return pid;
}

static void kill_child(pid_t pid) {
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void unnamed_rings(void) {
    ramway_options o = RAMWAY_OPTIONS_INIT;
    ramway_receiver *r, *other = NULL;
    ramway_sender *s;
    ramway_message m;
    ramway_status status;
    uint32_t epoch = 9;
    int64_t times[] = {1, 20000, 1 * MS, 5 * MS, 50 * MS, 99 * MS, 150 * MS};
    size_t i;
    int fd = -2;
    pid_t pid;
    o.capacity = 1 << 16;
    CHECK_OK(ramway_ring_unnamed(&o, &fd));
    CHECK_OK(ramway_receiver_from_fd(fd, NULL, &r));
    CHECK(ramway_receiver_capacity(r) == 1 << 16 && ramway_receiver_name(r) == NULL);
    CHECK_STATUS(ramway_receiver_from_fd(fd, NULL, &other), RAMWAY_BUSY);
    CHECK_STATUS(ramway_receiver_wait_for_peer(r, 0, &epoch), RAMWAY_TIMED_OUT);
    CHECK_STATUS(ramway_receiver_wait_for_peer(r, 20 * MS, NULL), RAMWAY_TIMED_OUT);
    CHECK(epoch == 9);
    for (i = 0; i < sizeof times / sizeof *times; i++) {
        pid = child_with(fd, 1);
        CHECK_OK(ramway_receiver_wait_for_peer(r, RAMWAY_FOREVER, &epoch));
        CHECK(epoch == i + 1);
        kill_child(pid);
        CHECK_OK(ramway_recv(r, LONG, &m));
        CHECK(m.len == 5 && m.tag == 7);
        CHECK_OK(ramway_release(r));
        while ((status = ramway_recv(r, times[i], &m)) == RAMWAY_TIMED_OUT) {
        }
        CHECK_STATUS(status, RAMWAY_PEER_DEAD);
        CHECK(strstr(ramway_last_error(), "unnamed ring") != NULL);
        while ((status = ramway_recv(r, RAMWAY_TRY, &m)) == RAMWAY_EMPTY) {
        }
        CHECK_STATUS(status, RAMWAY_PEER_DEAD);
    }
    CHECK_OK(ramway_receiver_close(r));
    CHECK_OK(ramway_sender_from_fd(fd, NULL, &s));
    while (ramway_send(s, 0, 0, &o, sizeof o, RAMWAY_TRY) == RAMWAY_OK) {
    }
    for (i = 0; i < sizeof times / sizeof *times; i++) {
        pid = child_with(fd, 0);
        CHECK_OK(ramway_sender_wait_for_peer(s, LONG, &epoch));
        CHECK_STATUS(ramway_send(s, 0, 0, &o, sizeof o, times[i]), RAMWAY_TIMED_OUT);
        kill_child(pid);
        while ((status = ramway_send(s, 0, 0, &o, sizeof o, times[i])) == RAMWAY_TIMED_OUT) {
        }
        CHECK_STATUS(status, RAMWAY_PEER_DEAD);
    }
    CHECK_OK(ramway_sender_close(s));
    close(fd);
    CHECK_STATUS(ramway_sender_from_fd(-1, NULL, &s), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_sender_from_fd(0x7fffff, NULL, &s), RAMWAY_OS);
    o.flags = RAMWAY_PERSISTENT;
    CHECK_STATUS(ramway_ring_unnamed(&o, &fd), RAMWAY_INVALID_ARGUMENT);
    CHECK(fd == -1);
}

static void *wakes_receiver(void *receiver) {
    usleep(20000);
    CHECK_OK(ramway_receiver_wake(receiver));
    return NULL;
}

static void *wakes_sender(void *sender) {
    usleep(20000);
    CHECK_OK(ramway_sender_wake(sender));
    return NULL;
}

static void wake_ups(void) {
    ramway_sender *s;
    ramway_receiver *r;
    ramway_message m;
    pthread_t thread;
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    CHECK(pthread_create(&thread, NULL, wakes_receiver, r) == 0);
    CHECK_STATUS(ramway_inline_recv(r, RAMWAY_FOREVER, &m), RAMWAY_INTERRUPTED);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(ramway_receiver_wake(r));
    CHECK_STATUS(ramway_recv(r, LONG, &m), RAMWAY_INTERRUPTED);
    CHECK_STATUS(ramway_recv(r, MS, &m), RAMWAY_TIMED_OUT);
    while (ramway_send(s, 0, 0, &m, sizeof m, RAMWAY_TRY) == RAMWAY_OK) {
    }
    CHECK(pthread_create(&thread, NULL, wakes_sender, s) == 0);
    CHECK_STATUS(ramway_send(s, 0, 0, &m, sizeof m, RAMWAY_FOREVER), RAMWAY_INTERRUPTED);
    CHECK(pthread_join(thread, NULL) == 0);
    /* Where an end is final it is told at once. */
    CHECK_OK(ramway_receiver_close(r));
    CHECK_STATUS(ramway_sender_wait_for_peer(s, RAMWAY_FOREVER, NULL), RAMWAY_CLOSED);
    CHECK_OK(ramway_sender_close(s));
}

static void times_that_cannot_be(void) {
    ramway_options o = RAMWAY_OPTIONS_INIT;
    ramway_bus_options b = RAMWAY_BUS_OPTIONS_INIT;
    ramway_sender *s, *other;
    ramway_receiver *r;
    ramway_region *region;
    ramway_listener *l;
    ramway_bus *bus;
    ramway_message m;
    ramway_bytes piece = {"x", 1};
    void *slot;
    size_t n;
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    CHECK_STATUS(ramway_recv(r, -2, &m), RAMWAY_INVALID_ARGUMENT);
    CHECK(strstr(ramway_last_error(), "-2 ns") != NULL);
    CHECK_STATUS(ramway_inline_recv(r, INT64_MIN, &m), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_recv_batch(r, -2, &m, 1, &n), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_recv_into(r, -2, &m, sizeof m, NULL), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_receiver_wait_for_peer(r, -2, NULL), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_send(s, 0, 0, &m, 1, -2), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_send_vectored(s, 0, 0, &piece, 1, -2), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_send_batch(s, 0, 0, &piece, 1, -2, &n), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_reserve(s, 1, -2, &slot), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_sender_wait_for_peer(s, -2, NULL), RAMWAY_INVALID_ARGUMENT);
    /* All of a batch have the tag. */
    CHECK_OK(ramway_send_batch(s, 3, 11, &piece, 1, RAMWAY_TRY, &n));
    CHECK_OK(ramway_recv(r, RAMWAY_TRY, &m));
    CHECK(m.type_id == 3 && m.tag == 11);
    CHECK_OK(ramway_receiver_close(r));
    CHECK_OK(ramway_sender_close(s));
    o.timeout_ns = -2;
    CHECK_STATUS(ramway_sender_open("no-ring", &o, &other), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_region_open("no-region", &o, &region), RAMWAY_INVALID_ARGUMENT);
    b.timeout_ns = -2;
    CHECK_STATUS(ramway_listener_bind("no-bus", &b, &l), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_bus_connect("no-bus", &b, &bus), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_bus_listen("no-bus", NULL, -2, &bus), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(ramway_region_create("times", 16, NULL, &region));
    CHECK_STATUS(ramway_region_wait(region, -2), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(ramway_region_close(region));
    CHECK_OK(ramway_listener_bind("times", NULL, &l));
    CHECK_STATUS(ramway_listener_accept(l, -2, &bus), RAMWAY_INVALID_ARGUMENT);
    CHECK(ramway_listener_refused(l) == 0 && ramway_listener_last_refusal(l, NULL, 0) == 0);
    CHECK_OK(ramway_listener_close(l));
    o.timeout_ns = 0;
    o.flags = RAMWAY_DISCARD;
    CHECK_STATUS(ramway_sender_open_or_create("no-ring", &o, &other), RAMWAY_INVALID_ARGUMENT);
    CHECK(strstr(ramway_last_error(), "create only") != NULL);
}

static void see(const ramway_segment *segment, void *user) {
    ramway_segment *into = user;
    if (strcmp(segment->name, "listed") == 0) {
        CHECK(strstr(segment->path, "/listed") != NULL && segment->error == NULL);
        *into = *segment;
    }
    if (strcmp(segment->name, "listed-text") == 0) {
        CHECK_STATUS(segment->status, RAMWAY_ABI_MISMATCH);
        CHECK(segment->error != NULL);
        into[1].size = 1;
    }
}

static void outcome(const char *name, uint32_t what, const char *why, void *user) {
    if (strcmp(name, "listed") == 0) {
        *(uint32_t *)user = what;
        CHECK((why != NULL) == (what == RAMWAY_CLEAN_KEPT));
    }
}

static void what_is_there(void) {
    ramway_options o = RAMWAY_OPTIONS_INIT;
    ramway_segment found[2];
    ramway_sender *s;
    char path[200];
    uint32_t what = 0;
    FILE *file;
    memset(found, 0, sizeof found);
    snprintf(path, sizeof path, "%s/listed-text", getenv("RAMWAY_DIR"));
    file = fopen(path, "w");
    CHECK(file != NULL && fputs("text", file) >= 0 && fclose(file) == 0);
    o.capacity = 8192;
    o.align = 64;
    CHECK_OK(ramway_sender_create("listed", &o, &s));
    CHECK(strcmp(ramway_sender_name(s), "listed") == 0);
    CHECK_OK(ramway_send(s, 0, 0, "one", 3, RAMWAY_TRY));
    CHECK_OK(ramway_ls(NULL, see, found));
    CHECK(found[1].size == 1 && found[0].size_of_struct == sizeof *found);
    CHECK(found[0].kind == RAMWAY_KIND_RING && found[0].capacity == 8192 && found[0].align == 64);
    CHECK(found[0].used == 64 && found[0].undelivered == 1 && found[0].size == 8192 + 4096);
    CHECK(found[0].in_use && found[0].producer_held && !found[0].consumer_held && !found[0].stale);
    CHECK_STATUS(ramway_unlink("listed"), RAMWAY_BUSY);
    CHECK_OK(ramway_sender_close(s));
    CHECK_OK(ramway_clean(NULL, 0, outcome, &what));
    CHECK(what == RAMWAY_CLEAN_KEPT);
    CHECK_OK(ramway_clean(NULL, RAMWAY_CLEAN_UNDELIVERED | RAMWAY_CLEAN_DRY_RUN, outcome, &what));
    CHECK(what == RAMWAY_CLEAN_REMOVED);
    CHECK_OK(ramway_unlink("listed"));
    CHECK_STATUS(ramway_unlink("listed"), RAMWAY_NOT_FOUND);
    CHECK_STATUS(ramway_unlink("listed-text"), RAMWAY_ABI_MISMATCH);
    CHECK_STATUS(ramway_clean(NULL, 8, NULL, NULL), RAMWAY_INVALID_ARGUMENT);
    CHECK(unlink(path) == 0);
}

int main(void) {
    unnamed_rings();
    wake_ups();
    times_that_cannot_be();
    what_is_there();
    return 0;
}
