/* Processes of a test: each says single bytes to its parent. */
#ifndef CHILD_H
#define CHILD_H

#include "check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define LONG (60000 * MS)

/* main makes this pipe. */
static int from_child[2];

static void say(char what) { CHECK(write(from_child[1], &what, 1) == 1); }

static char hear(void) {
    char what;
    CHECK(read(from_child[0], &what, 1) == 1);
    return what;
}

/* `end` is exit; or _exit, where the parent's handles, to which the copy has no pointer any more, would be leaks. */
static pid_t forked(void (*life)(void), void (*end)(int)) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(120);
        life();
        end(0);
    }
    return pid;
}

static void ends_well(pid_t pid) {
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void is_killed(pid_t pid) { CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid); }

#endif
