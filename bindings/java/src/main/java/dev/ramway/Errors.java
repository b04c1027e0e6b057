package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.Platform;
import dev.ramway.sys.SysException;
import java.util.Locale;

/** How errors are made. */
final class Errors {
    private Errors() {}

    /** An error of a kind, of the class that it has, with a text; null: the kind's summary. */
    static RamwayException of(ErrorKind kind, String text) {
        return switch (kind) {
            case CLOSED -> new ClosedException(text);
            case PEER_DEAD -> new PeerDeadException(text);
            case TIMED_OUT -> new TimedOutException(text);
            default -> new RamwayException(kind, 0, text);
        };
    }

    /** An error with a text made of a format. */
    static RamwayException fail(ErrorKind kind, String format, Object... arguments) {
        return of(kind, String.format(Locale.ROOT, format, arguments));
    }

    /** An error of the operating system while something was done; the kind follows from its number. */
    static RamwayException os(SysException e, String doing) {
        String text = e.getMessage().isEmpty() ? doing : doing + ": " + e.getMessage();
        return switch (e) {
            case SysException.Limit limit -> of(ErrorKind.NO_SPACE, text);
            case SysException.Setting setting -> of(ErrorKind.UNSUPPORTED, text);
            default -> new RamwayException(kindOf(e.errno()), e.errno(), text);
        };
    }

    /** An error of the operating system by its number, above 0. */
    static RamwayException os(int errno, String doing) {
        return os(new SysException(errno, ""), doing);
    }

    /** What the operating system is asked. */
    interface SystemCall<T> {
        T run() throws SysException;
    }

    /** What it returns; its error becomes one of this library, which says what was being done. */
    static <T> T during(String doing, SystemCall<T> call) {
        try {
            return call.run();
        } catch (SysException e) {
            throw os(e, doing);
        }
    }

    /** What it returns, or another answer where the operating system gives none. */
    static <T> T orElse(T answer, SystemCall<T> call) {
        try {
            return call.run();
        } catch (SysException e) {
            return answer;
        }
    }

    /** A descriptor or another result, if it is no error with a minus sign. */
    static int checked(int result, String doing) {
        if (result < 0) {
            throw os(-result, doing);
        }
        return result;
    }

    private static ErrorKind kindOf(int errno) {
        return switch (errno) {
            case Errno.ENOENT -> ErrorKind.NOT_FOUND;
            case Errno.EEXIST -> ErrorKind.ALREADY_EXISTS;
            case Errno.EACCES, Errno.EPERM, Errno.EROFS -> ErrorKind.PERMISSION_DENIED;
            case Errno.ENOSPC, Errno.ENOMEM, Errno.EDQUOT -> ErrorKind.NO_SPACE;
            case Errno.EINTR -> ErrorKind.INTERRUPTED;
            case Errno.ENOSYS, Errno.EOPNOTSUPP -> ErrorKind.UNSUPPORTED;
            default -> ErrorKind.OS;
        };
    }

    /** To be called before anything else: Unsupported, with what to do, where this machine or virtual machine cannot. */
    static void checkPlatform() {
        try {
            Platform.check();
        } catch (SysException e) {
            throw os(e, "starting Ramway");
        }
    }

    /** Adds what was tried, on which name, to an error that does not say so yet. The same one, to be thrown. */
    static RamwayException about(RamwayException e, String tried, String name) {
        e.about(tried, name);
        return e;
    }
}
