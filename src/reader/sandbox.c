/* Landlock, seccomp and limits, each on its own: files cannot be opened because Landlock knows none, because the system call is
 * not allowed, and because no further file descriptor is. One thread only: seccomp and Landlock bind the thread that asks. */
#include "reader/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- limits ---- */

static bool set_limit(int which, rlim_t value)
{
    return setrlimit((__rlimit_resource_t)which, &(struct rlimit){value, value}) == 0;
}

/* Memory and time of the processor are set from outside, for each file. */
static bool set_limits(void)
{
    const bool no_files = set_limit(RLIMIT_NOFILE, STDERR_FILENO + 1);
    const bool no_processes = set_limit(RLIMIT_NPROC, 0);
    const bool no_dumps = set_limit(RLIMIT_CORE, 0); /* the content would be in them */
    return no_files && no_processes && no_dumps;
}

/* ---- Landlock ---- */

/* As the newest version that we know has it; the headers that we build with may be older. */
struct ruleset {
    uint64_t fs, net, scoped;
};

static const struct {
    unsigned abi;
    size_t size_bytes;
    struct ruleset handled; /* what this version adds */
} landlock_versions[] = {
    {1, sizeof(uint64_t), {.fs = (UINT64_C(1) << 13) - 1}},
    {2, sizeof(uint64_t), {.fs = UINT64_C(1) << 13}},     /* refer */
    {3, sizeof(uint64_t), {.fs = UINT64_C(1) << 14}},     /* truncate */
    {4, 2 * sizeof(uint64_t), {.net = 3}},                /* bind, connect */
    {5, 2 * sizeof(uint64_t), {.fs = UINT64_C(1) << 15}}, /* ioctl of devices */
    {6, 3 * sizeof(uint64_t), {.scoped = 3}},             /* abstract sockets, signals */
};

/* Everything is handled and nothing allowed. The version of Landlock that is in force; 0 = none. */
static unsigned set_landlock(void)
{
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
    struct ruleset rules = {0};
    size_t size_bytes = 0;
    for (size_t i = 0; i < QR_COUNT(landlock_versions) && (long)landlock_versions[i].abi <= abi; i++) {
        rules.fs |= landlock_versions[i].handled.fs;
        rules.net |= landlock_versions[i].handled.net;
        rules.scoped |= landlock_versions[i].handled.scoped;
        size_bytes = landlock_versions[i].size_bytes;
    }
    const int fd = size_bytes ? (int)syscall(SYS_landlock_create_ruleset, &rules, size_bytes, 0) : -1;
    if (fd < 0) {
        return 0;
    }
    const bool holds = syscall(SYS_landlock_restrict_self, fd, 0) == 0;
    close(fd);
    return holds ? (unsigned)abi : 0;
}

/* ---- seccomp ---- */

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef OWN_ARCH

/* Memory, time and the end. `abort` asks who it is; sanitizers yield and ask for their stack. */
static const unsigned allowed_calls[] = {
    SYS_munmap,      SYS_mremap,    SYS_brk,          SYS_madvise,        SYS_futex,           SYS_exit,
    SYS_exit_group,  SYS_getpid,    SYS_gettid,       SYS_nanosleep,      SYS_clock_nanosleep, SYS_clock_gettime,
    SYS_sched_yield, SYS_getrandom, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_sigaltstack,     SYS_restart_syscall,
};

/* Allowed unless the argument is above (BPF_JGT) or has a bit of (BPF_JSET) the value. */
static const struct {
    unsigned call, argument, compare, value;
} bounded_calls[] = {
    {SYS_read, 0, BPF_JGT, STDERR_FILENO},   {SYS_write, 0, BPF_JGT, STDERR_FILENO},
    {SYS_writev, 0, BPF_JGT, STDERR_FILENO}, {SYS_mmap, 2, BPF_JSET, PROT_EXEC},
    {SYS_mprotect, 2, BPF_JSET, PROT_EXEC},
};

enum {
    HEAD_STEPS = 4,
    ALLOWED_STEPS = 2,
    BOUNDED_STEPS = 5,
    STEPS = HEAD_STEPS + ALLOWED_STEPS * QR_COUNT(allowed_calls) + BOUNDED_STEPS * QR_COUNT(bounded_calls) + 1,
    REFUSED = SECCOMP_RET_ERRNO | EPERM, /* not the end: a library that tries may have another way */
};

struct program {
    struct sock_filter steps[STEPS];
    unsigned short count;
};

static void add_step(struct program *program, unsigned code, unsigned value, unsigned if_true, unsigned if_false)
{
    program->steps[program->count++] =
        (struct sock_filter){(unsigned short)code, (unsigned char)if_true, (unsigned char)if_false, value};
}

static void add_end(struct program *program, unsigned result)
{
    add_step(program, BPF_RET | BPF_K, result, 0, 0);
}

/* The low half of an argument: all of it for a file descriptor and for protections. */
static unsigned argument_at(unsigned index)
{
    return (unsigned)offsetof(struct seccomp_data, args) + index * (unsigned)sizeof(uint64_t);
}

static void write_program(struct program *program)
{
    add_step(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    add_step(program, BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
    add_end(program, SECCOMP_RET_KILL_PROCESS); /* the numbers would mean something else */
    add_step(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    for (size_t i = 0; i < QR_COUNT(allowed_calls); i++) {
        add_step(program, BPF_JMP | BPF_JEQ | BPF_K, allowed_calls[i], 0, 1);
        add_end(program, SECCOMP_RET_ALLOW);
    }
    for (size_t i = 0; i < QR_COUNT(bounded_calls); i++) {
        add_step(program, BPF_JMP | BPF_JEQ | BPF_K, bounded_calls[i].call, 0, BOUNDED_STEPS - 1);
        add_step(program, BPF_LD | BPF_W | BPF_ABS, argument_at(bounded_calls[i].argument), 0, 0);
        add_step(program, BPF_JMP | bounded_calls[i].compare | BPF_K, bounded_calls[i].value, 1, 0);
        add_end(program, SECCOMP_RET_ALLOW);
        add_end(program, REFUSED);
    }
    add_end(program, REFUSED);
}

static bool set_seccomp(void)
{
    struct program program = {0};
    write_program(&program);
    const struct sock_fprog filter = {program.count, program.steps};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

#else

static bool set_seccomp(void)
{
    return false; /* the numbers of this machine's system calls are not known here */
}

#endif

struct reader_rights reader_give_up_rights(void)
{
    struct reader_rights rights = {0};
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);     /* others of the same user may not look into it */
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* both below ask for it */
    rights.landlock_abi = set_landlock();
    rights.protections |= rights.landlock_abi ? QR_PROTECTION_LANDLOCK : 0;
    rights.protections |= set_limits() ? QR_PROTECTION_LIMITS : 0; /* after Landlock, which needs a descriptor */
    rights.protections |= set_seccomp() ? QR_PROTECTION_SECCOMP : 0;
    return rights;
}
