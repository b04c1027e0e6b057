package dev.ramway.sys;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;

/**
 * One memory control group that this process is in.
 *
 * @param dir where its files are
 * @param v2 of the second version's hierarchy
 */
record ControlGroup(String dir, boolean v2) {
    /**
     * A limit, and what is left of it, in bytes.
     *
     * @param limit the limit
     * @param left what is left
     */
    record Room(long limit, long left) {}

    static List<ControlGroup> ofThisProcess() {
        return of(Files.text("/proc/self/cgroup"), Files.text("/proc/self/mountinfo"));
    }

    /** The groups of a process, innermost first: each level has a limit of its own. */
    static List<ControlGroup> of(String cgroup, String mountinfo) {
        List<ControlGroup> groups = new ArrayList<>();
        for (String line : cgroup.split("\n")) {
            // `0::/path` (version 2) or `4:memory:/path`.
            String[] parts = line.split(":", 3);
            if (parts.length != 3) {
                continue;
            }
            boolean v2 = parts[0].equals("0") && parts[1].isEmpty();
            if (!v2 && !contains(parts[1], "memory")) {
                continue;
            }
            String[] mount = mount(mountinfo, v2);
            if (mount == null) {
                continue;
            }
            for (String dir = join(mount[1], below(parts[2], mount[0]));; dir = parent(dir)) {
                groups.add(new ControlGroup(dir, v2));
                if (dir.equals(mount[1]) || dir.equals("/")) {
                    break;
                }
            }
        }
        return groups;
    }

    /** Where the mount shows only a part of the tree and the process is outside of it, its root is all there is. */
    private static String below(String path, String root) {
        if (root.equals("/")) {
            return path;
        }
        String rest = path.startsWith(root) ? path.substring(root.length()) : "";
        return rest.startsWith("/") ? rest : "";
    }

    private static String join(String mount, String below) {
        String path = mount + (below.startsWith("/") ? below : "/" + below);
        while (path.length() > 1 && path.endsWith("/")) {
            path = path.substring(0, path.length() - 1);
        }
        return path;
    }

    private static String parent(String dir) {
        int slash = dir.lastIndexOf('/');
        return slash <= 0 ? "/" : dir.substring(0, slash);
    }

    private static boolean contains(String list, String name) {
        return Arrays.asList(list.split(",")).contains(name);
    }

    /** The root within the hierarchy and the mount point of the memory controller, or null. */
    private static String[] mount(String mountinfo, boolean v2) {
        for (String line : mountinfo.split("\n")) {
            String[] sides = line.split(" - ", 2);
            if (sides.length != 2) {
                continue;
            }
            String[] before = sides[0].trim().split("\\s+");
            String[] after = sides[1].trim().split("\\s+");
            if (before.length < 5 || after.length < 3) {
                continue;
            }
            if (v2 ? after[0].equals("cgroup2") : after[0].equals("cgroup") && contains(after[2], "memory")) {
                return new String[] {before[3], before[4]};
            }
        }
        return null;
    }

    String limitFile() {
        return dir + (v2 ? "/memory.max" : "/memory.limit_in_bytes");
    }

    /** The limit, and what is left of it; null where there is no limit. */
    Room room() {
        // Version 2 says "max", version 1 the largest multiple of a page, for none.
        OptionalLong limit = Space.number(Files.text(limitFile()));
        if (limit.isEmpty() || limit.getAsLong() < 0 || limit.getAsLong() >= 1L << 60) {
            return null;
        }
        OptionalLong current = Space.number(Files.text(dir + (v2 ? "/memory.current" : "/memory.usage_in_bytes")));
        if (current.isEmpty()) {
            return null;
        }
        long usage = current.getAsLong();
        // Cached disk pages count as used, yet give way. Shared memory is not among them: it is on the anonymous lists.
        String stat = Files.text(dir + "/memory.stat");
        for (String name : List.of("inactive_file", "active_file")) {
            long cache = Space.field(stat, v2 ? name : "total_" + name).orElse(0);
            usage -= Math.min(usage, cache);
        }
        return new Room(limit.getAsLong(), limit.getAsLong() - Math.min(limit.getAsLong(), usage));
    }
}
