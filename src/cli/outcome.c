/* What became of items, for people: a line each, what failed in a folder by reason, and what to try next. */
#include "cli/items.h"
#include "cli/paint.h"

enum { STATUS_COLUMNS = 11 };

static const char nothing_new[] = "; nothing had changed";

/* ---- what became of an item ---- */

/* Its path where it has one; a note has only a name. */
static const char *title_of(const json_t *item)
{
    return cli_text(item, "source")[0] ? cli_text(item, "source") : cli_text(item, "name");
}

static bool is_folder(const json_t *item)
{
    return json_is_object(json_object_get(item, "counts"));
}

static void print_warnings(const json_t *item)
{
    const json_t *warning;
    size_t i;
    json_array_foreach(json_object_get(item, "warnings"), i, warning)
    {
        fputs(i ? ", " : "  (", stdout);
        cli_print_safe(cli_text(warning, "code"));
    }
    fputs(i ? ")" : "", stdout);
}

static void print_error_of(const struct cli *cli, const json_t *error)
{
    if (json_is_object(error)) {
        cli_paint(cli, CLI_BAD);
        fputs(": ", stdout);
        cli_print_safe(cli_text(error, "message"));
        cli_print_code(cli_text(error, "code"));
        cli_paint(cli, CLI_PLAIN);
    }
}

/* Of one that is no folder, or a folder that failed itself. */
static void print_line(const struct cli *cli, const json_t *item, int indent, const char *end)
{
    printf("%*s", indent, "");
    cli_print_status(cli_text(item, "status"), STATUS_COLUMNS);
    cli_print_safe(title_of(item));
    if (cli_is(item, "status", "completed") && !is_folder(item)) {
        const long long chunks = cli_number(item, "chunk_count");
        printf("  %lld chunk%s", chunks, chunks == 1 ? "" : "s");
    }
    print_warnings(item);
    print_error_of(cli, json_object_get(item, "error"));
    puts(end);
}

/* ---- what failed in a folder ---- */

enum {
    SHOWN_MAX = 10,        /* of all that one command tells about */
    SHOWN_OF_CODE_MAX = 3, /* a folder of pictures is no reason to hide what else failed */
    REQUESTS_MAX = 1000,   /* so that a base of a million failures is no million requests */
};

struct failures {
    struct cli_failures counts;
    long long files; /* of them; the others are folders */
    json_t *shown;   /* the first of them */
    int shown_max;
    int requests_left;
};

/* Returns how many of the code there are now. */
static long long add_code(struct cli_failures *failures, const char *code, long long count)
{
    failures->count += count;
    if (!code[0]) {
        return failures->count; /* it is in the sum alone */
    }
    for (size_t i = 0; i < failures->code_count; i++) {
        if (strcmp(failures->codes[i].code, code) == 0) {
            return failures->codes[i].count += count;
        }
    }
    if (failures->code_count < QR_COUNT(failures->codes)) {
        snprintf(failures->codes[failures->code_count].code, sizeof failures->codes[0].code, "%s", code);
        failures->codes[failures->code_count++].count = count;
    }
    return count;
}

static void add_failures_below(struct cli *cli, const json_t *folder, struct failures *failures);

static void add_failure(struct cli *cli, json_t *item, struct failures *failures)
{
    const json_t *error = json_object_get(item, "error");
    if (json_is_object(error)) {
        const long long of_code = add_code(&failures->counts, cli_text(error, "code"), 1);
        failures->files += !is_folder(item);
        if (of_code <= SHOWN_OF_CODE_MAX && (int)json_array_size(failures->shown) < failures->shown_max) {
            json_array_append(failures->shown, item);
        }
    }
    if (is_folder(item)) {
        add_failures_below(cli, item, failures);
    }
}

/* What cannot be listed is left out: the outcome is told. */
static void add_failures_below(struct cli *cli, const json_t *folder, struct failures *failures)
{
    char cursor[4096] = "";
    do {
        QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
        QR_JSON *answer = NULL;
        json_t *item;
        size_t i;
        int status = 0;
        cli_add_base_path(cli, &path, "/items?limit=200&status=failed&parent=");
        qr_buf_printf(&path, "%s%s%s", cli_text(folder, "id"), cursor[0] ? "&cursor=" : "", cursor);
        if (path.failed != QR_CODE_NONE || --failures->requests_left < 0 ||
            cli_ask(cli, "GET", path.data, NULL, &status, &answer, NULL) != QR_OK || status != 200) {
            return;
        }
        json_array_foreach(json_object_get(answer, "data"), i, item)
        {
            add_failure(cli, item, failures);
        }
        snprintf(cursor, sizeof cursor, "%s", cli_text(answer, "next_cursor"));
    } while (cursor[0]);
}

/* "; 12 failed: unsupported_type 10, too_large 2" */
static void print_failure_counts(const struct cli *cli, const struct cli_failures *failures)
{
    if (failures->count == 0) {
        return;
    }
    fputs("; ", stdout);
    cli_paint(cli, CLI_BAD);
    printf("%s%s failed", failures->is_more ? "more than " : "", cli_grouped(failures->count).text);
    cli_paint(cli, CLI_PLAIN);
    for (size_t i = 0; i < failures->code_count; i++) {
        printf("%s%s %s", i ? ", " : ": ", failures->codes[i].code, cli_grouped(failures->codes[i].count).text);
    }
}

/* ---- a folder ---- */

/* Of everything in it. False when that cannot be said now, because something in it is at work again. */
static bool load_totals(struct cli *cli, const json_t *folder, long long *ret_files, long long *ret_chunks)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    int status = 0;
    cli_add_base_path(cli, &path, "/items/");
    qr_buf_printf(&path, "%s/totals?chunks=true", cli_text(folder, "id"));
    if (path.failed != QR_CODE_NONE || cli_ask(cli, "GET", path.data, NULL, &status, &answer, NULL) != QR_OK ||
        status != 200) {
        return false;
    }
    const json_t *files = json_object_get(answer, "files");
    *ret_files = cli_number(files, "total");
    *ret_chunks = cli_number(answer, "chunks");
    return cli_number(files, "active") + cli_number(files, "idle") == 0;
}

static void print_totals(const struct cli *cli, long long files, long long chunks, int64_t took_ms,
                         const struct cli_failures *failures)
{
    enum { RATE_FROM_MS = 1000 }; /* below, it says nothing */
    printf("%s file%s, ", cli_grouped(files).text, files == 1 ? "" : "s");
    printf("%s chunk%s", cli_grouped(chunks).text, chunks == 1 ? "" : "s");
    printf(" in %s", cli_duration(took_ms).text);
    if (took_ms >= RATE_FROM_MS && files * 1000 > took_ms) {
        printf(" (%s/s)", cli_grouped(files * 1000 / took_ms).text);
    }
    print_failure_counts(cli, failures);
}

static void add_to_tally(struct cli_tally *tally, long long files, long long chunks,
                         const struct cli_failures *failures)
{
    tally->items++;
    tally->files += files;
    tally->chunks += chunks;
    for (size_t i = 0; i < failures->code_count; i++) {
        add_code(&tally->failures, failures->codes[i].code, failures->codes[i].count);
    }
    tally->failures.is_more = tally->failures.is_more || failures->is_more;
}

/* "failed     /usr/share/doc  31,192 files, 48,100 chunks in 41 s; 12 failed: unsupported_type 10, too_large 2": the status
 * that `quire ls` shows, and the files that can be found. */
static void print_folder(struct cli *cli, const json_t *folder, int64_t took_ms, struct cli_tally *tally)
{
    QR_JSON *shown = json_array();
    struct failures failures = {.shown = shown, .shown_max = SHOWN_MAX - tally->shown, .requests_left = REQUESTS_MAX};
    const json_t *item;
    size_t i;
    long long files = 0, chunks = 0;
    const bool is_known = load_totals(cli, folder, &files, &chunks);
    if (cli_is(folder, "status", "failed")) {
        add_failures_below(cli, folder, &failures);
    }
    failures.counts.is_more = failures.requests_left < 0;
    files = QR_MAX(files - failures.files, 0LL);
    cli_print_status(cli_text(folder, "status"), STATUS_COLUMNS);
    cli_print_safe(title_of(folder));
    fputs("  ", stdout);
    if (is_known) {
        print_totals(cli, files, chunks, took_ms, &failures.counts);
    } else {
        fputs("something in it is worked on again", stdout);
    }
    puts(tally->found_nothing_new ? nothing_new : "");
    json_array_foreach(shown, i, item)
    {
        print_line(cli, item, 2, "");
    }
    tally->shown += (int)i;
    add_to_tally(tally, files, chunks, &failures.counts);
}

void cli_print_outcome(struct cli *cli, const json_t *item, int64_t took_ms, struct cli_tally *tally)
{
    const json_t *error = json_object_get(item, "error");
    struct cli_failures failures = {0};
    if (is_folder(item) && !json_is_object(error)) {
        print_folder(cli, item, took_ms, tally);
        return;
    }
    print_line(cli, item, 0, tally->found_nothing_new ? nothing_new : "");
    if (json_is_object(error)) {
        add_code(&failures, cli_text(error, "code"), 1);
        tally->shown++;
    }
    add_to_tally(tally, is_folder(item) || json_is_object(error) ? 0 : 1, cli_number(item, "chunk_count"), &failures);
}

/* ---- the end ---- */

void cli_print_tally(const struct cli *cli, const struct cli_tally *tally, int64_t took_ms)
{
    if (tally->items > 1) {
        printf("together   ");
        print_totals(cli, tally->files, tally->chunks, took_ms, &tally->failures);
        fputc('\n', stdout);
    }
    if (tally->failures.count > tally->shown) {
        printf("`quire ls");
        cli_print_base_option(cli->values[0]);
        puts(" --all --status failed` lists all that failed");
    }
    if (tally->chunks && cli_has_terminal(stdout)) {
        cli_paint(cli, CLI_FAINT);
        printf("try: quire search");
        cli_print_base_option(cli->values[0]);
        printf(" 'what you look for'");
        cli_paint(cli, CLI_PLAIN);
        fputc('\n', stdout);
    }
}
