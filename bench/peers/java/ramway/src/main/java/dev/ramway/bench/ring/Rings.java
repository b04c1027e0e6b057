package dev.ramway.bench.ring;

import dev.ramway.Batch;
import dev.ramway.Message;
import dev.ramway.Options;
import dev.ramway.Receiver;
import dev.ramway.Sender;
import dev.ramway.Slot;
import dev.ramway.WaitMode;
import dev.ramway.bench.End;
import dev.ramway.bench.Setup;

/** One ring to send on, one to receive from; null where a side has only one of them. Their pages are there from the beginning. */
final class Rings implements End {
    private final Sender tx;
    private final Receiver rx;

    private Rings(Sender tx, Receiver rx) {
        this.tx = tx;
        this.rx = rx;
    }

    private static Options options(Setup setup) {
        return Options.DEFAULT.withCapacity(setup.capacity()).withPrefault(true).withWaitMode(WaitMode.SPIN);
    }

    static Rings create(Setup setup) throws Exception {
        return new Rings(Sender.create(there(setup), options(setup)), Receiver.create(back(setup), options(setup)));
    }

    static Rings open(Setup setup) throws Exception {
        Options options = options(setup).withCapacity(0);
        return new Rings(Sender.open(back(setup), options), Receiver.open(there(setup), options));
    }

    static Rings sender(Setup setup) throws Exception {
        return new Rings(Sender.create(there(setup), options(setup)), null);
    }

    static Rings receiver(Setup setup) throws Exception {
        return new Rings(null, Receiver.create(there(setup), options(setup)));
    }

    static String there(Setup setup) {
        return setup.directory() + "/there";
    }

    private static String back(Setup setup) {
        return setup.directory() + "/back";
    }

    @Override
    public void waitLike(String mode) {
        WaitMode wait = mode.equals("hybrid") ? WaitMode.HYBRID : mode.equals("block") ? WaitMode.BLOCK : WaitMode.SPIN;
        if (tx != null) {
            tx.waitMode(wait);
        }
        if (rx != null) {
            rx.waitMode(wait);
        }
    }

    @Override
    public void send(int size, long n) throws InterruptedException {
        try (Slot slot = tx.reserve(size)) {
            fill(slot, size, n);
            slot.commit(0, 0);
        }
    }

    @Override
    public void send(int size, long n, int count) throws InterruptedException {
        for (long last = n + count; n < last; n++) {
            try (Slot slot = tx.reserve(size)) {
                fill(slot, size, n);
                slot.commitUnflushed(0, 0);
            }
        }
        tx.flush();
    }

    private static void fill(Slot slot, int size, long n) {
        if (size == 32) {
            slot.putLong(0, n);
            slot.putLong(8, n + 1);
            slot.putLong(16, n + 2);
            slot.putLong(24, n + 3);
        } else {
            for (int word = 0; word < size; word += 8) {
                slot.putLong(word, n++);
            }
        }
    }

    @Override
    public long receive(int size) throws InterruptedException {
        try (Message message = rx.recv()) {
            return sum(message, size);
        }
    }

    @Override
    public int receive(int size, int max, Sum sum) throws InterruptedException {
        try (Batch batch = rx.recvBatch(max)) {
            long words = 0;
            int count = batch.size();
            for (int i = 0; i < count; i++) {
                words += sum(batch.get(i), size);
            }
            sum.words += words;
            return count;
        }
    }

    private static long sum(Message message, int size) {
        if (message.length() != size) {
            throw new IllegalStateException("a message of " + message.length() + " bytes instead of " + size);
        }
        if (size == 32) {
            return message.getLong(0) + message.getLong(8) + message.getLong(16) + message.getLong(24);
        }
        long sum = 0;
        for (int word = 0; word < size; word += 8) {
            sum += message.getLong(word);
        }
        return sum;
    }

    @Override
    public void close() {
        if (tx != null) {
            tx.close();
        }
        if (rx != null) {
            rx.close();
        }
    }
}
