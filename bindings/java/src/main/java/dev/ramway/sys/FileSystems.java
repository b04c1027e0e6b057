package dev.ramway.sys;

import java.util.Map;

/** What can be expected of a file system. */
public final class FileSystems {
    static final int TMPFS = 0x01021994;
    static final int RAMFS = 0x858458F6;
    static final int HUGETLBFS = 0x958458F6;

    // Segments are refused where shared mappings or locks do not reach everybody.
    private static final Map<Integer, String> UNSUITABLE = Map.ofEntries(
            Map.entry(0x6969, "NFS"), Map.entry(0x01021997, "9p"), Map.entry(0x65735546, "FUSE or virtiofs"),
            Map.entry(0x794C7630, "overlay"), Map.entry(0x517B, "SMB"), Map.entry(0xFF534D42, "SMB"),
            Map.entry(0xFE534D42, "SMB"), Map.entry(0x00C36400, "Ceph"), Map.entry(0x0BD00BD0, "Lustre"),
            Map.entry(0x5346414F, "AFS"), Map.entry(0x6B414653, "AFS"), Map.entry(0x73757245, "Coda"),
            Map.entry(0x786F4256, "VirtualBox shared folder"), Map.entry(0xF15F, "eCryptfs"),
            Map.entry(0x9FA0, "kernel pseudo file system"), Map.entry(0x62656572, "kernel pseudo file system"),
            Map.entry(0x27E0EB, "kernel pseudo file system"));

    private FileSystems() {}

    /** How well a file system carries segments. */
    public enum Fitness {
        /** What segments are made for. */
        MEMORY,
        /** Correct, but pages are written back, in an order of the kernel's. */
        DISK,
        /** Shared mappings or locks do not reach everybody here. */
        UNSUITABLE
    }

    /**
     * The judgement of a file system.
     *
     * @param fitness how well it carries segments
     * @param name what it is, if it is unsuitable; else empty
     */
    public record Judged(Fitness fitness, String name) {}

    /**
     * Judges the file system of a descriptor by the type that statfs names.
     *
     * @throws SysException if the kernel does not say
     */
    public static Judged judge(int fd) throws SysException {
        int type = Files.fileSystem(fd).type();
        if (type == TMPFS || type == RAMFS || type == HUGETLBFS) {
            return new Judged(Fitness.MEMORY, "");
        }
        String name = UNSUITABLE.get(type);
        return name != null ? new Judged(Fitness.UNSUITABLE, name) : new Judged(Fitness.DISK, "");
    }
}
