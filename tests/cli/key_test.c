/* quire key as a user runs it: what it prints, and how it ends. */
#include "support/program.h"

static const char *run(struct qr_test *t, const struct program *program)
{
    return program_check(t, program, 0, "");
}

QR_TEST(a_key_is_made_listed_renewed_and_ended) /* KEY-1, KEY-6 */
{
    char secret[64];
    run(t, PROGRAM("base", "create", "notes"));
    program_check(t, PROGRAM("key", "ls"), 0, "no keys: only this machine is listened to");
    snprintf(secret, sizeof secret, "%s", run(t, PROGRAM("key", "create", "ann", "--role", "notes=viewer")));
    QR_CHECK(strncmp(secret, "qk_", 3) == 0 && strlen(secret) == 47 && secret[46] == '\n'); /* a line, nothing else */
    run(t, PROGRAM("key", "create", "boss", "--admin", "--days", "30"));
    const char *list = run(t, PROGRAM("key", "ls"));
    QR_CHECK_HAS("=viewer\n", list);
    QR_CHECK_HAS("boss, admin\n", list);
    secret[46] = '\0';
    QR_CHECK(!strstr(list, secret));
    secret[11] = '\0';
    QR_CHECK_HAS(secret, list); /* by its beginning it is told from others */
    QR_CHECK(strncmp(run(t, PROGRAM("key", "rotate", "ann", "--grace", "60")), secret, 11) != 0);
    program_check(t, PROGRAM("key", "rm", "ann"), 0, "ended ");
    program_check(t, PROGRAM("key", "rm", "ann"), 4, "there is no such key");
    QR_CHECK(!strstr(run(t, PROGRAM("key", "ls")), "ann"));
    program_check(t, PROGRAM("key", "create", "c", "--json"), 0, "\"secret\":\"qk_");
    program_check(t, PROGRAM("key", "ls", "--json"), 0, "{\"data\":[{\"id\":\"");
}

QR_TEST(what_cannot_be_meant_is_refused)
{
    program_check(t, PROGRAM("key"), 2, "quire key create, ls, rm or rotate");
    program_check(t, PROGRAM("key", "made"), 2, "quire key create, ls, rm or rotate");
    program_check(t, PROGRAM("key", "create"), 2, "quire key create NAME");
    program_check(t, PROGRAM("key", "ls", "ann"), 2, "one argument too many");
    program_check(t, PROGRAM("key", "rm", "ann", "--admin"), 2, "--admin is not for quire key rm");
    program_check(t, PROGRAM("key", "create", "ann", "--grace", "1"), 2, "--grace is not for quire key create");
    program_check(t, PROGRAM("key", "create", "ann", "--role", "notes"), 2, "BASE=ROLE");
    program_check(t, PROGRAM("key", "create", "ann", "--days", "many"), 2, "--days takes a number");
    program_check(t, PROGRAM("key", "create", "ann", "--role", "notes=viewer"), 4, "there is no base notes");
    program_check(t, PROGRAM("key", "create", "ann", "--days", "0"), 2, "expires_in_s");
}
