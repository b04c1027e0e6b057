import java.lang.foreign.MemorySegment;
import java.util.zip.CRC32;

/** Every message of a ring whose longest has {@code longest} bytes. */
final class Messages {
    /** A message did not arrive as it was sent. */
    static final class BadException extends RuntimeException {
        private static final long serialVersionUID = 1L;
        final long seq;

        BadException(long seq, String text) {
            super(text, null, false, false);
            this.seq = seq;
        }
    }

    /** Message number seq. The payload is a piece of the pattern, from {@code from} on. */
    record Made(int typeId, long tag, byte[] pattern, int from, int length) {
        MemorySegment payload() {
            return MemorySegment.ofArray(pattern).asSlice(from, length);
        }
    }

    /** How long message number seq is: a number of bytes, or what is neither. */
    record Sizes(boolean ramp, long fixed) {
        static Sizes parse(String text) {
            if (text.equals("mixed") || text.equals("ramp")) {
                return new Sizes(text.equals("ramp"), -1);
            }
            try {
                return new Sizes(false, Long.parseLong(text));
            } catch (NumberFormatException e) {
                throw new Line.RefusedException("sizes is mixed, ramp or a number");
            }
        }

        long length(long seq, long longest) {
            if (fixed >= 0) {
                return fixed;
            }
            if (ramp) {
                return seq % (longest + 1);
            }
            if (seq % 1000 == 999) {
                return longest;
            }
            if (seq % 100 == 0) {
                return 0;
            }
            long x = seq * 2_654_435_761L & 0xFFFF_FFFFL;
            return seq % 50 == 1 ? x % (longest + 1) : x % 257;
        }
    }

    private final Sizes sizes;
    private final long longest;
    /** Bytes 0, 1, …, 255, 0, …: every payload is a piece of it. */
    private byte[] pattern = new byte[0];

    Messages(Line line, long longest) {
        sizes = Sizes.parse(line.text("sizes", "mixed"));
        this.longest = longest;
    }

    private byte[] pattern(long length) {
        if (pattern.length < length + 256) {
            // Twice as much as now, unless that is more than any message of this ring needs.
            long most = Math.max(length, Math.min(2L * pattern.length, longest));
            pattern = new byte[Math.toIntExact(most + 256)];
            for (int i = 0; i < pattern.length; i++) {
                pattern[i] = (byte) i;
            }
        }
        return pattern;
    }

    Made make(long seq) {
        long length = sizes.length(seq, longest);
        byte[] all = pattern(length);
        int from = (int) (seq % 256);
        CRC32 crc = new CRC32();
        crc.update(all, from, (int) length);
        return new Made((int) (seq % 60_000), tag(seq, crc), all, from, (int) length);
    }

    /** Says no to what came as message number seq and is not. */
    void check(long seq, int typeId, long tag, MemorySegment payload) {
        Made made = make(seq);
        if (payload.byteSize() != made.length) {
            throw new BadException(seq, "length %d instead of %d, tag %#018x".formatted(payload.byteSize(), made.length, tag));
        }
        if (typeId != made.typeId) {
            throw new BadException(seq, "type id %d instead of %d".formatted(typeId, made.typeId));
        }
        // Of the bytes that came, so that each of them is read.
        if (tag(seq, payload) != tag || tag != made.tag) {
            throw new BadException(seq, "tag %#018x instead of %#018x".formatted(tag, made.tag));
        }
        long at = payload.mismatch(made.payload());
        if (at >= 0) {
            throw new BadException(seq, "byte " + at);
        }
    }

    static long tag(long seq, MemorySegment payload) {
        return tag(seq, crc32(payload));
    }

    private static long tag(long seq, CRC32 crc) {
        return crc.getValue() << 32 | seq & 0xFFFF_FFFFL;
    }

    /** The number that a tag says, of one that was made here. */
    static long seqOf(long tag) {
        return tag & 0xFFFF_FFFFL;
    }

    static CRC32 crc32(MemorySegment bytes) {
        // A buffer has an int for its length.
        final long piece = 1 << 30;
        CRC32 crc = new CRC32();
        for (long at = 0; at < bytes.byteSize(); at += piece) {
            crc.update(bytes.asSlice(at, Math.min(piece, bytes.byteSize() - at)).asByteBuffer());
        }
        return crc;
    }
}
