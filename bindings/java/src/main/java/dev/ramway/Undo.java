package dev.ramway;

import java.util.ArrayDeque;

/** What is to be undone, the last thing first; an error in one does not keep the others from being undone. */
final class Undo {
    private final ArrayDeque<Runnable> steps = new ArrayDeque<>();

    void add(Runnable step) {
        steps.push(step);
    }

    /** Undoes everything, and then throws what went wrong first. */
    void all() {
        RuntimeException first = null;
        for (Runnable step : steps) {
            try {
                step.run();
            } catch (RuntimeException e) {
                if (first == null) {
                    first = e;
                } else {
                    first.addSuppressed(e);
                }
            }
        }
        steps.clear();
        if (first != null) {
            throw first;
        }
    }
}
