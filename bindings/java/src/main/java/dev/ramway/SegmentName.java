package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.Files;
import dev.ramway.sys.Libc;
import dev.ramway.sys.Stat;
import dev.ramway.sys.SysException;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

/** A name in a directory that is held open, so that the whole of an operation happens in one directory. */
final class SegmentName implements AutoCloseable {
    /** The directory's descriptor. */
    final int dir;
    /** The name in the directory. */
    final String file;
    /** For messages, and for those who come by path. */
    final String path;
    /** It was given as a path. */
    final boolean isPath;

    private SegmentName(int dir, String file, String path, boolean isPath) {
        this.dir = dir;
        this.file = file;
        this.path = path;
        this.isPath = isPath;
    }

    /** Where named segments live: RAMWAY_DIR, else /dev/shm/ramway-&lt;euid&gt;. It need not exist. */
    static String directory() {
        String property = System.getProperty("ramway.dir", "");
        if (!property.isEmpty()) {
            return property;
        }
        String told = System.getenv(Facts.DIRECTORY_VARIABLE);
        return told != null && !told.isEmpty() ? told : defaultDirectory();
    }

    private static String defaultDirectory() {
        return Facts.DIRECTORY_PREFIX + Integer.toUnsignedString(Libc.geteuid());
    }

    /** Whether a name may stand in the Ramway directory. */
    static boolean isValid(String name) {
        if (name.isEmpty() || name.length() > Facts.NAME_MAX || name.charAt(0) == '.' || name.endsWith(Facts.SOCKET_SUFFIX)) {
            return false;
        }
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            boolean letter = c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z';
            if (!letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-') {
                return false;
            }
        }
        return true;
    }

    /**
     * Finds the directory that a name, or a path (with a / in it), means.
     *
     * @param makeDir make the Ramway directory if it is not there; the parent of a path must exist
     * @return the place, to be closed
     */
    static SegmentName resolve(String name, boolean makeDir) {
        Errors.checkPlatform();
        int slash = name.lastIndexOf('/');
        if (slash >= 0) {
            String parent = name.substring(0, slash + 1);
            String file = name.substring(slash + 1);
            if (file.isEmpty() || file.equals(".") || file.equals("..")) {
                throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "the path \"%s\" does not end in a name", name);
            }
            // C ends a string at its first 0, and half a surrogate pair has no bytes: both would mean another file.
            if (name.indexOf('\0') >= 0 || !StandardCharsets.UTF_8.newEncoder().canEncode(name)) {
                throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "the path contains a NUL or half of a surrogate pair, which no path can");
            }
            int dir = Errors.checked(Files.openDir(parent, true), "opening the directory " + parent);
            return new SegmentName(dir, file, name, true);
        }
        if (!isValid(name)) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "the name \"%s\" cannot be used: 1 to %d of %s, not starting with a dot, "
                    + "not ending in .sock (with a / it would be a path)", name, Facts.NAME_MAX, Facts.NAME_CHARACTERS);
        }
        String root = directory();
        return new SegmentName(openRoot(root, makeDir), name, root.endsWith("/") ? root + name : root + "/" + name, false);
    }

    /**
     * Opens the Ramway directory. Everybody may make a directory or link of the default name in /dev/shm, so there its
     * type, owner and mode are checked.
     */
    private static int openRoot(String root, boolean makeDir) {
        boolean isDefault = root.equals(defaultDirectory());
        int dir = Files.openDir(root, !isDefault);
        if (dir == -Errno.ENOENT && makeDir) {
            Errors.checked(Files.makeDir(root), "making the Ramway directory " + root);
            dir = Files.openDir(root, !isDefault);
        }
        if (dir == -Errno.ENOENT) {
            throw Errors.fail(ErrorKind.NOT_FOUND,
                    "nothing has this name: the Ramway directory %s does not exist. Create it first, or check RAMWAY_DIR", root);
        }
        if (isDefault && (dir == -Errno.ENOTDIR || dir == -Errno.ELOOP)) {
            throw refused(root, "it is not a real directory");
        }
        Errors.checked(dir, "opening the Ramway directory " + root);
        if (isDefault) {
            try {
                Stat stat = Files.stat(dir);
                if (stat.uid() != Libc.geteuid() || (stat.permissions() & 077) != 0) {
                    Files.close(dir);
                    throw refused(root, String.format("it belongs to user %s and has mode %04o",
                            Integer.toUnsignedString(stat.uid()), stat.permissions()));
                }
            } catch (SysException e) {
                Files.close(dir);
                throw Errors.os(e, "checking the Ramway directory " + root);
            }
        }
        return dir;
    }

    private static RamwayException refused(String root, String found) {
        return Errors.fail(ErrorKind.PERMISSION_DENIED, "the Ramway directory %s must be a real directory of user %s with mode 0700, "
                + "but %s; remove it, or set RAMWAY_DIR to a directory of yours", root, Integer.toUnsignedString(Libc.geteuid()), found);
    }

    @Override
    public void close() {
        Files.close(dir);
    }

    /**
     * The socket that belongs to a listener's segment, both as file names: NAME.sock beside NAME; where a path is the
     * socket, the segment is PATH.lock.
     */
    static String socketOf(String segment) {
        boolean byPath = segment.endsWith(Facts.LOCK_SUFFIX) && segment.length() > Facts.LOCK_SUFFIX.length();
        return byPath ? segment.substring(0, segment.length() - Facts.LOCK_SUFFIX.length()) : segment + Facts.SOCKET_SUFFIX;
    }

    /** Whether a file in a directory has the name of a segment that was never finished. */
    static boolean isDotName(String file) {
        return file.matches(Pattern.quote(Facts.STAGED_PREFIX) + "[0-9a-f]{16}" + Pattern.quote(Facts.STAGED_SUFFIX));
    }
}
