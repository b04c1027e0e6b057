package dev.ramway;

import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

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
        // Left by a loop of this thread: the receiver is used again.
        rx.dropLooped();
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
        /** Of receiving: an interrupt is for that wait, and never for the subscriber's own code. */
        private final ReentrantLock turn = new ReentrantLock();
        private boolean receiving;
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
            if (n <= 0) {
                wrong = new IllegalArgumentException("a request of " + n + " messages: ask for at least 1");
                disturb();
                return;
            }
            // Saturates: that many is without a bound.
            demand.accumulateAndGet(n, (have, more) -> have + more < 0 ? Long.MAX_VALUE : have + more);
            LockSupport.unpark(thread);
        }

        @Override
        public void cancel() {
            cancelled = true;
            disturb();
        }

        /** Ends the thread's wait for a message or for demand. */
        private void disturb() {
            turn.lock();
            try {
                if (receiving) {
                    thread.interrupt();
                } else {
                    LockSupport.unpark(thread);
                }
            } finally {
                turn.unlock();
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
                pass();
            } catch (InterruptedException e) {
                if (!cancelled) {
                    fail(wrong != null ? wrong : e);
                }
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
                MessageCopy copy = receive();
                if (copy == null) {
                    continue;
                }
                if (wanted != Long.MAX_VALUE) {
                    demand.decrementAndGet();
                }
                subscriber.onNext(copy);
            }
        }

        /** Null: it is over. */
        private MessageCopy receive() throws InterruptedException {
            turn.lock();
            try {
                if (isOver()) {
                    return null;
                }
                receiving = true;
            } finally {
                turn.unlock();
            }
            try (Message message = rx.recv()) {
                return message.copy();
            } finally {
                turn.lock();
                receiving = false;
                if (isOver()) {
                    // It came too late for the wait.
                    Thread.interrupted();
                }
                turn.unlock();
            }
        }
    }
}
