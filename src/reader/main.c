/* quire-reader: converts files for quire, one after another, without any right that a file could abuse. Started by quire; what
 * is said on its socket, its standard input, is in convert/reader_wire.h.
 *
 * First everything is loaded that converting may need, then all rights are given up, and only then the first byte of a
 * file is read. Ends when quire closes the socket, dies with the thread of quire that started it. */
#include "base/mem.h"
#include "convert/encoding.h"
#include "convert/reader_wire.h"
#include "reader/sandbox.h"
#include "reader/trouble.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    KEPT_BYTES_MAX = 1 << 20, /* between two files */
    SCARCE_BYTES = 16 << 20,
    EXIT_USAGE = 2,
};

static const char usage[] = "quire-reader " QUIRE_VERSION "\n\n"
                            "quire starts this program to read files in it, without any rights.\n\n"
                            "usage: quire-reader --protections    prints what this kernel protects with\n"
                            "       quire-reader --version\n";

/* ---- running out of memory ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* Else a sanitizer ends the process itself. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}
#endif

/* Libraries crash when there is none; then it is the memory that was to blame. This is known of our own calls; of theirs by
 * what is left. */
static volatile sig_atomic_t has_starved;

static void *note_failure(void *block)
{
    has_starved |= !block;
    return block;
}

static void *alloc_noted(size_t size_bytes)
{
    return note_failure(malloc(size_bytes));
}

static void *resize_noted(void *old, size_t size_bytes)
{
    return note_failure(realloc(old, size_bytes));
}

static const struct qr_mem_hooks noted_hooks = {alloc_noted, resize_noted, free};

static void on_fault(int number QR_UNUSED)
{
    if (has_starved ||
        mmap(NULL, SCARCE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
        _exit(QR_READER_EXIT_MEMORY);
    } /* else the fault comes again, and nobody catches it */
}

static void watch_memory(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGABRT};
    qr_mem_set_hooks(&noted_hooks);
    for (size_t i = 0; i < QR_COUNT(faults); i++) {
        (void)sigaction(faults[i], &(struct sigaction){.sa_handler = on_fault, .sa_flags = SA_RESETHAND}, NULL);
    }
}

/* ---- loading ---- */

/* iconv loads a file for each encoding, and keeps it while somebody has it open: so these stay open. */
static void load_encodings(void)
{
    const char *charset;
    for (size_t i = 0; (charset = qr_charset_at(i)); i++) {
        (void)iconv_open("UTF-8", charset); /* one that this system lacks is missed when it is needed */
    }
}

/* ---- the socket ---- */

/* What was read together with something before it: a small file comes with its request. */
struct input {
    char bytes[1 << 16];
    size_t start, end;
};

static size_t read_some(void *to, size_t len)
{
    const ssize_t got = TEMP_FAILURE_RETRY(read(STDIN_FILENO, to, len));
    return got > 0 ? (size_t)got : 0;
}

/* False at its end. */
static bool read_all(struct input *input, void *to, size_t len)
{
    char *at = to;
    while (len) {
        size_t got;
        if (input->start == input->end && len >= sizeof input->bytes) {
            got = read_some(at, len); /* a large file is not copied once more */
        } else {
            if (input->start == input->end) {
                input->start = 0;
                input->end = read_some(input->bytes, sizeof input->bytes);
            }
            got = QR_MIN(len, input->end - input->start);
            memcpy(at, input->bytes + input->start, got);
            input->start += got;
        }
        if (got == 0) {
            return false;
        }
        at += got;
        len -= got;
    }
    return true;
}

static void write_all(struct iovec *parts, int count)
{
    while (count) {
        ssize_t sent = writev(STDIN_FILENO, parts, count);
        if (sent < 0 && errno != EINTR) {
            _exit(EXIT_FAILURE); /* quire has gone */
        }
        for (sent = QR_MAX(sent, 0); count && (size_t)sent >= parts->iov_len; parts++, count--) {
            sent -= (ssize_t)parts->iov_len;
        }
        if (count) {
            parts->iov_base = (char *)parts->iov_base + sent;
            parts->iov_len -= (size_t)sent;
        }
    }
}

/* The text with a NUL behind it; none where the text is NULL. */
static void send_answer(struct qr_buf *answer, qr_str text)
{
    char nul[] = "";
    const size_t nul_len = text.ptr ? 1 : 0;
    struct qr_reader_answer head = {.magic = QR_READER_MAGIC, .len = answer->len + text.len + nul_len};
    struct iovec parts[] = {{&head, sizeof head},
                            {answer->data, answer->len},
                            {(void *)(uintptr_t)text.ptr, text.len}, /* writev only reads it */
                            {nul, nul_len}};
    write_all(parts, QR_COUNT(parts));
}

/* ---- serving ---- */

static qr_rc convert(qr_str bytes, const char *name, struct qr_arena *arena, struct qr_converted *ret, qr_err *err)
{
    qr_rc rc;
    return reader_trouble_take(bytes, arena, ret, &rc, err) ? rc : qr_convert(bytes, name, arena, ret, err);
}

static qr_rc encode(const struct qr_converted *converted, size_t text_bytes_max, struct qr_buf *answer, qr_err *err)
{
    qr_answer_encode(converted, answer);
    if (converted->text.len > text_bytes_max ||
        answer->len + converted->text.len >= qr_answer_bytes_max(text_bytes_max)) {
        return qr_fail(err, QR_CODE_LIMIT_EXCEEDED, "its text is longer than %zu bytes", text_bytes_max);
    }
    return qr_buf_check(answer, err);
}

static void answer_request(const struct qr_reader_request *request, qr_str bytes, const char *name,
                           struct qr_arena *arena, struct qr_buf *answer)
{
    struct qr_converted converted = {0};
    qr_err error = {0};
    qr_rc rc = convert(bytes, name, arena, &converted, &error);
    rc = rc == QR_OK ? encode(&converted, (size_t)request->text_bytes_max, answer, &error) : rc;
    if (rc == QR_OK) {
        send_answer(answer, (qr_str){converted.text.ptr ? converted.text.ptr : "", converted.text.len});
        return;
    }
    qr_buf_clear(answer);
    qr_answer_encode_error(&error, answer);
    if (answer->failed != QR_CODE_NONE) {
        _exit(QR_READER_EXIT_MEMORY);
    }
    send_answer(answer, (qr_str){0});
}

/* Name and bytes, each with a NUL behind it; the caller's. */
static char *read_content(struct input *input, const struct qr_reader_request *request)
{
    size_t len;
    if (request->magic != QR_READER_MAGIC || request->name_len > QR_READER_NAME_BYTES_MAX ||
        QR_ADD_OVERFLOWS((size_t)request->bytes_len, (size_t)request->name_len + 2, &len)) {
        _exit(EXIT_USAGE);
    }
    char *content = qr_alloc(len);
    if (!content) {
        _exit(QR_READER_EXIT_MEMORY);
    }
    content[request->name_len] = content[len - 1] = '\0';
    if (!read_all(input, content, request->name_len) ||
        !read_all(input, content + request->name_len + 1, (size_t)request->bytes_len)) {
        _exit(EXIT_FAILURE);
    }
    return content;
}

static void serve(void)
{
    static struct input input;
    struct qr_reader_request request;
    struct qr_arena arena;
    struct qr_buf answer = {0};
    qr_arena_init(&arena, 0);
    while (read_all(&input, &request, sizeof request)) {
        has_starved = 0;
        char *content = read_content(&input, &request);
        const qr_str bytes = {content + request.name_len + 1, (size_t)request.bytes_len};
        answer_request(&request, bytes, content, &arena, &answer);
        reader_trouble_after(bytes);
        qr_free(content);
        qr_buf_clear(&answer);
        if (arena.total_bytes > KEPT_BYTES_MAX || answer.capacity > KEPT_BYTES_MAX) {
            qr_arena_done(&arena);
            qr_buf_done(&answer);
        }
        qr_arena_reset(&arena);
    }
}

static void say_hello(const struct reader_rights *rights)
{
    struct qr_reader_hello hello = {.magic = QR_READER_MAGIC,
                                    .protocol = QR_READER_PROTOCOL,
                                    .protections = rights->protections,
                                    .landlock_abi = rights->landlock_abi};
    static_assert(sizeof QUIRE_VERSION <= sizeof hello.version, "the version fits");
    memcpy(hello.version, QUIRE_VERSION, sizeof QUIRE_VERSION);
    write_all(&(struct iovec){&hello, sizeof hello}, 1);
}

/* ---- the program ---- */

static bool is_socket(int fd)
{
    int type;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

/* Where the whole machine runs out of memory, this process is to go, not quire. */
static void go_first(void)
{
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        const ssize_t written = write(fd, "1000", 4); /* a wish: it may be refused */
        (void)written;
        close(fd);
    }
}

static int run_serve(const char *parent)
{
    qr_err err;
    int64_t pid;
    if (!is_socket(STDIN_FILENO) || !qr_str_to_i64(qr_str_of(parent), &pid)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != pid || reader_trouble_load(&err) != QR_OK) {
        return EXIT_FAILURE; /* quire died before we asked to follow it; or the test is wrong */
    }
    go_first();
    watch_memory();
    load_encodings();
    const struct reader_rights rights = reader_give_up_rights();
    say_hello(&rights);
    serve();
    _exit(EXIT_SUCCESS); /* what else would be done at the end needs rights */
}

static int run_protections(void)
{
    char line[80];
    const struct reader_rights rights = reader_give_up_rights();
    const int len = snprintf(line, sizeof line, "{\"landlock\":%u,\"seccomp\":%s,\"limits\":%s}\n", rights.landlock_abi,
                             rights.protections & QR_PROTECTION_SECCOMP ? "true" : "false",
                             rights.protections & QR_PROTECTION_LIMITS ? "true" : "false");
    _exit(write(STDOUT_FILENO, line, (size_t)len) == len ? EXIT_SUCCESS : EXIT_FAILURE); /* stdio would ask for more */
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--serve") == 0) {
        return run_serve(argv[2]);
    }
    if (argc == 2 && strcmp(argv[1], "--protections") == 0) {
        return run_protections();
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("quire-reader " QUIRE_VERSION);
        return EXIT_SUCCESS;
    }
    fputs(usage, stderr);
    return EXIT_USAGE;
}
