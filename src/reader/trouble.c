#include "reader/trouble.h"

#ifdef QUIRE_FAILPOINTS

#include "base/failpoint.h"
#include "base/mem.h"
#include "convert/reader_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4 << 20 };

qr_rc reader_trouble_load(qr_err *err)
{
    return qr_failpoints_set(getenv("QUIRE_READER_FAILPOINTS"), err);
}

/* ---- what can go wrong ---- */

static volatile bool for_ever = true;

static void loop(void)
{
    while (for_ever) {
    }
}

static void hang(void)
{
    while (for_ever) {
        nanosleep(&(struct timespec){.tv_sec = 1000}, NULL);
    }
}

/* Chained, so that they are used, and touched. */
static void take_all_memory(void)
{
    void *newest = NULL;
    for (void **block; (block = qr_alloc(BLOCK_BYTES)); newest = block) {
        memset(block, 1, BLOCK_BYTES);
        *block = newest;
    }
    while (newest) {
        void *older = *(void **)newest;
        qr_free(newest);
        newest = older;
    }
}

/* As a library does that does not look, and has no sanitizer. */
__attribute__((no_sanitize("undefined", "address"))) static void starve(void)
{
    for (char *block; (block = qr_alloc(BLOCK_BYTES));) {
        memset(block, 1, BLOCK_BYTES);
    }
    *(volatile char *)(uintptr_t)qr_alloc(BLOCK_BYTES) = 1;
}

static void say(const void *bytes, size_t len)
{
    const ssize_t written = write(STDIN_FILENO, bytes, len);
    (void)written;
}

static void flood(void)
{
    static const char noise[1 << 16];
    const struct qr_reader_answer head = {.magic = QR_READER_MAGIC, .len = UINT64_C(1) << 40};
    say(&head, sizeof head);
    while (for_ever) {
        say(noise, sizeof noise);
    }
}

static void lie(void)
{
    const struct qr_reader_answer head = {.magic = QR_READER_MAGIC, .len = 200};
    char noise[200];
    memset(noise, 0x5A, sizeof noise);
    memset(noise, 0, sizeof(uint32_t)); /* no error */
    say(&head, sizeof head);
    say(noise, sizeof noise);
}

/* ---- what it has no right to ---- */

static void add_attempt(struct qr_buf *out, const char *what, bool worked)
{
    qr_buf_printf(out, "%s: %s\n", what, worked ? "allowed" : strerrorname_np(errno));
}

static bool can_fork(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(EXIT_SUCCESS);
    }
    return pid > 0;
}

static qr_rc probe(struct qr_arena *arena, struct qr_converted *ret, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    char *const argv[] = {NULL};
    add_attempt(&out, "open", open("/etc/passwd", O_RDONLY) >= 0);
    add_attempt(&out, "create", open("/tmp/quire-reader-probe", O_WRONLY | O_CREAT, 0600) >= 0);
    add_attempt(&out, "socket", socket(AF_INET, SOCK_STREAM, 0) >= 0);
    add_attempt(&out, "fork", can_fork());
    add_attempt(&out, "exec", execve("/bin/true", argv, argv) == 0);
    add_attempt(&out, "kill", kill(getppid(), 0) == 0);
    add_attempt(&out, "limit", setrlimit(RLIMIT_AS, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) == 0);
    add_attempt(&out, "code",
                mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    add_attempt(&out, "memory",
                mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    QR_TRY(qr_buf_check(&out, err));
    *ret = (struct qr_converted){.text = {qr_arena_copy(arena, qr_buf_str(&out)), out.len},
                                 .mime = "text/plain",
                                 .source_mime = "text/plain",
                                 .charset = "utf-8"};
    return ret->text.ptr ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
}

/* ---- which ---- */

#define IS_ASKED(point_name)                                                                                           \
    (memmem(bytes.ptr, bytes.len, point_name, sizeof(point_name) - 1) && QR_FAILPOINT_RC(point_name, err) != QR_OK)

bool reader_trouble_take(qr_str bytes, struct qr_arena *arena, struct qr_converted *ret, qr_rc *ret_rc, qr_err *err)
{
    if (IS_ASKED("reader.crash")) {
        __builtin_trap();
    }
    if (IS_ASKED("reader.loop")) {
        loop();
    }
    if (IS_ASKED("reader.hang")) {
        hang();
    }
    if (IS_ASKED("reader.memory")) {
        take_all_memory();
        *ret_rc = qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
        return true;
    }
    if (IS_ASKED("reader.starve")) {
        starve();
    }
    if (IS_ASKED("reader.flood")) {
        flood();
    }
    if (IS_ASKED("reader.lie")) {
        lie();
    }
    if (IS_ASKED("reader.probe")) {
        *ret_rc = probe(arena, ret, err);
        return true;
    }
    return false;
}

bool reader_trouble_is_talk(qr_str bytes)
{
    qr_err error, *err = &error;
    return IS_ASKED("reader.chat");
}

void reader_trouble_talk(void)
{
    say("and another thing", 17);
}

#endif
