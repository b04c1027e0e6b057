package dev.ramway.sys;

/** The operating system, one of its limits or one of its settings refuses. Internal: callers turn it into their own. */
public class SysException extends Exception {
    private static final long serialVersionUID = 1L;

    private final int errno;

    /**
     * An error number while something was done.
     *
     * @param errno the number, 0 where there is none
     * @param what what was done; may be empty
     */
    public SysException(int errno, String what) {
        // No stack trace: the public exception that it becomes the cause of has one.
        super(what, null, false, false);
        this.errno = errno;
    }

    /** What was done, and the system's words for the error. Put together when somebody asks: many are only decided by. */
    @Override
    public String getMessage() {
        String what = super.getMessage();
        if (errno == 0) {
            return what;
        }
        return (what.isEmpty() ? "" : what + ": ") + Errno.text(errno);
    }

    /** The system's error number, 0 where the reason is another one. */
    public int errno() {
        return errno;
    }

    /** Which limit stands in the way of memory or space. */
    public static final class Limit extends SysException {
        private static final long serialVersionUID = 1L;

        /** The text says how much was asked, how much there is, and what limits it. */
        public Limit(String text) {
            super(0, text);
        }
    }

    /** Which setting or property of the system stands in the way. */
    public static final class Setting extends SysException {
        private static final long serialVersionUID = 1L;

        /** The text says which, and what to do. */
        public Setting(String text) {
            super(0, text);
        }
    }
}
