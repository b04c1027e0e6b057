package dev.ramway;

import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.Condition;

/** A receiver for one subscriber at a time, who gets copies. */
final class MessagePublisher implements Flow.Publisher<MessageCopy> {
    private final ReceivingEnd<?> rx;
    private final AtomicBoolean taken = new AtomicBoolean();

    MessagePublisher(ReceivingEnd<?> rx) {
        this.rx = rx;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super MessageCopy> subscriber) {
        Objects.requireNonNull(subscriber, "subscriber");
        if (!taken.compareAndSet(false, true)) {
            Subscriptions.refuse(subscriber, "a receiver's publisher has one subscriber at a time");
            return;
        }
        // Left by a loop of this thread: the receiver is used again.
        rx.dropLooped();
        new Subscription(subscriber).start();
    }

    /** One thread calls the subscriber, so that its calls come one after another. */
    private final class Subscription implements Flow.Subscription, Runnable {
        private final Flow.Subscriber<? super MessageCopy> subscriber;
        private final Thread thread = Thread.ofVirtual().name("ramway-publisher").unstarted(this);
        private final Mutex lock = new Mutex();
        private final Condition changed = lock.newCondition();
        /** How many messages were asked for and not received yet. With the lock. */
        private long demand;
        /** The thread is in a receive: an interrupt is for that wait, and never for the subscriber's own code. With the lock. */
        private boolean receiving;
        private volatile boolean cancelled;
        /** A request that cannot be; the subscriber is told by the one thread that calls it. */
        private volatile IllegalArgumentException wrong;
        /** For the one thread: this subscription is the publisher's. */
        private boolean current = true;

        Subscription(Flow.Subscriber<? super MessageCopy> subscriber) {
            this.subscriber = subscriber;
        }

        void start() {
            thread.start();
        }

        @Override
        public void request(long n) {
            try (var _ = lock.hold()) {
                if (n > 0) {
                    demand = Subscriptions.more(demand, n);
                    changed.signal();
                } else {
                    wrong = new IllegalArgumentException("a request of " + n + " messages: ask for at least 1");
                    endWait();
                }
            }
        }

        @Override
        public void cancel() {
            try (var _ = lock.hold()) {
                cancelled = true;
                endWait();
            }
        }

        /** Ends the thread's wait for a message or for demand. With the lock. */
        private void endWait() {
            changed.signal();
            if (receiving) {
                thread.interrupt();
            }
        }

        private boolean isOver() {
            return cancelled || wrong != null;
        }

        /** Lets the next subscriber in: once, because that may come before this one's thread has ended. */
        private void makeRoom() {
            if (current) {
                current = false;
                taken.set(false);
            }
        }

        @Override
        public void run() {
            try {
                subscriber.onSubscribe(this);
                while (isWanted()) {
                    subscriber.onNext(receive());
                }
                fail(wrong);
            } catch (InterruptedException e) {
                fail(wrong != null ? wrong : e);
            } catch (ClosedException end) {
                if (!cancelled) {
                    makeRoom();
                    subscriber.onComplete();
                }
            } catch (Throwable t) {
                fail(t);
            } finally {
                makeRoom();
            }
        }

        private void fail(Throwable t) {
            if (!cancelled) {
                cancelled = true;
                makeRoom();
                subscriber.onError(t);
            }
        }

        /** Waits until a message is asked for, and begins to receive it. False: it is over. */
        private boolean isWanted() throws InterruptedException {
            try (var _ = lock.holdInterruptibly()) {
                while (demand == 0 && !isOver()) {
                    changed.await();
                }
                if (!isOver()) {
                    demand -= demand == Long.MAX_VALUE ? 0 : 1;
                    receiving = true;
                }
                return receiving;
            }
        }

        private MessageCopy receive() throws InterruptedException {
            try (Message message = rx.recv()) {
                return message.copy();
            } finally {
                try (var _ = lock.hold()) {
                    receiving = false;
                    if (isOver()) {
                        // It came too late for the wait.
                        Thread.interrupted();
                    }
                }
            }
        }
    }
}
