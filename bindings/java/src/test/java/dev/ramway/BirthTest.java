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

    private Birth build(SegmentName place) throws Later {
        Named request = new Named(name.toString(), How.CREATE, Layout.KIND_RING, Spec.ring(4096, 16, 4096).named(false),
                NamedLink.BYTE_PRODUCER, false, Options.DEFAULT, found -> {});
        Birth birth = new Birth(request);
        birth.build(place, false);
        return birth;
    }

    @Test
    void underADotName() throws Later {
        try (SegmentName place = SegmentName.resolve(name.toString(), true)) {
            Birth first = build(place);
            assertEquals(1, names(dir).size());
            assertTrue(names(dir).get(0).matches("\\.ramway-[0-9a-f]{16}\\.new"), names(dir).toString());
            assertEquals(0, first.giveName(place));
            expectNames(dir, "ring");
            Birth second = build(place);
            assertEquals(-Errno.EEXIST, second.giveName(place));
            second.drop();
            expectNames(dir, "ring");
            // The one that was dropped did not let go of the living one's role.
            refused(ErrorKind.BUSY, name, How.OPEN, Options.DEFAULT, Role.PRODUCER);
            hold(name, How.OPEN, Options.DEFAULT, Role.CONSUMER).release();
            first.drop();
            expectNames(dir);
        }
    }

    /** A cleaner is faster than the creator: it starts over instead of publishing a file that is gone. */
    @Test
    void theDotNameIsTakenAway() throws Exception {
        try (SegmentName place = SegmentName.resolve(name.toString(), true)) {
            Birth birth = build(place);
            Files.delete(dir.resolve(names(dir).get(0)));
            assertEquals(-Errno.ENOENT, birth.giveName(place));
            birth.drop();
            expectNames(dir);
            Birth again = build(place);
            Files.delete(dir.resolve(names(dir).get(0)));
            assertTrue(assertThrows(Later.class, () -> again.create(place)).race);
            again.create(place).drop();
            expectNames(dir);
        }
    }
}
