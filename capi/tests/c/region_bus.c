/* Regions, listeners and buses: every call, between two threads. */
#include "check.h"
#include "ramway_inline.h"

#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS INT64_C(1000000)

static void *notifier(void *arg) {
    ramway_region *region = (ramway_region *)arg;
    CHECK_OK(ramway_region_write_at(region, 8, "seen", 4));
    CHECK_OK(ramway_region_notify(region));
    return NULL;
}

static void regions(void) {
    ramway_options o = RAMWAY_OPTIONS_INIT;
    ramway_region *a, *b, *c, *none;
    char bytes[8] = {0};
    uint32_t count;
    pthread_t thread;

    CHECK_STATUS(ramway_region_open("c-region", NULL, &a), RAMWAY_NOT_FOUND);
    CHECK_STATUS(ramway_region_create("c-region", 0, NULL, &a), RAMWAY_INVALID_ARGUMENT);
    CHECK(a == NULL);
    CHECK_OK(ramway_region_create("c-region", 100, NULL, &a));
    CHECK(ramway_region_len(a) == 100 && ramway_region_capacity(a) == 4096 && !ramway_region_is_read_only(a));
    CHECK_STATUS(ramway_region_create("c-region", 100, NULL, &b), RAMWAY_ALREADY_EXISTS);
    CHECK_STATUS(ramway_region_open_or_create("c-region", 101, NULL, &b), RAMWAY_INVALID_ARGUMENT);
    CHECK_OK(ramway_region_open_or_create("c-region", 100, NULL, &b));
    o.flags = RAMWAY_READ_ONLY;
    CHECK_OK(ramway_region_open("c-region", &o, &c));
    CHECK(ramway_region_is_read_only(c));
    o.capacity = 1;
    CHECK_STATUS(ramway_region_open("c-region", &o, &none), RAMWAY_INVALID_ARGUMENT);

    memcpy(ramway_region_data(a), "shared", 6);
    CHECK(memcmp(ramway_region_data(b), "shared", 6) == 0);
    CHECK_OK(ramway_region_read_at(c, 2, bytes, 4));
    CHECK(memcmp(bytes, "ared", 4) == 0);
    CHECK_STATUS(ramway_region_read_at(a, 97, bytes, 4), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_region_read_at(a, UINT64_MAX, bytes, 4), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_region_write_at(a, 100, bytes, 1), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_region_write_at(a, 0, bytes, SIZE_MAX), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_region_write_at(c, 0, bytes, 1), RAMWAY_PERMISSION_DENIED);
    CHECK_STATUS(ramway_region_notify(c), RAMWAY_PERMISSION_DENIED);

    CHECK_STATUS(ramway_region_wait(b, RAMWAY_TRY), RAMWAY_EMPTY);
    CHECK_STATUS(ramway_region_wait(b, 1 * MS), RAMWAY_TIMED_OUT);
    count = ramway_region_notifications(c);
    CHECK_STATUS(ramway_region_wait_since(c, &count, 1 * MS), RAMWAY_TIMED_OUT);
    CHECK_STATUS(ramway_region_wait_since(c, &count, RAMWAY_TRY), RAMWAY_EMPTY);
    CHECK(pthread_create(&thread, NULL, notifier, a) == 0);
    CHECK_OK(ramway_region_wait(b, RAMWAY_FOREVER));
    CHECK_OK(ramway_region_read_at(b, 8, bytes, 4));
    CHECK(memcmp(bytes, "seen", 4) == 0);
    CHECK_OK(ramway_region_wait_since(c, &count, RAMWAY_FOREVER));
    CHECK(count == ramway_region_notifications(a));
    CHECK_STATUS(ramway_region_wait(b, RAMWAY_TRY), RAMWAY_EMPTY);
    CHECK(pthread_join(thread, NULL) == 0);

    CHECK_OK(ramway_region_close(c));
    CHECK_OK(ramway_region_close(a));
    CHECK_OK(ramway_region_close(b));
    CHECK_STATUS(ramway_region_open("c-region", NULL, &a), RAMWAY_NOT_FOUND);
}

/* Connects, sends back what it gets with 1 added, until the other side closes. */
static void *echo(void *arg) {
    ramway_bus_options o = RAMWAY_BUS_OPTIONS_INIT;
    ramway_bus *bus;
    ramway_message m;
    ramway_status status;

    o.wait_policy = RAMWAY_WAIT_BLOCK;
    o.timeout_ns = 10000 * MS;
    CHECK_OK(ramway_bus_connect((const char *)arg, &o, &bus));
    while ((status = ramway_inline_recv(ramway_bus_receiver(bus), RAMWAY_FOREVER, &m)) == RAMWAY_OK) {
        uint64_t number;
        CHECK(m.len == sizeof number);
        memcpy(&number, m.data, sizeof number);
        number++;
        CHECK_OK(ramway_inline_send(ramway_bus_sender(bus), m.type_id, m.tag, &number, sizeof number, RAMWAY_FOREVER));
        CHECK_OK(ramway_inline_release(ramway_bus_receiver(bus)));
    }
    CHECK_STATUS(status, RAMWAY_CLOSED);
    CHECK_OK(ramway_bus_close(bus));
    return NULL;
}

static void ask(ramway_sender *s, ramway_receiver *r, uint64_t number) {
    ramway_message m;
    uint64_t answer = 0;
    CHECK_OK(ramway_send(s, 5, number, &number, sizeof number, RAMWAY_FOREVER));
    CHECK_OK(ramway_recv_into(r, RAMWAY_FOREVER, &answer, sizeof answer, &m));
    CHECK(answer == number + 1 && m.type_id == 5 && m.tag == number);
}

static void buses(void) {
    ramway_bus_options o = RAMWAY_BUS_OPTIONS_INIT;
    ramway_listener *listener, *other;
    ramway_bus *bus;
    ramway_sender *s;
    ramway_receiver *r;
    pthread_t thread[2];
    struct pollfd readable;
    uint64_t i;

    o.capacity = 4096;
    o.capacity_back = 8192;
    o.align = 64;
    o.backlog = 4;
    CHECK_OK(ramway_listener_bind("c-bus", &o, &listener));
    CHECK(strstr(ramway_listener_path(listener), "c-bus.sock") != NULL);
    CHECK_STATUS(ramway_listener_bind("c-bus", &o, &other), RAMWAY_ALREADY_EXISTS);
    CHECK_STATUS(ramway_listener_accept(listener, RAMWAY_TRY, &bus), RAMWAY_EMPTY);
    CHECK_STATUS(ramway_listener_accept(listener, 1 * MS, &bus), RAMWAY_TIMED_OUT);
    CHECK(bus == NULL);

    CHECK(pthread_create(&thread[0], NULL, echo, (void *)"c-bus") == 0);
    readable.fd = ramway_listener_fd(listener);
    readable.events = POLLIN;
    CHECK(poll(&readable, 1, 10000) == 1);
    CHECK_OK(ramway_listener_accept(listener, RAMWAY_FOREVER, &bus));
    CHECK(ramway_bus_peer_uid(bus) == (uint32_t)geteuid() && ramway_bus_peer_pid(bus) == (uint32_t)getpid());
    CHECK(ramway_bus_is_peer_alive(bus));
    s = ramway_bus_sender(bus);
    r = ramway_bus_receiver(bus);
    CHECK(ramway_sender_capacity(s) == 4096 && ramway_receiver_capacity(r) == 8192 && ramway_sender_align(s) == 64);
    CHECK_STATUS(ramway_sender_close(s), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_sender_abandon(s), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_receiver_close(r), RAMWAY_INVALID_ARGUMENT);
    for (i = 0; i < 1000; i++) {
        ask(s, r, i);
    }
    CHECK_OK(ramway_bus_close(bus));
    CHECK(pthread_join(thread[0], NULL) == 0);

    /* Split: each end is closed by itself. */
    CHECK(pthread_create(&thread[1], NULL, echo, (void *)"c-bus") == 0);
    CHECK_OK(ramway_listener_accept(listener, 10000 * MS, &bus));
    CHECK_OK(ramway_bus_split(bus, &s, &r));
    ask(s, r, 77);
    CHECK_OK(ramway_sender_close(s));
    CHECK(pthread_join(thread[1], NULL) == 0);
    CHECK_OK(ramway_receiver_close(r));
    CHECK_OK(ramway_listener_close(listener));

    /* Nobody there. */
    o = (ramway_bus_options)RAMWAY_BUS_OPTIONS_INIT;
    o.timeout_ns = 20 * MS;
    CHECK_STATUS(ramway_bus_connect("c-bus", &o, &bus), RAMWAY_NOT_FOUND);
    CHECK(strstr(ramway_last_error(), "c-bus") != NULL);
    o.capacity = 4096;
    CHECK_STATUS(ramway_bus_connect("c-bus", &o, &bus), RAMWAY_INVALID_ARGUMENT);
    CHECK_STATUS(ramway_bus_listen("c-bus", NULL, 20 * MS, &bus), RAMWAY_TIMED_OUT);
    o.flags = RAMWAY_BUS_SEND_ONLY | RAMWAY_BUS_RECV_ONLY;
    CHECK_STATUS(ramway_listener_bind("c-bus", &o, &listener), RAMWAY_INVALID_ARGUMENT);
    o.flags = RAMWAY_HUGE_PAGES;
    CHECK_STATUS(ramway_listener_bind("c-bus", &o, &listener), RAMWAY_INVALID_ARGUMENT);
}

static void *only_receives(void *arg) {
    ramway_bus *bus;
    ramway_message m;
    CHECK_OK(ramway_bus_connect((const char *)arg, NULL, &bus));
    CHECK(ramway_bus_sender(bus) == NULL);
    CHECK_STATUS(ramway_last_status(), RAMWAY_UNSUPPORTED);
    CHECK_OK(ramway_recv(ramway_bus_receiver(bus), RAMWAY_FOREVER, &m));
    CHECK(m.len == 3);
    CHECK_OK(ramway_release(ramway_bus_receiver(bus)));
    CHECK_OK(ramway_bus_close(bus));
    return NULL;
}

static void one_way(void) {
    ramway_bus_options o = RAMWAY_BUS_OPTIONS_INIT;
    ramway_bus *bus;
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, only_receives, (void *)"c-one-way") == 0);
    o.flags = RAMWAY_BUS_SEND_ONLY | RAMWAY_NO_MEMBARRIER;
    CHECK_OK(ramway_bus_listen("c-one-way", &o, 10000 * MS, &bus));
    CHECK(ramway_bus_receiver(bus) == NULL);
    CHECK_OK(ramway_send(ramway_bus_sender(bus), 0, 0, "one", 3, RAMWAY_FOREVER));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(ramway_bus_close(bus));
}

static void readable(int fd, int expected) {
    struct pollfd p = {-1, POLLIN, 0};
    p.fd = fd;
    CHECK(fd >= 0);
    CHECK(poll(&p, 1, expected ? 10000 : 0) == expected);
}

/* Readiness: unreadable after a try that found nothing, readable when the peer did something. */
static void readiness(void) {
    ramway_sender *s;
    ramway_receiver *r;
    ramway_region *region;
    ramway_message m;
    void *slot;
    int i;

    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    CHECK(ramway_receiver_readiness_fd(r) >= 0);
    for (i = 0; i < 100; i++) {
        CHECK_STATUS(ramway_inline_recv(r, RAMWAY_TRY, &m), RAMWAY_EMPTY);
        readable(ramway_receiver_readiness_fd(r), 0);
        CHECK_OK(ramway_inline_send(s, 0, 0, "x", 1, RAMWAY_TRY));
        readable(ramway_receiver_readiness_fd(r), 1);
        CHECK_OK(ramway_inline_recv(r, RAMWAY_TRY, &m));
        CHECK_OK(ramway_inline_release(r));
    }
    CHECK_OK(ramway_inline_reserve(s, 4080, RAMWAY_TRY, &slot));
    CHECK_OK(ramway_inline_commit(s, 0, 0, 4080));
    (void)ramway_sender_readiness_fd(s);
    CHECK_STATUS(ramway_inline_send(s, 0, 0, "x", 1, RAMWAY_TRY), RAMWAY_FULL);
    readable(ramway_sender_readiness_fd(s), 0);
    CHECK_OK(ramway_inline_recv(r, RAMWAY_TRY, &m));
    CHECK_OK(ramway_inline_release(r));
    readable(ramway_sender_readiness_fd(s), 1);
    CHECK_OK(ramway_inline_send(s, 0, 0, "x", 1, RAMWAY_TRY));
    CHECK_OK(ramway_inline_recv(r, RAMWAY_FOREVER, &m));
    CHECK_OK(ramway_inline_release(r));
    CHECK_STATUS(ramway_inline_recv(r, RAMWAY_TRY, &m), RAMWAY_EMPTY);
    CHECK_OK(ramway_sender_close(s));
    readable(ramway_receiver_readiness_fd(r), 1);
    CHECK_STATUS(ramway_inline_recv(r, RAMWAY_TRY, &m), RAMWAY_CLOSED);
    CHECK_OK(ramway_receiver_close(r));

    CHECK_OK(ramway_region_create("c-region", 8, NULL, &region));
    CHECK_STATUS(ramway_region_wait(region, RAMWAY_TRY), RAMWAY_EMPTY);
    (void)ramway_region_readiness_fd(region);
    CHECK_STATUS(ramway_region_wait(region, RAMWAY_TRY), RAMWAY_EMPTY);
    readable(ramway_region_readiness_fd(region), 0);
    CHECK_OK(ramway_region_notify(region));
    readable(ramway_region_readiness_fd(region), 1);
    CHECK_OK(ramway_region_wait(region, RAMWAY_TRY));
    CHECK_OK(ramway_region_close(region));
}

int main(void) {
    regions();
    readiness();
    buses();
    one_way();
    return 0;
}
