#include "support/program.h"

#include "base/proc.h"

#include <errno.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUT_SIZE = 256 << 10, LINES_MAX = 200, COLUMNS_MAX = 400 };

static char out[OUT_SIZE], errors[OUT_SIZE];

struct line {
    char data[256], home[256];
    const char *argv[PROGRAM_ARGS_MAX + 4], *env[PROGRAM_ENV_MAX + 3];
};

static void fill(struct qr_test *t, const struct program *program, struct line *line)
{
    size_t count = 0;
    snprintf(line->data, sizeof line->data, "%s/data", t->dir);
    snprintf(line->home, sizeof line->home, "HOME=%s", t->dir);
    line->argv[count++] = QUIRE_BINARY_DIR "/quire";
    line->argv[count++] = "--data";
    line->argv[count++] = line->data;
    for (size_t i = 0; i < PROGRAM_ARGS_MAX && program->args[i]; i++) {
        line->argv[count++] = program->args[i];
    }
    line->argv[count] = NULL;
    count = 0;
    line->env[count++] = line->home;
    line->env[count++] = "PATH=/usr/local/bin:/usr/bin:/bin";
    for (size_t i = 0; i < PROGRAM_ENV_MAX && program->env[i]; i++) {
        line->env[count++] = program->env[i];
    }
    line->env[count] = NULL;
}

/* ---- with pipes ---- */

static void keep(const struct qr_buf *from, char *ret_text)
{
    QR_CHECK(from->len < OUT_SIZE);
    memcpy(ret_text, qr_buf_str(from).ptr, from->len);
    ret_text[from->len] = '\0';
}

struct program_end program_run(struct qr_test *t, const struct program *program)
{
    struct line line;
    QR_CLEANUP(qr_buf_done) struct qr_buf out_buf = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf err_buf = {0};
    struct qr_proc_result result;
    qr_err err;
    fill(t, program, &line);
    const struct qr_proc_options options = {.argv = line.argv,
                                            .env = line.env,
                                            .dir = t->dir,
                                            .input = qr_str_of(program->input ? program->input : ""),
                                            .output_bytes_max = OUT_SIZE - 1,
                                            .timeout_ms = 50000};
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &out_buf, &err_buf, &result, &err));
    keep(&out_buf, out);
    keep(&err_buf, errors);
    return (struct program_end){result.exit_code, out, errors};
}

const char *program_check(struct qr_test *t, const struct program *program, int exit_code, const char *says)
{
    const struct program_end end = program_run(t, program);
    const char *where = exit_code > 1 ? end.errors : end.out;
    if (end.exit_code != exit_code || !strstr(where, says)) {
        QR_FAIL("%s: exit code %d, not %d with \"%s\": %s%s", program->args[0], end.exit_code, exit_code, says, end.out,
                end.errors);
    }
    return where;
}

/* ---- on a terminal ---- */

static void run_there(struct qr_test *t, const struct line *line)
{
    if (chdir(t->dir) == 0) {
        execve(line->argv[0], (char *const *)(uintptr_t)line->argv, (char *const *)(uintptr_t)line->env);
    }
    _exit(127);
}

/* Until the program has closed it; then reading fails. */
static void read_terminal(int terminal, const char *ctrl_c_upon)
{
    size_t used = 0;
    ssize_t got;
    while ((got = TEMP_FAILURE_RETRY(read(terminal, out + used, OUT_SIZE - 1 - used))) > 0) {
        used += (size_t)got;
        out[used] = '\0';
        QR_CHECK(used < OUT_SIZE - 1);
        if (ctrl_c_upon && strstr(out, ctrl_c_upon)) {
            QR_CHECK(write(terminal, "\003", 1) == 1);
            ctrl_c_upon = NULL;
        }
    }
    out[used] = '\0';
}

struct program_end program_run_on_terminal(struct qr_test *t, const struct program *program)
{
    struct line line;
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)(program->columns ? program->columns : 80)};
    int terminal, status;
    fill(t, program, &line);
    const pid_t pid = forkpty(&terminal, NULL, NULL, &size);
    QR_CHECK(pid >= 0);
    if (pid == 0) {
        run_there(t, &line);
    }
    read_terminal(terminal, program->ctrl_c_upon);
    QR_CHECK(waitpid(pid, &status, 0) == pid);
    close(terminal);
    return (struct program_end){WIFEXITED(status) ? WEXITSTATUS(status) : -1, out, ""};
}

/* ---- what is seen ---- */

struct screen {
    char cells[LINES_MAX][COLUMNS_MAX][5]; /* UTF-8 */
    int line, column, last;
};

static void clear_rest(struct screen *screen)
{
    for (int i = screen->column; i < COLUMNS_MAX; i++) {
        screen->cells[screen->line][i][0] = '\0';
    }
}

/* "[K", "[A", "[31m"; returns the bytes it took. */
static size_t obey(struct screen *screen, const char *sequence)
{
    const size_t len = strcspn(sequence + 1, "ABCDHJKmhl") + 2;
    QR_CHECK(sequence[0] == '[');
    switch (sequence[len - 1]) {
    case 'K':
        clear_rest(screen);
        break;
    case 'A':
        QR_CHECK(screen->line-- > 0);
        break;
    case 'm':
        break;
    default:
        QR_FAIL("an unknown sequence: %.10s", sequence);
    }
    return len;
}

static size_t put(struct screen *screen, qr_str rest, int columns)
{
    const size_t len = qr_utf8_char_len(rest);
    QR_CHECK(len > 0 && len < sizeof screen->cells[0][0]);
    if (screen->column >= columns) {
        QR_FAIL("a line is longer than %d columns", columns);
    }
    memcpy(screen->cells[screen->line][screen->column], rest.ptr, len);
    screen->cells[screen->line][screen->column++][len] = '\0';
    return len;
}

const char *program_screen(const char *printed, int columns)
{
    static struct screen screen;
    static char text[LINES_MAX * COLUMNS_MAX];
    size_t used = 0;
    screen = (struct screen){0};
    for (qr_str rest = qr_str_of(printed); rest.len;) {
        size_t took = 1;
        if (rest.ptr[0] == '\r') {
            screen.column = 0;
        } else if (rest.ptr[0] == '\n') {
            screen.line++;
            screen.last = QR_MAX(screen.last, screen.line);
            QR_CHECK(screen.line < LINES_MAX);
        } else if (rest.ptr[0] == '\033') {
            took += obey(&screen, rest.ptr + 1);
        } else {
            took = put(&screen, rest, QR_MIN(columns, (int)COLUMNS_MAX));
        }
        rest = (qr_str){rest.ptr + took, rest.len - took};
    }
    for (int y = 0; y <= screen.last; y++) {
        for (int x = 0; x < COLUMNS_MAX && screen.cells[y][x][0]; x++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", screen.cells[y][x]);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "\n");
    }
    return text;
}
