package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.Lock;
import dev.ramway.sys.SysException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;

/**
 * What is there: the named segments of a directory, and how to remove what nobody uses.
 *
 * {@snippet :
 * for (Segments.Found each : Segments.ls()) {
 *     System.out.println(each.name() + (each.inUse() ? " is in use" : " is not in use"));
 * }
 * }
 */
public final class Segments {
    private Segments() {}

    /** What a segment holds. */
    public enum Kind {
        /** Shared bytes. */
        REGION,
        /** A ring. */
        RING,
        /** A bus, which has a name only where somebody gave it one. */
        BUS,
        /** The lock of a listener. */
        LISTENER,
        /** A topic. */
        TOPIC
    }

    /**
     * A file at one moment. Of a segment in use everything may have changed since.
     *
     * @param name in its directory
     * @param path where it is
     * @param kind what it holds; null if {@code error} says why that is not known
     * @param inUse somebody uses it
     * @param persistent its name stays when its last user goes
     * @param stale nobody uses it, or it was left by another boot
     * @param size of the whole file, in bytes
     * @param capacity of a ring or topic, or the length of a region, in bytes; else 0
     * @param align of the payloads of a ring or topic; else 0
     * @param used bytes of a ring that are not released
     * @param undelivered messages of a ring; empty where the ring moves too fast to count, is damaged, or is no ring
     * @param producerHeld somebody is its sender, or a topic's publisher; of a listener: somebody listens
     * @param consumerHeld somebody is its receiver
     * @param topic what a topic has besides; null of all else
     * @param error why this cannot be read as a segment: ABI_MISMATCH for what is not Ramway's or of another version, CORRUPT,
     *     PERMISSION_DENIED; null if it can
     */
    public record Found(String name, Path path, Kind kind, boolean inUse, boolean persistent, boolean stale, long size, long capacity,
            int align, long used, OptionalLong undelivered, boolean producerHeld, boolean consumerHeld, TopicState topic,
            RamwayException error) {}

    /**
     * What a topic has besides, at one moment.
     *
     * @param seq the number of the newest message; 0: there is none, or the publisher writes too fast to read it
     * @param slots how many subscribers it has room for
     * @param lossyOnly its creator refuses reliable ones
     * @param mayEject its creator lets a publisher eject slow ones
     * @param subscribers who has a slot, as {@link Publisher#subscribers} says it; for how long one blocks is known to the publisher only
     */
    public record TopicState(long seq, int slots, boolean lossyOnly, boolean mayEject, List<SubscriberInfo> subscribers) {}

    /** What became of a file. */
    public enum Outcome {
        /** It is gone; with dryRun it would be. */
        REMOVED,
        /** It stays, for the reason that is given. */
        KEPT,
        /** It is not Ramway's, and was not inspected any further. */
        NOT_RAMWAY,
        /** It could not be judged or removed. */
        FAILED
    }

    /**
     * One file's outcome.
     *
     * @param name in its directory
     * @param outcome what became of it
     * @param reason why it stays; empty if it was removed
     */
    public record Cleaned(String name, Outcome outcome, String reason) {}

    /** {@return the segments of the Ramway directory: {@link #ls(Path)}} */
    public static List<Found> ls() {
        return ls(Path.of(SegmentName.directory()));
    }

    /**
     * Every regular file of a directory whose name does not begin with a dot, sorted; what cannot be read as a segment is there
     * with an error. Files are read and locks asked for: nothing is mapped, locked or written. A directory that is not there is
     * empty.
     *
     * @param directory which one
     * @return what is there
     * @throws RamwayException if the directory cannot be read
     */
    public static List<Found> ls(Path directory) {
        List<Found> all = new ArrayList<>();
        for (String name : names(directory)) {
            if (name.startsWith(".")) {
                continue;
            }
            Path path = directory.resolve(name);
            try (SegmentName place = SegmentName.resolve(text(path), false)) {
                Found found = inspect(name, path, place);
                if (found != null) {
                    all.add(found);
                }
            } catch (RamwayException e) {
                // Gone since, or never a file that could be one.
                if (e.kind() != ErrorKind.NOT_FOUND && e.kind() != ErrorKind.INVALID_ARGUMENT) {
                    all.add(new Found(name, path, null, false, false, false, 0, 0, 0, 0, OptionalLong.empty(), false, false,
                            null, Errors.about(e, "inspecting", path.toString())));
                }
            }
        }
        return all;
    }

    private static String text(Path path) {
        String text = path.toString();
        return text.indexOf('/') >= 0 ? text : "./" + text;
    }

    private static List<String> names(Path directory) {
        Objects.requireNonNull(directory, "directory");
        List<String> names = new ArrayList<>();
        try (var entries = Files.newDirectoryStream(directory)) {
            entries.forEach(path -> names.add(path.getFileName().toString()));
        } catch (NoSuchFileException e) {
            return List.of();
        } catch (NotDirectoryException e) {
            throw Errors.os(Errno.ENOTDIR, "reading the directory " + directory);
        } catch (DirectoryIteratorException | UncheckedIOException | IOException e) {
            throw Errors.fail(ErrorKind.OS, "reading the directory %s: %s", directory, e);
        }
        names.sort(null);
        return names;
    }

    private static Found inspect(String name, Path path, SegmentName place) {
        SegmentFile file = SegmentFile.open(place, false);
        if (file == null) {
            return null;
        }
        int fd = file.fd();
        try {
            SegmentFile.Page page = SegmentFile.readPage(fd);
            SegmentHeader header = page.header();
            BlockGeometry g = header.blocks()[0];
            boolean inUse = Lock.isHeld(fd, Facts.BYTE_IN_USE);
            boolean isRing = header.kind() == Facts.KIND_RING;
            boolean isTopic = header.kind() == Facts.KIND_TOPIC;
            Used used = isRing ? count(fd, g, page.bytes(), inUse) : new Used(0, OptionalLong.empty());
            return new Found(name, path, Kind.values()[header.kind() - 1], inUse, header.persistent(), !inUse || header.ofAnotherBoot(),
                    page.fileSize(), header.kind() == Facts.KIND_REGION ? g.length() : g.capacity(), isRing || isTopic ? g.align() : 0,
                    used.bytes(), used.undelivered(), isTopic ? Lock.heldByAnother(fd, Facts.BYTE_PUBLISHER) == Lock.Mode.EXCLUSIVE
                            : Lock.isHeld(fd, Facts.BYTE_PRODUCER),
                    // A topic's byte 2 is another lock.
                    !isTopic && Lock.isHeld(fd, Facts.BYTE_CONSUMER), isTopic ? TopicSurvey.of(fd, g) : null, null);
        } catch (SysException e) {
            throw Errors.os(e, "reading the locks");
        } finally {
            dev.ramway.sys.Files.close(fd);
        }
    }

    /** What a ring holds; the number of messages is empty where it is not known. */
    private record Used(long bytes, OptionalLong undelivered) {}

    /** Counts again where the receiver went on meanwhile: what was counted may have been overwritten. */
    private static Used count(int fd, BlockGeometry g, byte[] page, boolean moves) {
        SegmentUndelivered.RingState ring = SegmentUndelivered.RingState.of(page, g, 0);
        for (int attempt = 0; attempt < 4; attempt++) {
            SegmentUndelivered.Count counted = ring.count(fd);
            SegmentUndelivered.RingState now = SegmentUndelivered.RingState.of(SegmentFile.readPage(fd).bytes(), g, 0);
            if (!moves || now.head() == ring.head()) {
                return new Used(ring.used(), counted.damage() == null ? OptionalLong.of(counted.messages()) : OptionalLong.empty());
            }
            ring = now;
        }
        return new Used(0, OptionalLong.empty());
    }

    /**
     * Removes a segment that nobody uses, whatever it holds: also a persistent one, also one with undelivered messages. A dead
     * listener's socket goes with it.
     *
     * @param name a name in the Ramway directory, or a path with a '/'
     * @throws RamwayException NOT_FOUND; BUSY if somebody uses it; ABI_MISMATCH, CORRUPT or INVALID_ARGUMENT for what is no segment
     *     of this version, which stays as it is; PERMISSION_DENIED
     */
    public static void unlink(String name) {
        Objects.requireNonNull(name, "name");
        try (SegmentName place = SegmentName.resolve(name, false)) {
            SegmentFile file = SegmentFile.open(place, true);
            if (file == null) {
                throw nothing();
            }
            try {
                remove(place, file, SegmentFile.readPage(file.fd()).header().kind(), () -> null);
            } finally {
                dev.ramway.sys.Files.close(file.fd());
            }
        } catch (RamwayException e) {
            throw Errors.about(e, "unlinking", name);
        }
    }

    private static RamwayException nothing() {
        return Errors.of(ErrorKind.NOT_FOUND, "no segment has this name");
    }

    /** Removes it unless there is a reason not to, which is returned. */
    private static String remove(SegmentName place, SegmentFile file, int kind, SegmentRemoval.Judge judge) {
        SegmentRemoval removal = SegmentRemoval.tryRemove(place, file, kind, judge);
        return switch (removal.outcome()) {
            case REMOVED, KEPT -> removal.reason();
            case CHANGED -> throw nothing();
            case IN_USE, BEING_REMOVED -> throw Errors.fail(ErrorKind.BUSY,
                    "the %s is in use: close it in every process first (ramway ls shows which)", Layout.kindName(kind));
        };
    }

    /**
     * {@return what became of the Ramway directory's segments; what is undelivered stays: {@link #clean(Path, boolean, boolean)}}
     */
    public static List<Cleaned> clean() {
        return clean(Path.of(SegmentName.directory()), false, false);
    }

    /**
     * Removes the segments of a directory that nobody uses. Never one that somebody uses, and never what is not Ramway's.
     *
     * @param directory which one
     * @param undelivered also what somebody could want: undelivered messages, the end of a stream that nobody has seen, and
     *     persistent segments
     * @param dryRun only say what would be done; takes no lock
     * @return each regular file, and what became of it
     * @throws RamwayException if the directory cannot be read
     */
    public static List<Cleaned> clean(Path directory, boolean undelivered, boolean dryRun) {
        List<Cleaned> all = new ArrayList<>();
        for (String name : names(directory)) {
            if (name.startsWith(".") && !SegmentName.isDotName(name)) {
                continue;
            }
            try (SegmentName place = SegmentName.resolve(text(directory.resolve(name)), false)) {
                Cleaned outcome = cleanOne(name, place, undelivered, dryRun);
                if (outcome != null) {
                    all.add(outcome);
                }
            } catch (RamwayException e) {
                switch (e.kind()) {
                    // Gone since, a socket, a directory, or whatever else cannot be a segment.
                    case NOT_FOUND, INVALID_ARGUMENT -> { }
                    case BUSY -> all.add(new Cleaned(name, Outcome.KEPT, "in use"));
                    default -> all.add(new Cleaned(name, Outcome.FAILED, e.getMessage()));
                }
            }
        }
        return all;
    }

    private static Cleaned cleanOne(String name, SegmentName place, boolean undelivered, boolean dryRun) {
        SegmentFile file = SegmentFile.open(place, !dryRun);
        if (file == null) {
            return null;
        }
        try {
            SegmentFile.Page page = SegmentFile.readPage(file.fd());
            boolean isRamway = ByteBuffer.wrap(page.bytes()).order(ByteOrder.LITTLE_ENDIAN).getLong(0) == Facts.MAGIC;
            boolean unfinished = SegmentName.isDotName(name);
            SegmentHeader header;
            try {
                header = page.header();
            } catch (RamwayException e) {
                // A creator that was killed before it had written the header.
                boolean empty = ByteBuffer.wrap(page.bytes()).getLong(0) == 0;
                if (!unfinished || !empty && !isRamway) {
                    return isRamway ? new Cleaned(name, Outcome.KEPT, e.getMessage())
                            : new Cleaned(name, Outcome.NOT_RAMWAY, "not Ramway's");
                }
                header = null;
            }
            SegmentHeader checked = header;
            SegmentRemoval.Judge judge = () -> checked == null || unfinished || undelivered || checked.ofAnotherBoot() ? null
                    : SegmentUndelivered.reasonToKeep(file.fd(), checked);
            if (dryRun && Lock.isHeld(file.fd(), Facts.BYTE_IN_USE)) {
                return new Cleaned(name, Outcome.KEPT, "in use");
            }
            String reason = dryRun ? judge.reasonToKeep() : remove(place, file, checked == null ? Facts.KIND_RING : checked.kind(), judge);
            return reason == null ? new Cleaned(name, Outcome.REMOVED, "") : new Cleaned(name, Outcome.KEPT, reason);
        } catch (SysException e) {
            throw Errors.os(e, "reading the locks");
        } finally {
            dev.ramway.sys.Files.close(file.fd());
        }
    }
}
