package dev.ramway.sys;

import java.util.Locale;

/** Which machine this is: its numbers for what differs between processors. */
public final class Platform {
    /** Linux on a processor whose numbers are below. */
    public static final boolean SUPPORTED;

    static final boolean ARM;

    static {
        String arch = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        boolean intel = arch.equals("amd64") || arch.equals("x86_64");
        ARM = arch.equals("aarch64");
        SUPPORTED = System.getProperty("os.name", "").equals("Linux") && (intel || ARM);
    }

    private Platform() {}

    static int pick(int intel, int arm) {
        return ARM ? arm : intel;
    }

    /**
     * To be called before anything else of this package: whether this machine and this Java virtual machine can.
     *
     * @throws SysException.Setting where they cannot, with what to do
     */
    public static void check() throws SysException.Setting {
        if (!SUPPORTED) {
            throw new SysException.Setting("Ramway for Java runs on Linux on x86-64 and aarch64, this is "
                    + System.getProperty("os.name") + " on " + System.getProperty("os.arch"));
        }
        if (Native.REFUSED != null) {
            throw new SysException.Setting("this Java virtual machine does not let the module call libc ("
                    + Native.REFUSED + "); start it with --enable-native-access=dev.ramway, or ALL-UNNAMED where Ramway is on the "
                    + "class path");
        }
    }

    /** Found out once, and only where it can work at all. */
    private static final class Native {
        static final Throwable REFUSED = tryIt();

        private static Throwable tryIt() {
            try {
                Libc.geteuid();
                return null;
            } catch (LinkageError | RuntimeException e) {
                return e.getCause() != null ? e.getCause() : e;
            }
        }
    }
}
