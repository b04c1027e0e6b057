/**
 * Shared memory between the processes of one machine. Needs {@code --enable-native-access=dev.ramway} (or
 * {@code ALL-UNNAMED}, on the class path), because it maps memory and calls libc.
 */
module dev.ramway {
    exports dev.ramway;
}
