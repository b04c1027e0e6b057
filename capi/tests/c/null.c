/* Every function of ramway.h, with null wherever a pointer goes: a status, never a crash. run.sh checks that every
 * exported function occurs here. */
#include "check.h"
#include "ramway_inline.h"

#include <stdbool.h>
#include <stdint.h>

#define NULL_SAFE(call) CHECK_STATUS(call, RAMWAY_INVALID_ARGUMENT)

int main(void) {
    ramway_sender *s = NULL, *s2 = (ramway_sender *)1;
    ramway_receiver *r = NULL;
    ramway_region *region = NULL;
    ramway_bus *bus = NULL;
    ramway_listener *listener = NULL;
    ramway_select *select = (ramway_select *)1;
    ramway_inbox *inbox = (ramway_inbox *)1;
    ramway_outbox *outbox = (ramway_outbox *)1;
    ramway_incoming incoming;
    ramway_undelivered undelivered;
    ramway_inbox_options inbox_options = RAMWAY_INBOX_OPTIONS_INIT;
    ramway_outbox_options outbox_options = RAMWAY_OUTBOX_OPTIONS_INIT;
    ramway_source source = ramway_source_receiver(NULL);
    ramway_message message;
    ramway_topic_message topic_message;
    ramway_topic_options topic_options = RAMWAY_TOPIC_OPTIONS_INIT;
    ramway_subscriber *latest = NULL;
    ramway_tensor tensor;
    const ramway_dtype bytes = {RAMWAY_DTYPE_UINT, 8};
    ramway_bytes piece = {NULL, 1};
    ramway_bus_options bus_options = RAMWAY_BUS_OPTIONS_INIT;
    void *slot = &slot;
    size_t n = 1;
    uint64_t u64 = 0;
    uint32_t u32 = 0;
    char byte = 0;

    CHECK(strlen(ramway_version()) >= 5);
    CHECK(strcmp(ramway_last_error(), "success") == 0);
    CHECK_STATUS(ramway_last_status(), RAMWAY_OK);
    CHECK(ramway_last_errno() == 0);

    /* opening */
    NULL_SAFE(ramway_sender_create(NULL, NULL, &s2));
    CHECK(s2 == NULL);
    NULL_SAFE(ramway_sender_create("name", NULL, NULL));
    NULL_SAFE(ramway_sender_open(NULL, NULL, &s));
    NULL_SAFE(ramway_sender_open("name", NULL, NULL));
    NULL_SAFE(ramway_sender_open_or_create(NULL, NULL, &s));
    NULL_SAFE(ramway_sender_open_or_create("name", NULL, NULL));
    NULL_SAFE(ramway_receiver_create(NULL, NULL, &r));
    NULL_SAFE(ramway_receiver_create("name", NULL, NULL));
    NULL_SAFE(ramway_receiver_open(NULL, NULL, &r));
    NULL_SAFE(ramway_receiver_open("name", NULL, NULL));
    NULL_SAFE(ramway_receiver_open_or_create(NULL, NULL, &r));
    NULL_SAFE(ramway_receiver_open_or_create("name", NULL, NULL));
    NULL_SAFE(ramway_ring_pair(4096, NULL, &r));
    NULL_SAFE(ramway_ring_pair(4096, &s, NULL));
    NULL_SAFE(ramway_ring_format(NULL, 1 << 20, 16, NULL));
    NULL_SAFE(ramway_ring_unnamed(NULL, NULL));
    NULL_SAFE(ramway_sender_from_fd(0, NULL, NULL));
    NULL_SAFE(ramway_receiver_from_fd(0, NULL, NULL));
    NULL_SAFE(ramway_unlink(NULL));
    NULL_SAFE(ramway_ls(NULL, NULL, NULL));
    CHECK_OK(ramway_clean(NULL, RAMWAY_CLEAN_DRY_RUN, NULL, NULL));
    NULL_SAFE(ramway_sender_attach(NULL, 1 << 20, &s));
    NULL_SAFE(ramway_sender_attach(&byte, 1, NULL));
    NULL_SAFE(ramway_receiver_attach(NULL, 1 << 20, &r));
    NULL_SAFE(ramway_receiver_attach(&byte, 1, NULL));
    CHECK(s == NULL && r == NULL);

    /* null handles */
    NULL_SAFE(ramway_send(NULL, 0, 0, &byte, 1, RAMWAY_FOREVER));
    NULL_SAFE(ramway_send_vectored(NULL, 0, 0, &piece, 1, RAMWAY_FOREVER));
    NULL_SAFE(ramway_send_batch(NULL, 0, 0, &piece, 1, RAMWAY_FOREVER, &n));
    CHECK(n == 0);
    NULL_SAFE(ramway_send_batch(NULL, 0, 0, &piece, 1, RAMWAY_FOREVER, NULL));
    NULL_SAFE(ramway_reserve(NULL, 1, RAMWAY_FOREVER, &slot));
    CHECK(slot == NULL);
    NULL_SAFE(ramway_commit(NULL, 0, 0, 0));
    NULL_SAFE(ramway_commit_unflushed(NULL, 0, 0, 0));
    NULL_SAFE(ramway_abort(NULL));
    NULL_SAFE(ramway_send_tensor(NULL, bytes, &u64, 1, 0, &byte, 0, RAMWAY_FOREVER));
    NULL_SAFE(ramway_reserve_tensor(NULL, bytes, &u64, 1, RAMWAY_FOREVER, &slot, &n));
    NULL_SAFE(ramway_commit_tensor(NULL, 0));
    NULL_SAFE(ramway_commit_tensor_unflushed(NULL, 0));
    NULL_SAFE(ramway_message_tensor(NULL, &tensor));
    memset(&message, 0, sizeof message);
    NULL_SAFE(ramway_message_tensor(&message, NULL));
    message.type_id = RAMWAY_TYPE_ID_TENSOR;
    message.len = 8;
    NULL_SAFE(ramway_message_tensor(&message, &tensor));
    NULL_SAFE(ramway_flush(NULL));
    NULL_SAFE(ramway_sender_close(NULL));
    NULL_SAFE(ramway_sender_abandon(NULL));
    NULL_SAFE(ramway_sender_set_wait_policy(NULL, RAMWAY_WAIT_SPIN));
    NULL_SAFE(ramway_sender_set_interruptible(NULL, true));
    NULL_SAFE(ramway_sender_wait_for_peer(NULL, RAMWAY_FOREVER, &u32));
    NULL_SAFE(ramway_sender_wake(NULL));
    CHECK(ramway_sender_name(NULL) == NULL && ramway_receiver_name(NULL) == NULL);
    CHECK(ramway_sender_capacity(NULL) == 0 && ramway_sender_align(NULL) == 0);
    CHECK(ramway_sender_max_message_len(NULL) == 0 && ramway_sender_len(NULL) == 0);
    CHECK(ramway_sender_epoch(NULL) == 0 && ramway_sender_peer_epoch(NULL) == 0);
    CHECK(!ramway_sender_is_peer_alive(NULL) && !ramway_sender_last_tag(NULL, &u64));
    CHECK_STATUS(ramway_last_status(), RAMWAY_INVALID_ARGUMENT);
    NULL_SAFE(ramway_recv(NULL, RAMWAY_FOREVER, &message));
    NULL_SAFE(ramway_recv_batch(NULL, RAMWAY_FOREVER, &message, 1, &n));
    NULL_SAFE(ramway_recv_into(NULL, RAMWAY_FOREVER, &byte, 1, &message));
    NULL_SAFE(ramway_release(NULL));
    NULL_SAFE(ramway_receiver_close(NULL));
    NULL_SAFE(ramway_receiver_set_wait_policy(NULL, RAMWAY_WAIT_SPIN));
    NULL_SAFE(ramway_receiver_set_interruptible(NULL, true));
    NULL_SAFE(ramway_receiver_wait_for_peer(NULL, RAMWAY_FOREVER, &u32));
    NULL_SAFE(ramway_receiver_wake(NULL));
    CHECK(ramway_receiver_capacity(NULL) == 0 && ramway_receiver_align(NULL) == 0 && ramway_receiver_len(NULL) == 0);
    CHECK(ramway_receiver_epoch(NULL) == 0 && ramway_receiver_peer_epoch(NULL) == 0);
    CHECK(!ramway_receiver_is_peer_alive(NULL));
    CHECK(ramway_sender_readiness_fd(NULL) == -1 && ramway_receiver_readiness_fd(NULL) == -1);
    CHECK(ramway_region_readiness_fd(NULL) == -1);
    NULL_SAFE(ramway_inline_after_publish(NULL));
    NULL_SAFE(ramway_inline_after_release(NULL));

    /* the inline ones */
    NULL_SAFE(ramway_inline_send(NULL, 0, 0, &byte, 1, RAMWAY_FOREVER));
    NULL_SAFE(ramway_inline_reserve(NULL, 1, RAMWAY_FOREVER, &slot));
    NULL_SAFE(ramway_inline_commit(NULL, 0, 0, 0));
    NULL_SAFE(ramway_inline_commit_unflushed(NULL, 0, 0, 0));
    NULL_SAFE(ramway_inline_abort(NULL));
    NULL_SAFE(ramway_inline_flush(NULL));
    NULL_SAFE(ramway_inline_recv(NULL, RAMWAY_FOREVER, &message));
    NULL_SAFE(ramway_inline_recv_batch(NULL, RAMWAY_FOREVER, &message, 1, &n));
    NULL_SAFE(ramway_inline_release(NULL));

    /* null beside a handle that works */
    CHECK_OK(ramway_ring_pair(4096, &s, &r));
    NULL_SAFE(ramway_send(s, 0, 0, NULL, 1, RAMWAY_TRY));
    NULL_SAFE(ramway_send_vectored(s, 0, 0, NULL, 1, RAMWAY_TRY));
    NULL_SAFE(ramway_send_vectored(s, 0, 0, &piece, 1, RAMWAY_TRY));
    NULL_SAFE(ramway_send_batch(s, 0, 0, NULL, 1, RAMWAY_TRY, NULL));
    NULL_SAFE(ramway_send_batch(s, 0, 0, &piece, 1, RAMWAY_TRY, NULL));
    NULL_SAFE(ramway_reserve(s, 1, RAMWAY_TRY, NULL));
    u64 = 1;
    NULL_SAFE(ramway_send_tensor(s, bytes, NULL, 1, 0, &byte, 1, RAMWAY_TRY));
    NULL_SAFE(ramway_send_tensor(s, bytes, &u64, 1, 0, NULL, 1, RAMWAY_TRY));
    NULL_SAFE(ramway_reserve_tensor(s, bytes, NULL, 1, RAMWAY_TRY, &slot, NULL));
    NULL_SAFE(ramway_reserve_tensor(s, bytes, &u64, 1, RAMWAY_TRY, NULL, NULL));
    CHECK(!ramway_sender_last_tag(s, NULL));
    NULL_SAFE(ramway_recv(r, RAMWAY_TRY, NULL));
    NULL_SAFE(ramway_recv_batch(r, RAMWAY_TRY, NULL, 1, &n));
    NULL_SAFE(ramway_recv_batch(r, RAMWAY_TRY, &message, 1, NULL));
    NULL_SAFE(ramway_recv_batch(r, RAMWAY_TRY, &message, 0, &n));
    NULL_SAFE(ramway_recv_into(r, RAMWAY_TRY, NULL, 1, &message));
    NULL_SAFE(ramway_inline_send(s, 0, 0, NULL, 1, RAMWAY_TRY));
    NULL_SAFE(ramway_inline_reserve(s, 1, RAMWAY_TRY, NULL));
    NULL_SAFE(ramway_inline_recv(r, RAMWAY_TRY, NULL));
    NULL_SAFE(ramway_inline_recv_batch(r, RAMWAY_TRY, NULL, 1, &n));
    NULL_SAFE(ramway_inline_recv_batch(r, RAMWAY_TRY, &message, 1, NULL));
    CHECK(ramway_sender_len(s) == 0);
    CHECK_OK(ramway_send(s, 0, 0, NULL, 0, RAMWAY_TRY));
    CHECK_OK(ramway_send_vectored(s, 0, 0, NULL, 0, RAMWAY_TRY));
    CHECK_OK(ramway_inline_send(s, 0, 0, NULL, 0, RAMWAY_TRY));
    CHECK_OK(ramway_recv_into(r, RAMWAY_TRY, NULL, 0, NULL));
    CHECK_OK(ramway_recv(r, RAMWAY_TRY, &message));
    CHECK(message.data != NULL && message.len == 0);
    CHECK_OK(ramway_receiver_close(r));
    CHECK_OK(ramway_sender_close(s));

    /* topic */
    NULL_SAFE(ramway_publisher_create(NULL, NULL, &s));
    NULL_SAFE(ramway_publisher_create("name", NULL, NULL));
    NULL_SAFE(ramway_publisher_open(NULL, NULL, &s));
    NULL_SAFE(ramway_publisher_open("name", NULL, NULL));
    NULL_SAFE(ramway_publisher_open_or_create(NULL, NULL, &s));
    NULL_SAFE(ramway_publisher_open_or_create("name", NULL, NULL));
    NULL_SAFE(ramway_subscriber_create(NULL, NULL, &r));
    NULL_SAFE(ramway_subscriber_create("name", NULL, NULL));
    NULL_SAFE(ramway_subscriber_open(NULL, NULL, &r));
    NULL_SAFE(ramway_subscriber_open("name", NULL, NULL));
    NULL_SAFE(ramway_subscriber_open_or_create(NULL, NULL, &r));
    NULL_SAFE(ramway_subscriber_open_or_create("name", NULL, NULL));
    NULL_SAFE(ramway_publisher_subscribers(NULL, NULL, NULL));
    NULL_SAFE(ramway_publisher_wait_for_subscribers(NULL, 1, RAMWAY_TRY));
    NULL_SAFE(ramway_publisher_skip_seq(NULL, 1));
    CHECK(ramway_publisher_seq(NULL) == 0);
    NULL_SAFE(ramway_subscriber_recv(NULL, RAMWAY_TRY, &topic_message));
    NULL_SAFE(ramway_subscriber_recv_batch(NULL, RAMWAY_TRY, &topic_message, 1, &n));
    NULL_SAFE(ramway_subscriber_recv_into(NULL, RAMWAY_TRY, &byte, 1, &topic_message));
    NULL_SAFE(ramway_subscriber_latest(NULL, &byte, 1, &topic_message));
    NULL_SAFE(ramway_subscriber_wait_newer(NULL, RAMWAY_TRY, &byte, 1, &topic_message));
    NULL_SAFE(ramway_subscriber_skip_to_newest(NULL, &u64));
    NULL_SAFE(ramway_subscriber_lag(NULL, &u64, &u64));
    NULL_SAFE(ramway_subscriber_unsubscribe(NULL));
    CHECK(ramway_subscriber_policy(NULL) == UINT32_MAX && ramway_subscriber_label(NULL) == NULL);
    CHECK(ramway_subscriber_lost(NULL) == 0 && ramway_last_lost() == 0);
    NULL_SAFE(ramway_inline_publisher_send(NULL, 1, 0, &byte, 1, RAMWAY_TRY));
    NULL_SAFE(ramway_inline_publisher_reserve(NULL, 1, RAMWAY_TRY, &slot));
    NULL_SAFE(ramway_inline_publisher_commit(NULL, 1, 0, 1));
    NULL_SAFE(ramway_inline_publisher_commit_unflushed(NULL, 1, 0, 1));
    NULL_SAFE(ramway_inline_publisher_flush(NULL));
    NULL_SAFE(ramway_inline_publisher_abort(NULL));
    NULL_SAFE(ramway_inline_subscriber_recv(NULL, RAMWAY_TRY, &topic_message));
    NULL_SAFE(ramway_inline_subscriber_recv_batch(NULL, RAMWAY_TRY, &topic_message, 1, &n));
    NULL_SAFE(ramway_inline_subscriber_latest(NULL, &byte, 1, &topic_message));
    NULL_SAFE(ramway_inline_subscriber_release(NULL));
    topic_options.policy = RAMWAY_LATEST;
    CHECK_OK(ramway_publisher_create("null-topic", NULL, &s));
    CHECK_OK(ramway_subscriber_open("null-topic", &topic_options, &latest));
    CHECK_OK(ramway_subscriber_open("null-topic", NULL, &r));
    NULL_SAFE(ramway_inline_publisher_send(s, 1, 0, NULL, 1, RAMWAY_TRY));
    NULL_SAFE(ramway_inline_publisher_reserve(s, 1, RAMWAY_TRY, NULL));
    NULL_SAFE(ramway_publisher_subscribers(s, NULL, NULL));
    CHECK_OK(ramway_inline_publisher_send(s, 1, 0, NULL, 0, RAMWAY_TRY));
    NULL_SAFE(ramway_inline_subscriber_recv(r, RAMWAY_TRY, NULL));
    NULL_SAFE(ramway_inline_subscriber_recv_batch(r, RAMWAY_TRY, NULL, 1, &n));
    NULL_SAFE(ramway_inline_subscriber_recv_batch(r, RAMWAY_TRY, &topic_message, 1, NULL));
    NULL_SAFE(ramway_inline_subscriber_latest(r, NULL, 1, NULL));
    NULL_SAFE(ramway_subscriber_recv_into(r, RAMWAY_TRY, NULL, 1, NULL));
    NULL_SAFE(ramway_recv_into(r, RAMWAY_TRY, NULL, 1, NULL));
    NULL_SAFE(ramway_subscriber_wait_newer(latest, RAMWAY_TRY, NULL, 1, NULL));
    CHECK_OK(ramway_inline_subscriber_latest(r, NULL, 0, NULL));
    CHECK_OK(ramway_subscriber_wait_newer(latest, RAMWAY_TRY, NULL, 0, NULL));
    CHECK_OK(ramway_subscriber_lag(r, NULL, NULL));
    CHECK_OK(ramway_subscriber_recv_into(r, RAMWAY_TRY, NULL, 0, NULL));
    CHECK_OK(ramway_subscriber_skip_to_newest(r, NULL));
    CHECK_OK(ramway_receiver_close(latest));
    CHECK_OK(ramway_receiver_close(r));
    CHECK_OK(ramway_sender_close(s));

    /* region */
    NULL_SAFE(ramway_region_create(NULL, 1, NULL, &region));
    NULL_SAFE(ramway_region_create("name", 1, NULL, NULL));
    NULL_SAFE(ramway_region_open(NULL, NULL, &region));
    NULL_SAFE(ramway_region_open("name", NULL, NULL));
    NULL_SAFE(ramway_region_open_or_create(NULL, 1, NULL, &region));
    NULL_SAFE(ramway_region_open_or_create("name", 1, NULL, NULL));
    NULL_SAFE(ramway_region_close(NULL));
    NULL_SAFE(ramway_region_read_at(NULL, 0, &byte, 1));
    NULL_SAFE(ramway_region_write_at(NULL, 0, &byte, 1));
    NULL_SAFE(ramway_region_notify(NULL));
    NULL_SAFE(ramway_region_wait(NULL, RAMWAY_FOREVER));
    NULL_SAFE(ramway_region_wait_since(NULL, &u32, RAMWAY_FOREVER));
    CHECK(ramway_region_data(NULL) == NULL && ramway_region_len(NULL) == 0 && ramway_region_capacity(NULL) == 0);
    CHECK(!ramway_region_is_read_only(NULL) && ramway_region_notifications(NULL) == 0);
    CHECK_OK(ramway_region_create("null-region", 10, NULL, &region));
    NULL_SAFE(ramway_region_read_at(region, 0, NULL, 1));
    NULL_SAFE(ramway_region_write_at(region, 0, NULL, 1));
    NULL_SAFE(ramway_region_wait_since(region, NULL, RAMWAY_TRY));
    CHECK_OK(ramway_region_read_at(region, 0, NULL, 0));
    CHECK_OK(ramway_region_close(region));

    /* bus */
    NULL_SAFE(ramway_listener_bind(NULL, NULL, &listener));
    NULL_SAFE(ramway_listener_bind("name", NULL, NULL));
    bus_options.allow_uid_count = 1;
    NULL_SAFE(ramway_listener_bind("name", &bus_options, &listener));
    NULL_SAFE(ramway_listener_accept(NULL, RAMWAY_FOREVER, &bus));
    NULL_SAFE(ramway_listener_close(NULL));
    CHECK(ramway_listener_refused(NULL) == 0 && ramway_listener_last_refusal(NULL, NULL, 0) == 0);
    CHECK(ramway_listener_fd(NULL) == -1 && ramway_listener_path(NULL) == NULL);
    NULL_SAFE(ramway_bus_listen(NULL, NULL, RAMWAY_TRY, &bus));
    NULL_SAFE(ramway_bus_listen("name", NULL, RAMWAY_TRY, NULL));
    NULL_SAFE(ramway_bus_connect(NULL, NULL, &bus));
    NULL_SAFE(ramway_bus_connect("name", NULL, NULL));
    CHECK(ramway_bus_sender(NULL) == NULL && ramway_bus_receiver(NULL) == NULL);
    NULL_SAFE(ramway_bus_split(NULL, &s, &r));
    CHECK(s == NULL && r == NULL);
    NULL_SAFE(ramway_bus_split(NULL, NULL, NULL));
    NULL_SAFE(ramway_bus_close(NULL));
    CHECK(ramway_bus_peer_uid(NULL) == UINT32_MAX && ramway_bus_peer_pid(NULL) == 0);
    CHECK(!ramway_bus_is_peer_alive(NULL));
    CHECK_OK(ramway_listener_bind("null-listener", NULL, &listener));
    NULL_SAFE(ramway_listener_accept(listener, RAMWAY_TRY, NULL));
    CHECK_OK(ramway_listener_close(listener));

    /* select */
    NULL_SAFE(ramway_select_new(NULL));
    NULL_SAFE(ramway_select_free(NULL));
    NULL_SAFE(ramway_select_set_wait_policy(NULL, RAMWAY_WAIT_SPIN));
    NULL_SAFE(ramway_select_wake(NULL));
    NULL_SAFE(ramway_select_wait(NULL, &source, 1, RAMWAY_TRY, &n, &n));
    CHECK_OK(ramway_select_new(&select));
    NULL_SAFE(ramway_select_wait(select, NULL, 1, RAMWAY_TRY, &n, &n));
    NULL_SAFE(ramway_select_wait(select, &source, 1, RAMWAY_TRY, NULL, &n));
    NULL_SAFE(ramway_select_wait(select, &source, 1, RAMWAY_TRY, &n, NULL));
    NULL_SAFE(ramway_select_wait(select, &source, 1, RAMWAY_TRY, &n, &n));
    source = ramway_source_room(NULL, 1);
    NULL_SAFE(ramway_select_wait(select, &source, 1, RAMWAY_TRY, &n, &n));
    source = ramway_source_region(NULL);
    NULL_SAFE(ramway_select_wait(select, &source, 1, RAMWAY_TRY, &n, &n));
    source = ramway_source_listener(NULL);
    NULL_SAFE(ramway_select_wait(select, &source, 1, RAMWAY_TRY, &n, &n));
    source = ramway_source_fd(-1);
    NULL_SAFE(ramway_select_wait(select, &source, 1, RAMWAY_TRY, &n, &n));
    CHECK_OK(ramway_select_free(select));

    /* inbox */
    NULL_SAFE(ramway_inbox_bind(NULL, NULL, &inbox));
    CHECK(inbox == NULL);
    NULL_SAFE(ramway_inbox_bind("name", NULL, NULL));
    inbox_options.allow_uid_count = 1;
    NULL_SAFE(ramway_inbox_bind("name", &inbox_options, &inbox));
    NULL_SAFE(ramway_inbox_recv(NULL, RAMWAY_TRY, &incoming));
    NULL_SAFE(ramway_inbox_release(NULL));
    NULL_SAFE(ramway_inbox_peers(NULL, NULL, NULL));
    NULL_SAFE(ramway_inbox_wake(NULL));
    NULL_SAFE(ramway_inbox_close(NULL));
    NULL_SAFE(ramway_inbox_free(NULL));
    CHECK(ramway_inbox_path(NULL) == NULL);
    CHECK_OK(ramway_inbox_bind("null-inbox", NULL, &inbox));
    NULL_SAFE(ramway_inbox_recv(inbox, RAMWAY_TRY, NULL));
    NULL_SAFE(ramway_inbox_peers(inbox, NULL, NULL));
    CHECK_OK(ramway_inbox_free(inbox));

    /* outbox */
    NULL_SAFE(ramway_outbox_bind(NULL, NULL, &outbox));
    CHECK(outbox == NULL);
    NULL_SAFE(ramway_outbox_bind("name", NULL, NULL));
    outbox_options.allow_uid_count = 1;
    NULL_SAFE(ramway_outbox_bind("name", &outbox_options, &outbox));
    NULL_SAFE(ramway_outbox_send(NULL, 1, 0, &byte, 1, RAMWAY_TRY));
    NULL_SAFE(ramway_outbox_drain(NULL, RAMWAY_TRY));
    NULL_SAFE(ramway_outbox_take_undelivered(NULL, &undelivered));
    NULL_SAFE(ramway_outbox_workers(NULL, NULL, NULL));
    NULL_SAFE(ramway_outbox_wake(NULL));
    NULL_SAFE(ramway_outbox_free(NULL));
    CHECK(ramway_outbox_path(NULL) == NULL && ramway_outbox_outstanding(NULL) == 0);
    CHECK_OK(ramway_outbox_bind("null-outbox", NULL, &outbox));
    NULL_SAFE(ramway_outbox_send(outbox, 1, 0, NULL, 1, RAMWAY_TRY));
    NULL_SAFE(ramway_outbox_take_undelivered(outbox, NULL));
    NULL_SAFE(ramway_outbox_workers(outbox, NULL, NULL));
    CHECK_OK(ramway_outbox_free(outbox));

    CHECK(strlen(ramway_strerror(12345)) > 0 && strcmp(ramway_status_name(-1), "Unknown") == 0);
    return 0;
}
