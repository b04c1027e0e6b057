import dev.ramway.Options;
import dev.ramway.RamwayException;
import dev.ramway.Sender;
import dev.ramway.Slot;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;

/**
 * A limit order book with price-time priority, fed by random orders. Each change of its best prices, and each trade, is a quote
 * of 48 bytes in a ring; {@code strategy.py} trades on them.
 *
 * <pre>
 * java --enable-native-access=ALL-UNNAMED -cp ramway-0.2.0.jar OrderBook.java RING ORDERS PER-SECOND
 * </pre>
 *
 * The last message is of another type. It says what the book made of the day, and the strategy compares: all quotes arrived,
 * whole and once.
 */
final class OrderBook {
    /** A quote; strategy.py has the same as a NumPy dtype: little-endian, without gaps. */
    static final int QUOTE = 1;

    static final int QUOTE_BYTES = 48;
    /** The last message: orders, quotes and traded quantity, 8 bytes each. */
    static final int SHUTDOWN = 2;

    /** An order that rests in the book. Quantity 0: it was cancelled, and goes when it would be its turn. */
    private static final class Order {
        final boolean buy;
        final long price;
        int quantity;

        Order(boolean buy, long price, int quantity) {
            this.buy = buy;
            this.price = price;
            this.quantity = quantity;
        }
    }

    /** Those who wait at one price, first come first served, and what they want together. */
    private static final class Level {
        final ArrayDeque<Order> orders = new ArrayDeque<>();
        int quantity;
    }

    private final Sender quotes;
    /** Best price first. In hundredths of the currency. */
    private final TreeMap<Long, Level> bids = new TreeMap<>(Collections.reverseOrder());

    private final TreeMap<Long, Level> asks = new TreeMap<>();
    /** What may still be cancelled, and much that cannot any more. */
    private final List<Order> resting = new ArrayList<>();

    private final long start = System.nanoTime();
    private long random = 0x9E37_79B9_7F4A_7C15L;
    private long mid = 100_00;
    private long number;
    private long volume;
    /** The last quote's, so that only changes are sent. */
    private long bid, ask;

    private int bidSize, askSize;
    /** What was traded while one side was empty: it comes with the next quote. */
    private int unquoted;

    private OrderBook(Sender quotes) {
        this.quotes = quotes;
    }

    public static void main(String[] arguments) throws InterruptedException {
        if (arguments.length != 3) {
            System.err.println("usage: OrderBook RING ORDERS PER-SECOND (0: as fast as it goes)");
            System.exit(2);
        }
        try {
            run(arguments[0], Long.parseLong(arguments[1]), Long.parseLong(arguments[2]));
        } catch (NumberFormatException | RamwayException failure) {
            System.err.println("OrderBook: " + failure.getMessage());
            System.exit(1);
        }
    }

    private static void run(String ring, long orders, long perSecond) throws InterruptedException {
        var options = Options.DEFAULT.withCapacity(1 << 20).withTimeout(Duration.ofSeconds(5));
        try (Sender quotes = Sender.openOrCreate(ring, options)) {
            System.out.println("open");
            var book = new OrderBook(quotes);
            for (long i = 0; i < orders; i++) {
                if (perSecond != 0) {
                    long due = book.start + i * 1_000_000_000L / perSecond;
                    LockSupport.parkNanos(due - System.nanoTime());
                }
                book.takeOrder();
            }
            double seconds = (System.nanoTime() - book.start) / 1e9;
            try (Slot slot = quotes.reserve(24)) {
                slot.putLong(0, orders);
                slot.putLong(8, book.number);
                slot.putLong(16, book.volume);
                slot.commit(SHUTDOWN, book.number);
            }
            System.out.printf("%d orders in %.2f s: %.0f thousand a second%n", orders, seconds, orders / seconds / 1e3);
            System.out.printf("%d quotes, %d traded, at %.2f / %.2f in the end%n", book.number, book.volume,
                    book.bid / 100.0, book.ask / 100.0);
        }
    }

    /** Xorshift: the same orders in each run. */
    private long next() {
        random ^= random << 13;
        random ^= random >>> 7;
        random ^= random << 17;
        return random >>> 1;
    }

    /** Six of ten rest in the book, two take what is there, two cancel. */
    private void takeOrder() throws InterruptedException {
        long dice = next();
        boolean buy = (dice & 1) == 0;
        int quantity = (int) (dice >> 8 & 63) + 1;
        // What everybody thinks the price is walks at random, and stays above what is bid below it.
        mid = Math.max(1_00, mid + (dice >> 16) % 3 - 1);
        switch ((int) ((dice >> 24) % 10)) {
            case 0, 1 -> match(buy, buy ? Long.MAX_VALUE : 0, quantity);
            case 2, 3 -> cancel();
            default -> {
                long away = (dice >> 32) % 12;
                long price = buy ? mid - away : mid + away;
                int left = match(buy, price, quantity);
                if (left > 0) {
                    rest(new Order(buy, price, left));
                }
            }
        }
        quote(0, buy);
    }

    /** Takes from the other side what is not worse than a price, and says how much of the quantity is left. */
    private int match(boolean buy, long worst, int quantity) throws InterruptedException {
        var side = buy ? asks : bids;
        while (quantity > 0 && !side.isEmpty()) {
            var best = side.firstEntry();
            long price = best.getKey();
            if (buy ? price > worst : price < worst) {
                break;
            }
            Level level = best.getValue();
            Order first = level.orders.peek();
            int traded = Math.min(quantity, first.quantity);
            first.quantity -= traded;
            level.quantity -= traded;
            quantity -= traded;
            if (first.quantity == 0) {
                level.orders.remove();
            }
            dropIfEmpty(side, price, level);
            if (traded > 0) {
                quote(traded, buy);
            }
        }
        return quantity;
    }

    private void rest(Order order) {
        var level = (order.buy ? bids : asks).computeIfAbsent(order.price, price -> new Level());
        level.orders.add(order);
        level.quantity += order.quantity;
        resting.add(order);
    }

    private void cancel() {
        if (resting.isEmpty()) {
            return;
        }
        int chosen = (int) (next() % resting.size());
        Order order = resting.get(chosen);
        // The last one takes its place.
        resting.set(chosen, resting.getLast());
        resting.removeLast();
        if (order.quantity == 0) {
            return;
        }
        var side = order.buy ? bids : asks;
        Level level = side.get(order.price);
        level.quantity -= order.quantity;
        order.quantity = 0;
        dropIfEmpty(side, order.price, level);
    }

    private static void dropIfEmpty(TreeMap<Long, Level> side, long price, Level level) {
        if (level.quantity == 0) {
            side.remove(price);
        }
    }

    /** Sends what the book looks like now, if that is new; waits where the strategy is that far behind. */
    private void quote(int traded, boolean buyer) throws InterruptedException {
        unquoted += traded;
        if (bids.isEmpty() || asks.isEmpty()) {
            return;
        }
        var bestBid = bids.firstEntry();
        var bestAsk = asks.firstEntry();
        boolean same = bestBid.getKey() == bid && bestAsk.getKey() == ask
                && bestBid.getValue().quantity == bidSize && bestAsk.getValue().quantity == askSize;
        if (same && unquoted == 0) {
            return;
        }
        bid = bestBid.getKey();
        ask = bestAsk.getKey();
        bidSize = bestBid.getValue().quantity;
        askSize = bestAsk.getValue().quantity;
        // Written where the strategy reads it.
        try (Slot slot = quotes.reserve(QUOTE_BYTES)) {
            slot.putLong(0, System.nanoTime() - start);
            slot.putLong(8, number);
            slot.putLong(16, bid);
            slot.putLong(24, ask);
            slot.putInt(32, bidSize);
            slot.putInt(36, askSize);
            slot.putInt(40, unquoted);
            slot.putInt(44, buyer ? 1 : 0);
            slot.commit(QUOTE, number);
        }
        number++;
        volume += unquoted;
        unquoted = 0;
    }
}
