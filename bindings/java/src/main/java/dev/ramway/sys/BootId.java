package dev.ramway.sys;

/** Which boot of the machine this is. */
public final class BootId {
    private static final byte[] NOW = parse(Files.text("/proc/sys/kernel/random/boot_id"));

    private BootId() {}

    /** This boot's id, 16 bytes; all zero where the kernel does not tell. A copy. */
    public static byte[] now() {
        return NOW.clone();
    }

    /** A UUID as text, in bytes; all zero if it is none. */
    static byte[] parse(String text) {
        byte[] id = new byte[16];
        int digits = 0;
        for (int i = 0; i < text.length(); i++) {
            int digit = Character.digit(text.charAt(i), 16);
            if (digit < 0 || digits >= 32) {
                continue;
            }
            id[digits / 2] = (byte) (id[digits / 2] << 4 | digit);
            digits++;
        }
        return digits < 32 ? new byte[16] : id;
    }
}
