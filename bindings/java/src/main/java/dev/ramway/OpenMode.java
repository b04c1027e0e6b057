package dev.ramway;

/** What may happen to a name. */
enum OpenMode {
    CREATE("creating"),
    OPEN("opening"),
    OPEN_OR_CREATE("opening or creating");

    private final String verb;

    OpenMode(String verb) {
        this.verb = verb;
    }

    String verb() {
        return verb;
    }
}
