/* quire-reader: converts files for quire, one after another, without any right that a file could abuse. Started by quire; what
 * is said on its socket, its standard input, is in convert/reader_wire.h.
 *
 * First everything is loaded that converting may need, then all rights are given up, and only then the first byte of a
 * file is read. Ends when quire closes the socket, dies with the thread of quire that started it. */
#include "base/mem.h"
#include "base/thread.h"
#include "convert/encoding.h"
#include "convert/reader_wire.h"
#include "reader/sandbox.h"
#include "reader/trouble.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    KEPT_BYTES_MAX = 1 << 20,  /* between two files */
    HELD_BYTES_MAX = 32 << 10, /* of answers, and for so long */
    HELD_US_MAX = 20 * 1000,
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

/* Small answers wait for each other while there are more files to read: each that is sent wakes quire. */
struct output {
    char bytes[HELD_BYTES_MAX];
    size_t len;
    int64_t since_us; /* that the first of them waits */
};

static void flush(struct output *output)
{
    struct iovec held = {output->bytes, output->len};
    write_all(&held, output->len ? 1 : 0);
    output->len = 0;
}

/* Before a file that may take long. */
static void flush_old(struct output *output)
{
    if (output->len && qr_thread_mono_us() - output->since_us >= HELD_US_MAX) {
        flush(output);
    }
}

static void hold(struct output *output, const struct iovec *parts, int count)
{
    output->since_us = output->len ? output->since_us : qr_thread_mono_us();
    for (int i = 0; i < count; i++) {
        if (parts[i].iov_len) {
            memcpy(output->bytes + output->len, parts[i].iov_base, parts[i].iov_len);
            output->len += parts[i].iov_len;
        }
    }
}

/* The text with a NUL behind it; none where the text is NULL. */
static void send_answer(struct output *output, const struct qr_buf *answer, qr_str text)
{
    char nul[] = "";
    const size_t nul_len = text.ptr ? 1 : 0, len = answer->len + text.len + nul_len;
    struct qr_reader_answer head = {.magic = QR_READER_MAGIC, .len = len};
    struct iovec parts[] = {{&head, sizeof head},
                            {answer->data, answer->len},
                            {(void *)(uintptr_t)text.ptr, text.len}, /* writev only reads it */
                            {nul, nul_len}};
    if (len + sizeof head > sizeof output->bytes - output->len) {
        flush(output);
    }
    if (len + sizeof head > sizeof output->bytes) {
        write_all(parts, QR_COUNT(parts));
    } else {
        hold(output, parts, QR_COUNT(parts));
    }
}

/* What was read together with something before it: a small file comes with its request, and others behind it. */
struct input {
    char bytes[1 << 16];
    size_t start, end;
    struct output *output;
};

/* Quire may wait for what is held before it sends more. */
static size_t read_some(struct input *input, void *to, size_t len)
{
    flush(input->output);
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
            got = read_some(input, at, len); /* a large file is not copied once more */
        } else {
            if (input->start == input->end) {
                input->start = 0;
                input->end = read_some(input, input->bytes, sizeof input->bytes);
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

/* ---- serving ---- */

/* A file, of which nothing is needed any longer when it is converted. */
struct content {
    char name[QR_READER_NAME_BYTES_MAX + 1];
    struct qr_buf bytes;
};

static qr_rc convert(struct content *content, struct qr_arena *arena, struct qr_converted *ret, qr_err *err)
{
    qr_rc rc;
    return reader_trouble_take(qr_buf_str(&content->bytes), arena, ret, &rc, err)
               ? rc
               : qr_convert_last(&content->bytes, content->name, arena, ret, err);
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

/* The answer without its text, which is returned. */
static qr_str make_answer(const struct qr_reader_request *request, struct content *content, struct qr_arena *arena,
                          struct qr_buf *answer)
{
    struct qr_converted converted = {0};
    qr_err error = {0};
    qr_rc rc = convert(content, arena, &converted, &error);
    rc = rc == QR_OK ? encode(&converted, (size_t)request->text_bytes_max, answer, &error) : rc;
    if (rc == QR_OK) {
        return (qr_str){converted.text.ptr ? converted.text.ptr : "", converted.text.len};
    }
    qr_buf_clear(answer);
    qr_answer_encode_error(&error, answer);
    if (answer->failed != QR_CODE_NONE) {
        _exit(QR_READER_EXIT_MEMORY);
    }
    return (qr_str){0};
}

static void read_content(struct input *input, const struct qr_reader_request *request, struct content *content)
{
    if (request->magic != QR_READER_MAGIC || request->name_len > QR_READER_NAME_BYTES_MAX) {
        _exit(EXIT_USAGE);
    }
    char *bytes = qr_buf_reserve(&content->bytes, (size_t)request->bytes_len);
    if (!bytes) {
        _exit(QR_READER_EXIT_MEMORY);
    }
    if (!read_all(input, content->name, request->name_len) || !read_all(input, bytes, (size_t)request->bytes_len)) {
        _exit(EXIT_FAILURE);
    }
    content->name[request->name_len] = '\0';
    qr_buf_grown(&content->bytes, (size_t)request->bytes_len);
}

/* What a file needed goes back to the system before its answer goes to quire, which looks then how large we are. */
static void answer_request(struct input *input, const struct qr_reader_request *request, struct qr_arena *arena,
                           struct qr_buf *answer)
{
    static struct content content;
    read_content(input, request, &content);
    const bool talks = reader_trouble_is_talk(qr_buf_str(&content.bytes));
    flush_old(input->output);
    const qr_str text = make_answer(request, &content, arena, answer);
    qr_buf_done(&content.bytes);
    if (request->bytes_len > KEPT_BYTES_MAX) {
        malloc_trim(0);
    }
    send_answer(input->output, answer, text);
    if (talks) {
        flush(input->output);
        reader_trouble_talk();
    }
}

static void forget(struct qr_arena *arena, struct qr_buf *answer)
{
    qr_buf_clear(answer);
    if (arena->total_bytes > KEPT_BYTES_MAX || answer->capacity > KEPT_BYTES_MAX) {
        qr_arena_done(arena);
        qr_buf_done(answer);
        malloc_trim(0);
    }
    qr_arena_reset(arena);
}

static void serve(void)
{
    static struct output output;
    static struct input input = {.output = &output};
    struct qr_reader_request request;
    struct qr_arena arena;
    struct qr_buf answer = {0};
    qr_arena_init(&arena, 0);
    while (read_all(&input, &request, sizeof request)) {
        has_starved = 0;
        answer_request(&input, &request, &arena, &answer);
        forget(&arena, &answer);
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
