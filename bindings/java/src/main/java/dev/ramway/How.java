package dev.ramway;

/** What may happen to a name. */
enum How {
    CREATE("creating"),
    OPEN("opening"),
    OPEN_OR_CREATE("opening or creating");

    private final String verb;

    How(String verb) {
        this.verb = verb;
    }

    String verb() {
        return verb;
    }
}
