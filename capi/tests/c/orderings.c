/*
 * One function for each hot path of the inline headers, so that its machine code can be looked at: orderings.sh. The file is
 * compiled and never run.
 */
#include "ramway_inline.h"
#include "ramway/inline_topic.h"

ramway_status ring_commit(ramway_sender *sender, size_t len);
ramway_status ring_flush(ramway_sender *sender);
ramway_status ring_recv(ramway_receiver *receiver, ramway_message *out);
ramway_status ring_release(ramway_receiver *receiver);
ramway_status topic_commit(ramway_publisher *publisher, size_t len);
ramway_status topic_recv(ramway_subscriber *subscriber, ramway_topic_message *out);
ramway_status topic_release(ramway_subscriber *subscriber);
int topic_is_overtaken(const struct ramway_topic_consumer *hot, uint64_t position);

ramway_status ring_commit(ramway_sender *sender, size_t len) { return ramway_inline_commit(sender, 1, 2, len); }
ramway_status ring_flush(ramway_sender *sender) { return ramway_inline_flush(sender); }
ramway_status ring_recv(ramway_receiver *receiver, ramway_message *out) { return ramway_inline_recv(receiver, 0, out); }
ramway_status ring_release(ramway_receiver *receiver) { return ramway_inline_release(receiver); }
ramway_status topic_commit(ramway_publisher *publisher, size_t len) {
    return ramway_inline_publisher_commit(publisher, 1, 2, len);
}
ramway_status topic_recv(ramway_subscriber *subscriber, ramway_topic_message *out) {
    return ramway_inline_subscriber_recv(subscriber, 0, out);
}
ramway_status topic_release(ramway_subscriber *subscriber) { return ramway_inline_subscriber_release(subscriber); }
int topic_is_overtaken(const struct ramway_topic_consumer *hot, uint64_t position) {
    return ramway_inline_is_overtaken(hot, position);
}
