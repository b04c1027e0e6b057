package dev.ramway;

import java.util.concurrent.Flow;

/** What the publishers' subscriptions have in common. */
final class Subscriptions {
    private Subscriptions() {}

    /** Tells a subscriber that it is one too many. The rules want a subscription first. */
    static void refuse(Flow.Subscriber<?> subscriber, String why) {
        subscriber.onSubscribe(new Flow.Subscription() {
            @Override
            public void request(long n) {}

            @Override
            public void cancel() {}
        });
        subscriber.onError(new IllegalStateException(why));
    }

    /** Demand and {@code n} more, which is positive. Saturates: that many is without a bound. */
    static long more(long demand, long n) {
        return demand + n < 0 ? Long.MAX_VALUE : demand + n;
    }
}
