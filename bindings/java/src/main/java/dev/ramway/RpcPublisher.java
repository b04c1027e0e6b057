package dev.ramway;

import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.Condition;

/** A stream for one subscriber. */
final class RpcPublisher implements Flow.Publisher<RpcReply> {
    private final RpcChannel channel;
    private final RpcCall call;
    private final AtomicBoolean taken = new AtomicBoolean();

    RpcPublisher(RpcChannel channel, RpcCall call) {
        this.channel = channel;
        this.call = call;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super RpcReply> subscriber) {
        Objects.requireNonNull(subscriber, "subscriber");
        if (!taken.compareAndSet(false, true)) {
            Subscriptions.refuse(subscriber, "a stream's publisher has one subscriber");
            return;
        }
        Thread.ofVirtual().name("ramway-stream").start(new Subscription(subscriber));
    }

    /** One thread calls the subscriber, so that its calls come one after another. */
    private final class Subscription implements Flow.Subscription, Runnable {
        private final Flow.Subscriber<? super RpcReply> subscriber;
        private final Mutex lock = new Mutex();
        private final Condition changed = lock.newCondition();
        /** How many elements were asked for and not given yet. With the lock. */
        private long demand;
        private boolean cancelled;
        private IllegalArgumentException wrong;

        Subscription(Flow.Subscriber<? super RpcReply> subscriber) {
            this.subscriber = subscriber;
        }

        @Override
        public void request(long n) {
            try (var _ = lock.hold()) {
                if (n > 0) {
                    demand = Subscriptions.more(demand, n);
                } else if (wrong == null) {
                    wrong = new IllegalArgumentException("a request of " + n + " elements: ask for at least 1");
                }
                changed.signal();
            }
            if (n <= 0) {
                channel.cancel(call);
            }
        }

        @Override
        public void cancel() {
            try (var _ = lock.hold()) {
                cancelled = true;
                changed.signal();
            }
            channel.drop(call);
        }

        @Override
        public void run() {
            try {
                subscriber.onSubscribe(this);
                // The end needs no demand, so it is waited for first.
                while (channel.await(call, RingEnd.FOREVER) && !channel.isComplete(call)) {
                    if (!isWanted()) {
                        break;
                    }
                    RpcReply element = channel.takeElement(call);
                    if (element != null) {
                        subscriber.onNext(element);
                    }
                }
                end(null);
            } catch (Throwable t) {
                end(t);
            }
        }

        /** Waits until an element is asked for; false: the subscription is over, or the stream has failed without one. */
        private boolean isWanted() throws InterruptedException {
            try (var _ = lock.holdInterruptibly()) {
                while (demand == 0 && !cancelled && wrong == null && !channel.hasFailed(call)) {
                    changed.await();
                }
                demand -= demand == 0 || demand == Long.MAX_VALUE ? 0 : 1;
                return !cancelled && wrong == null;
            }
        }

        private void end(Throwable t) {
            Throwable why;
            try (var _ = lock.hold()) {
                if (cancelled) {
                    return;
                }
                cancelled = true;
                why = wrong != null ? wrong : t;
            }
            channel.drop(call);
            if (why != null) {
                subscriber.onError(why);
            } else {
                subscriber.onComplete();
            }
        }
    }
}
