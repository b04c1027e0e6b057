package dev.ramway;

import dev.ramway.sys.Files;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * What a caller wants of a name.
 *
 * @param name a name in the Ramway directory, or a path with a '/'
 * @param mode create, open, or either
 * @param kind what an existing segment must be
 * @param spec what to make; null if nothing is to be made
 * @param roleByte the byte to lock exclusively, or {@link SegmentLink#NO_ROLE}
 * @param readOnly takes no role and creates nothing
 * @param options how
 * @param check is asked about an existing segment before it is locked: what it throws keeps the segment untouched
 */
record SegmentRequest(String name, OpenMode mode, int kind, SegmentSpec spec, int roleByte, boolean readOnly, Options options,
        Consumer<SegmentHeader> check) {
    /** Runs an opening, whose errors then say what was tried on which name. */
    static <T> T named(String name, OpenMode mode, int kind, Supplier<T> opening) {
        Errors.checkPlatform();
        try {
            return opening.get();
        } catch (RamwayException e) {
            throw Errors.about(e, mode.verb() + " the " + Layout.kindName(kind), name);
        }
    }

    /**
     * Creates or opens the segment, locks it, and has it mapped by {@code map}; what that throws releases it. It blocks only as the
     * time-out says, and up to a second against others who are just creating or removing the same name.
     */
    <T> T open(Function<Segment, T> map) {
        Segment opened = new SegmentOpening(this).open();
        try {
            return map.apply(opened);
        } catch (Throwable t) {
            opened.link().close();
            throw t;
        } finally {
            // A mapping keeps the memory.
            Files.close(opened.fd());
        }
    }
}
