package dev.ramway;

import java.time.Duration;

/**
 * A subscriber, as a publisher sees it at one moment.
 *
 * @param slot its slot's number
 * @param epoch how often that was taken
 * @param policy how it reads
 * @param label empty if it has none
 * @param durable its position stays when it goes
 * @param alive its process lives and has it open
 * @param ejected the publisher has ejected it, and it has not begun anew
 * @param lag how far a reliable one is behind; null under another policy, which does not say
 * @param lost how many messages it has lost
 * @param blocksFor for how long it has kept the publisher from going on; zero if it does not
 */
public record SubscriberInfo(int slot, int epoch, Policy policy, String label, boolean durable, boolean alive, boolean ejected, Lag lag,
        long lost, Duration blocksFor) {}
