/* The program `quire` as a person runs it, with pipes or on a terminal, on a data folder below the test's. */
#pragma once

#include "support/test.h"

#include <sys/types.h>

enum { PROGRAM_ARGS_MAX = 20, PROGRAM_ENV_MAX = 8 };

struct program {
    const char *args[PROGRAM_ARGS_MAX];
    const char *env[PROGRAM_ENV_MAX]; /* besides HOME and PATH */
    const char *input;                /* NULL = empty */
    /* on a terminal */
    int columns;             /* 0 = 80 */
    const char *ctrl_c_upon; /* Ctrl-C is pressed when this was printed; NULL = never */
};

struct program_end {
    int exit_code;
    const char *out, *errors; /* of a terminal all in `out`; valid until the next run */
};

/* Runs `quire --data DIR/data …` in the test's folder. */
struct program_end program_run(struct qr_test *t, const struct program *program);
/* The same on a terminal of its own. */
struct program_end program_run_on_terminal(struct qr_test *t, const struct program *program);
/* Runs it; fails the test unless it ends with this exit code and prints this. */
const char *program_check(struct qr_test *t, const struct program *program, int exit_code, const char *says);
#define PROGRAM(...) (&(struct program){.args = {__VA_ARGS__}})

/* What a terminal shows after all this was printed: lines, without colours; static memory. Fails the test when a line is
 * longer than the columns. */
const char *program_screen(const char *printed, int columns);
