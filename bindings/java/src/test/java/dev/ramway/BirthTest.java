package dev.ramway;

import static dev.ramway.Rings.expectNames;
import static dev.ramway.Rings.hold;
import static dev.ramway.Rings.names;
import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.ramway.sys.Errno;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** Where every file needs a name: the same life under a dot-name that nobody takes for a segment. */
class BirthTest {
    private final Path dir = Scratch.directory("birth");
    private final Path name = dir.resolve("ring");

    private SegmentStage build(SegmentName place) throws RetryLater {
        SegmentRequest request = new SegmentRequest(name.toString(), OpenMode.CREATE, Facts.KIND_RING,
                SegmentSpec.ring(4096, 16, 4096).named(false), Facts.BYTE_PRODUCER, false, Options.DEFAULT, found -> {});
        SegmentStage birth = new SegmentStage(request);
        birth.build(place, false);
        return birth;
    }

    @Test
    void underADotName() throws RetryLater {
        try (SegmentName place = SegmentName.resolve(name.toString(), true)) {
            SegmentStage first = build(place);
            assertEquals(1, names(dir).size());
            assertTrue(names(dir).get(0).matches("\\.ramway-[0-9a-f]{16}\\.new"), names(dir).toString());
            assertEquals(0, first.giveName(place));
            expectNames(dir, "ring");
            SegmentStage second = build(place);
            assertEquals(-Errno.EEXIST, second.giveName(place));
            second.drop();
            expectNames(dir, "ring");
            // The one that was dropped did not let go of the living one's role.
            refused(ErrorKind.BUSY, name, OpenMode.OPEN, Options.DEFAULT, Role.PRODUCER);
            hold(name, OpenMode.OPEN, Options.DEFAULT, Role.CONSUMER).release();
            first.drop();
            expectNames(dir);
        }
    }

    /** A cleaner is faster than the creator: it starts over instead of publishing a file that is gone. */
    @Test
    void theDotNameIsTakenAway() throws Exception {
        try (SegmentName place = SegmentName.resolve(name.toString(), true)) {
            SegmentStage birth = build(place);
            Files.delete(dir.resolve(names(dir).get(0)));
            assertEquals(-Errno.ENOENT, birth.giveName(place));
            birth.drop();
            expectNames(dir);
            SegmentStage again = build(place);
            Files.delete(dir.resolve(names(dir).get(0)));
            assertTrue(assertThrows(RetryLater.class, () -> again.create(place)).race);
            again.create(place).drop();
            expectNames(dir);
        }
    }
}
