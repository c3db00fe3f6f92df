/* quire mcp: speaks MCP on standard input and output, one message a line, until the input ends. Nothing else is printed there.
 * It runs jobs while it owns the data folder, so that what an agent adds can be found; otherwise the owner does. */
#include "cli/items.h"
#include "mcp/mcp.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct session {
    struct cli *cli;
    struct cli_work work;
    /* The process that owned the folder did not answer: before the next message another way is looked for. */
    bool is_lost;
    struct qr_buf input;
    size_t seen_bytes; /* of the input, without an end of a line in them */
    bool is_dropping;  /* until the end of a line that is too long */
};

/* ---- requests ---- */

static qr_rc ask(void *arg, const struct quire_request *request, int *ret_status, json_t **ret_answer, qr_err *err)
{
    struct session *session = arg;
    const qr_rc rc =
        cli_ask(session->cli, request->method, request->target, request->body, ret_status, ret_answer, err);
    session->is_lost = rc == QR_UNAVAILABLE && !session->cli->quire;
    return rc;
}

/* The request that met the loss is not sent again: it may have taken effect. */
static int find_again(struct session *session)
{
    if (!session->is_lost) {
        return 0;
    }
    cli_stop_work(&session->work);
    cli_close(session->cli);
    /* where that fails this message is answered with what is wrong, and the next tries again */
    session->is_lost = cli_open(session->cli) != 0;
    return session->is_lost ? 0 : cli_start_work(&session->work, session->cli);
}

/* ---- messages ---- */

static int write_line(const struct session *session, struct qr_buf *text)
{
    qr_err err;
    qr_buf_add_char(text, '\n');
    if (qr_buf_check(text, &err) != QR_OK) {
        return cli_fail(session->cli, &err);
    }
    if (fwrite(text->data, 1, text->len, stdout) != text->len || fflush(stdout) != 0) {
        qr_fail_errno(&err, errno, "cannot write to standard output");
        return cli_fail(session->cli, &err);
    }
    return 0;
}

static int answer(struct session *session, qr_str line)
{
    const struct quire_mcp mcp = {.ask = ask, .arg = session};
    const struct quire_request owner = {.is_local_owner = 1};
    struct quire_mcp_answer answer = {0};
    qr_err err = {0};
    if (qr_str_trim(line).len == 0) {
        return 0;
    }
    int exit_code = find_again(session);
    if (exit_code == 0 && quire_mcp_message(&mcp, &owner, line, &answer, &err) != QR_OK) {
        exit_code = cli_fail(session->cli, &err);
    }
    if (exit_code == 0 && answer.text.len) {
        exit_code = write_line(session, &answer.text);
    }
    qr_buf_done(&answer.text);
    return exit_code;
}

/* All lines that have come whole. */
static int answer_lines(struct session *session)
{
    struct qr_buf *input = &session->input;
    size_t begin = 0;
    for (char *end; (end = memchr(input->data + session->seen_bytes, '\n', input->len - session->seen_bytes));) {
        const size_t line_end = (size_t)(end - input->data);
        const int exit_code =
            session->is_dropping ? 0 : answer(session, (qr_str){input->data + begin, line_end - begin});
        session->is_dropping = false;
        begin = session->seen_bytes = line_end + 1;
        if (exit_code) {
            return exit_code;
        }
    }
    memmove(input->data, input->data + begin, input->len - begin);
    input->len -= begin;
    input->data[input->len] = '\0';
    session->seen_bytes = input->len;
    return 0;
}

/* What is too long is answered as such once, and the rest of its line is not kept. */
static int bound_line(struct session *session)
{
    struct qr_buf *input = &session->input;
    if (input->len <= QUIRE_MCP_MESSAGE_BYTES_MAX) {
        return 0;
    }
    const int exit_code = session->is_dropping ? 0 : answer(session, qr_buf_str(input));
    session->is_dropping = true;
    qr_buf_clear(input);
    session->seen_bytes = 0;
    return exit_code;
}

/* ---- the input ---- */

/* True: there is input. False: a signal asks to end. */
static bool wait_for_input(int signal_fd)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
    (void)TEMP_FAILURE_RETRY(poll(fds, QR_COUNT(fds), -1));
    return !fds[1].revents;
}

static int read_messages(struct session *session, int signal_fd)
{
    enum { READ_BYTES = 64 << 10 };
    int exit_code = 0;
    while (exit_code == 0 && wait_for_input(signal_fd)) {
        qr_err err;
        char *room = qr_buf_reserve(&session->input, READ_BYTES);
        if (!room) {
            qr_fail(&err, QR_CODE_OUT_OF_MEMORY, "out of memory for a message");
            return cli_fail(session->cli, &err);
        }
        const ssize_t got = TEMP_FAILURE_RETRY(read(STDIN_FILENO, room, READ_BYTES));
        if (got < 0) {
            qr_fail_errno(&err, errno, "cannot read from standard input");
            return cli_fail(session->cli, &err);
        }
        if (got == 0) { /* a last line may do without its end */
            return session->is_dropping ? 0 : answer(session, qr_buf_str(&session->input));
        }
        qr_buf_grown(&session->input, (size_t)got);
        exit_code = answer_lines(session);
        exit_code = exit_code ? exit_code : bound_line(session);
    }
    return exit_code;
}

static int serve(struct cli *cli)
{
    struct session session = {.cli = cli};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    int exit_code = cli_start_work(&session.work, cli); /* blocks them */
    const int signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
    exit_code = exit_code ? exit_code : read_messages(&session, signal_fd);
    cli_stop_work(&session.work);
    qr_buf_done(&session.input);
    (void)close(signal_fd);
    return exit_code;
}

int cmd_mcp(struct cli *cli)
{
    cli->json = false; /* an error is no message: it goes to standard error */
    return cli_with_data(cli, serve);
}
