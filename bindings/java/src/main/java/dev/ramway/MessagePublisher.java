package dev.ramway;

import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** A receiver for one subscriber at a time, who gets copies. */
final class MessagePublisher implements Flow.Publisher<MessageCopy> {
    private final Receiver rx;
    private final AtomicBoolean taken = new AtomicBoolean();

    MessagePublisher(Receiver rx) {
        this.rx = rx;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super MessageCopy> subscriber) {
        Objects.requireNonNull(subscriber, "subscriber");
        if (!taken.compareAndSet(false, true)) {
            subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long n) {}

                @Override
                public void cancel() {}
            });
            subscriber.onError(new IllegalStateException("a receiver's publisher has one subscriber at a time"));
            return;
        }
        new Subscription(subscriber).start();
    }

    /** One thread calls the subscriber, so that its calls come one after another. */
    private final class Subscription implements Flow.Subscription, Runnable {
        private final Flow.Subscriber<? super MessageCopy> subscriber;
        private final AtomicLong demand = new AtomicLong();
        private final Thread thread = Thread.ofVirtual().name("ramway-publisher").unstarted(this);
        private volatile boolean cancelled;
        /** A request that cannot be; the subscriber is told by the one thread that calls it. */
        private volatile IllegalArgumentException wrong;

        Subscription(Flow.Subscriber<? super MessageCopy> subscriber) {
            this.subscriber = subscriber;
        }

        void start() {
            thread.start();
        }

        @Override
        public void request(long n) {
            if (n <= 0) {
                wrong = new IllegalArgumentException("a request of " + n + " messages: ask for at least 1");
                thread.interrupt();
                return;
            }
            // Saturates: that many is without a bound.
            demand.accumulateAndGet(n, (have, more) -> have + more < 0 ? Long.MAX_VALUE : have + more);
            LockSupport.unpark(thread);
        }

        @Override
        public void cancel() {
            cancelled = true;
            // Out of a wait for a message, too.
            thread.interrupt();
        }

        @Override
        public void run() {
            try {
                subscriber.onSubscribe(this);
                pass();
            } catch (InterruptedException e) {
                if (!cancelled) {
                    fail(wrong != null ? wrong : e);
                }
            } catch (ClosedException end) {
                if (!cancelled) {
                    taken.set(false);
                    subscriber.onComplete();
                }
            } catch (Throwable t) {
                fail(t);
            } finally {
                taken.set(false);
            }
        }

        private void fail(Throwable t) {
            if (!cancelled) {
                cancelled = true;
                taken.set(false);
                subscriber.onError(t);
            }
        }

        private void pass() throws InterruptedException {
            while (!cancelled) {
                if (wrong != null || Thread.interrupted()) {
                    throw new InterruptedException();
                }
                long wanted = demand.get();
                if (wanted == 0) {
                    LockSupport.park(this);
                    continue;
                }
                MessageCopy copy;
                try (Message message = rx.recv()) {
                    copy = message.copy();
                }
                if (wanted != Long.MAX_VALUE) {
                    demand.decrementAndGet();
                }
                subscriber.onNext(copy);
            }
        }
    }
}
