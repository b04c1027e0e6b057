package dev.ramway.sys;

/** What the machine has. */
public final class Cpu {
    private static final int COUNT = count(Files.text("/sys/devices/system/cpu/online"));

    private Cpu() {}

    /**
     * How many processors the machine has online: on one, nobody spins. Not how many this process may use: two that are
     * pinned to one processor each do not stand in each other's way.
     */
    public static int count() {
        return COUNT;
    }

    /** How many numbers a list such as {@code 0-3,7} has; where there is none, what the virtual machine knows. */
    static int count(String list) {
        int count = 0;
        try {
            for (String range : list.trim().split(",")) {
                String[] ends = range.split("-", 2);
                count += Integer.parseInt(ends[ends.length - 1]) - Integer.parseInt(ends[0]) + 1;
            }
        } catch (NumberFormatException e) {
            count = 0;
        }
        return count > 0 ? count : Runtime.getRuntime().availableProcessors();
    }
}
