/* Figures come from looks at the queues; the rate is that of the last moves, which are the last seconds where something moves at
 * every look, so that time left follows what happens, and longer where work ends in bursts, so that it does not jump. */
#include "cli/progress.h"

#include "cli/paint.h"

#include <ctype.h>
#include <limits.h>

enum {
    SAMPLE_EVERY_MS = 500,
    RATE_AFTER_MS = 700,  /* one sample more than the shortest time that says something */
    DRAW_AFTER_MS = 300,  /* what is done by then needs no bar */
    LINE_EVERY_MS = 5000, /* on a pipe */
    STALLED_AFTER_MS = 3000,
    NAME_COLUMNS = 11,
    TAIL_COLUMNS = 46, /* counts, rate and time left, mostly */
    BAR_MIN = 8,
    BAR_MAX = 30,
    CTRL_C_COLUMNS = 3, /* what a terminal shows of it, so that the line does not break */
};

const char *cli_stage_name(const char *queue)
{
    static const char *const names[][2] = {{"expand", "listing"},  {"convert", "reading"}, {"embed", "embedding"},
                                           {"assets", "pictures"}, {"copy", "copying"},    {"delete", "cleaning up"}};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        if (strcmp(queue, names[i][0]) == 0) {
            return names[i][1];
        }
    }
    return queue;
}

/* ---- figures ---- */

struct cli_grouped cli_grouped(long long number)
{
    struct cli_grouped grouped;
    char digits[24];
    const int count = snprintf(digits, sizeof digits, "%lld", number);
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        if (i > (digits[0] == '-') && (count - i) % 3 == 0) {
            grouped.text[used++] = ',';
        }
        grouped.text[used++] = digits[i];
    }
    grouped.text[used] = '\0';
    return grouped;
}

struct cli_grouped cli_duration(int64_t ms)
{
    struct cli_grouped text;
    const long long s = (long long)(ms + 500) / 1000;
    if (ms < 950) {
        snprintf(text.text, sizeof text.text, "%lld ms", (long long)ms);
    } else if (ms < 9950) {
        snprintf(text.text, sizeof text.text, "%.1f s", (double)ms / 1000);
    } else if (s < 60) {
        snprintf(text.text, sizeof text.text, "%lld s", s);
    } else if (s < 3600) {
        snprintf(text.text, sizeof text.text, "%lld min %lld s", s / 60, s % 60);
    } else {
        snprintf(text.text, sizeof text.text, "%lld h %lld min", s / 3600, s % 3600 / 60);
    }
    return text;
}

double cli_stage_rate(const struct cli_stage *stage, int64_t now_ms)
{
    const struct cli_sample *oldest = &stage->samples[0];
    if (stage->sample_count == 0 || now_ms - oldest->at_ms < RATE_AFTER_MS) {
        return 0;
    }
    return (double)(stage->done - oldest->done) * 1000 / (double)(now_ms - oldest->at_ms);
}

/* ---- seeing ---- */

static struct cli_stage *stage_of(struct cli_progress *progress, const struct cli_seen *seen)
{
    for (size_t i = 0; i < progress->stage_count; i++) {
        if (strcmp(progress->stages[i].queue, seen->queue) == 0) {
            return &progress->stages[i];
        }
    }
    if (progress->stage_count == CLI_STAGES_MAX) {
        return NULL;
    }
    struct cli_stage *stage = &progress->stages[progress->stage_count++];
    *stage = (struct cli_stage){.ended = progress->counts_from_zero ? 0 : seen->ended};
    snprintf(stage->queue, sizeof stage->queue, "%s", seen->queue);
    return stage;
}

static void take_sample(struct cli_stage *stage, int64_t now_ms)
{
    struct cli_sample *samples = stage->samples;
    const size_t count = stage->sample_count;
    if (count && (now_ms - samples[count - 1].at_ms < SAMPLE_EVERY_MS || stage->done == samples[count - 1].done)) {
        return;
    }
    if (count == CLI_SAMPLES_MAX) {
        memmove(&samples[0], &samples[1], (count - 1) * sizeof samples[0]);
        stage->sample_count--;
    }
    samples[stage->sample_count++] = (struct cli_sample){now_ms, stage->done};
}

void cli_progress_see(struct cli_progress *progress, const struct cli_seen *seen, int64_t now_ms)
{
    struct cli_stage *stage = stage_of(progress, seen);
    progress->began_ms = progress->began_ms ? progress->began_ms : now_ms;
    if (!stage) {
        return;
    }
    /* another process took over and counts from 0 */
    const long long ended = seen->ended >= stage->ended ? seen->ended - stage->ended : seen->ended;
    if (ended || !progress->moved_ms) {
        progress->moved_ms = now_ms;
        progress->waiting.text[0] = '\0';
    }
    stage->done += ended;
    stage->ended = seen->ended;
    stage->left = seen->left;
    stage->is_more = seen->is_more;
    stage->is_paused = seen->is_paused;
    if (stage->left) {
        take_sample(stage, now_ms);
    } else {
        stage->sample_count = 0;
    }
}

/* What was done before the work began does not count. Files that changed were done before, and are not now: so that is the
 * fewest that was seen. */
void cli_progress_see_files(struct cli_progress *progress, long long total, long long left, int64_t now_ms)
{
    struct cli_stage *files = &progress->files;
    const long long done = total - left;
    const bool is_first = files->queue[0] == '\0';
    snprintf(files->queue, sizeof files->queue, "convert");
    files->unit = "file";
    progress->files_before = is_first ? done : QR_MIN(progress->files_before, done);
    files->done = done - progress->files_before;
    files->left = left;
    if (left) {
        take_sample(files, now_ms);
    } else {
        files->sample_count = 0;
    }
}

/* Work that is no queue's: how much of it is done is known. */
static void see_work(struct cli_progress *progress, const struct cli_stage *seen, int64_t now_ms)
{
    struct cli_stage *stage = stage_of(progress, &(struct cli_seen){.queue = seen->queue});
    progress->began_ms = progress->began_ms ? progress->began_ms : now_ms;
    if (!stage) {
        return;
    }
    if (!progress->moved_ms || seen->done != stage->done) {
        progress->moved_ms = now_ms;
        progress->waiting.text[0] = '\0';
    }
    stage->unit = seen->unit;
    stage->sample_count = seen->done < stage->done ? 0 : stage->sample_count; /* another pass counts anew */
    stage->done = seen->done;
    stage->left = QR_MAX(seen->left, 0LL);
    take_sample(stage, now_ms);
}

/* What was there before it began counts as done: it need not be embedded. */
void cli_progress_see_build(struct cli_progress *progress, long long done, long long total, int64_t now_ms)
{
    see_work(progress, &(struct cli_stage){.queue = "embed", .unit = "chunk", .done = done, .left = total - done},
             now_ms);
}

void cli_progress_see_copy(struct cli_progress *progress, int64_t done_bytes, int64_t total_bytes, int64_t now_ms)
{
    enum { MB_FROM = 64 << 20 }; /* below, MB would be too few to see them move */
    const int shift = total_bytes >= MB_FROM ? 20 : 10;
    const long long done = (long long)(done_bytes >> shift), total = (long long)(total_bytes >> shift);
    see_work(
        progress,
        &(struct cli_stage){.queue = "copy", .unit = shift == 20 ? "MB" : "KB", .done = done, .left = total - done},
        now_ms);
}

long long cli_progress_done(const struct cli_progress *progress, const char *queue)
{
    long long sum = 0;
    for (size_t i = 0; i < progress->stage_count; i++) {
        sum += !queue || strcmp(progress->stages[i].queue, queue) == 0 ? progress->stages[i].done : 0;
    }
    return sum;
}

/* ---- what holds it up ---- */

bool cli_progress_is_stalled(const struct cli_progress *progress, int64_t now_ms)
{
    return progress->moved_ms && now_ms - progress->moved_ms >= STALLED_AFTER_MS;
}

void cli_progress_explain(struct cli_progress *progress, const char *code, const char *message)
{
    struct cli_reason *waiting = &progress->waiting;
    const qr_code known = qr_code_find(code);
    const size_t len = strlen(message);
    snprintf(waiting->text, sizeof waiting->text, "waiting: %.*s%s%s%s", (int)(len - (len && message[len - 1] == '.')),
             message, code[0] ? " (" : "", code, code[0] ? ")" : "");
    waiting->advice = known == QR_CODE_COUNT || known == QR_CODE_UNAVAILABLE ? "It is tried again by itself."
                                                                             : qr_code_info(known)->advice;
}

/* ---- what is said of a stage ---- */

struct figures {
    char counts[64], rate[32], left[48]; /* "" = not known */
};

/* "chunks", but "MB" */
static const char *plural_of(const struct cli_stage *stage)
{
    return stage->unit && islower((unsigned char)stage->unit[0]) && stage->done + stage->left != 1 ? "s" : "";
}

static struct figures figures_of(const struct cli_stage *stage, int64_t now_ms)
{
    struct figures figures = {0};
    const double rate = cli_stage_rate(stage, now_ms);
    snprintf(figures.counts, sizeof figures.counts, "%s of %s%s%s%s%s", cli_grouped(stage->done).text,
             stage->is_more ? "more than " : "", cli_grouped(stage->done + stage->left).text, stage->unit ? " " : "",
             stage->unit ? stage->unit : "", plural_of(stage));
    if (stage->is_paused) {
        snprintf(figures.left, sizeof figures.left, "paused");
    } else if (rate >= 1) {
        snprintf(figures.rate, sizeof figures.rate, "%s/s", cli_grouped((long long)(rate + 0.5)).text);
    } else if (rate > 0) {
        snprintf(figures.rate, sizeof figures.rate, "%.0f/min", QR_MAX(rate * 60, 1.0));
    }
    if (rate > 0 && !stage->is_more && !stage->is_paused) {
        const long long left_s = (long long)((double)stage->left / rate) + 1;
        if (left_s < 60) {
            snprintf(figures.left, sizeof figures.left, "%lld s left", left_s);
        } else {
            snprintf(figures.left, sizeof figures.left, "%s left", cli_duration(left_s * 1000).text);
        }
    }
    return figures;
}

struct cli_stage cli_progress_shown(const struct cli_progress *progress, size_t i)
{
    struct cli_stage stage = progress->stages[i];
    if (progress->files.queue[0] && strcmp(stage.queue, progress->files.queue) == 0) {
        stage = progress->files;
        stage.is_paused = progress->stages[i].is_paused;
    }
    for (size_t k = 0; k < progress->stage_count; k++) {
        const struct cli_stage *other = &progress->stages[k];
        stage.is_more = stage.is_more || (strcmp(other->queue, "expand") == 0 && other->left > 0 && k != i);
    }
    return stage;
}

/* ---- on a terminal ---- */

static void add_bar(const struct cli_stage *stage, int columns, const struct cli_screen *screen, struct qr_buf *out)
{
    const long long total = QR_MAX(stage->done + stage->left, 1LL);
    const int full = (int)QR_MIN(stage->done * columns / total, (long long)columns);
    qr_buf_add_text(out, screen->is_coloured ? "\033[32m" : "");
    for (int i = 0; i < columns; i++) {
        qr_buf_add_text(out, i < full ? (screen->is_unicode ? "█" : "#") : screen->is_unicode ? "░" : ".");
    }
    qr_buf_add_text(out, screen->is_coloured ? "\033[0m" : "");
    qr_buf_add_text(out, "  ");
}

void cli_stage_write_bar(const struct cli_stage *stage, int64_t now_ms, const struct cli_screen *screen,
                         struct qr_buf *out)
{
    const struct figures figures = figures_of(stage, now_ms);
    const char *const parts[] = {figures.counts, figures.rate, figures.left};
    int room = screen->columns - CTRL_C_COLUMNS - NAME_COLUMNS - 2;
    const int bar = QR_MIN(room - TAIL_COLUMNS, (int)BAR_MAX);
    qr_buf_printf(out, "%-*s  ", NAME_COLUMNS, cli_stage_name(stage->queue));
    if (bar >= BAR_MIN) {
        add_bar(stage, bar, screen, out);
        room -= bar + 2;
    }
    for (size_t i = 0; i < QR_COUNT(parts); i++) {
        const int columns = (int)strlen(parts[i]);
        if (columns && columns <= room) {
            qr_buf_printf(out, "%s%s", i ? "  " : "", parts[i]);
            room -= columns + 2;
        }
    }
}

static void add_erasing(const struct cli_progress *progress, struct qr_buf *out)
{
    for (int i = 0; i < progress->drawn; i++) {
        qr_buf_add_text(out, i ? "\033[A\r\033[K" : "\r\033[K");
    }
}

/* Returns the count of lines. */
static int add_reason(const struct cli_reason *reason, const struct cli_screen *screen, int lines_above,
                      struct qr_buf *out)
{
    if (!reason->text[0]) {
        return 0;
    }
    qr_buf_add_text(out, lines_above ? "\n" : "");
    cli_add_safe(out, reason->text, screen->columns - CTRL_C_COLUMNS);
    qr_buf_add_text(out, "\n  ");
    cli_add_safe(out, reason->advice, screen->columns - CTRL_C_COLUMNS - 2);
    return 2;
}

static void draw(struct cli_progress *progress, int64_t now_ms)
{
    const struct cli_screen screen = {cli_columns(stderr), cli_has_unicode(), cli_style_code(stderr, CLI_GOOD)[0]};
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    int lines = 0;
    add_erasing(progress, &out);
    for (size_t i = 0; i < progress->stage_count; i++) {
        const struct cli_stage stage = cli_progress_shown(progress, i);
        if (stage.left) {
            qr_buf_add_text(&out, lines++ ? "\n" : "");
            cli_stage_write_bar(&stage, now_ms, &screen, &out);
        }
    }
    lines += add_reason(&progress->waiting, &screen, lines, &out);
    if (out.failed == QR_CODE_NONE && out.len) {
        fputs(out.data, stderr);
        progress->drawn = lines;
    }
}

void cli_progress_erase(struct cli_progress *progress)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    add_erasing(progress, &out);
    fputs(qr_buf_str(&out).ptr, stderr);
    progress->drawn = 0;
}

/* ---- on a pipe ---- */

/* "reading 1,240 of 5,000 files, 412/s, 9 s left; embedding …" */
static void print_line(const struct cli_progress *progress, int64_t now_ms)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf line = {0};
    for (size_t i = 0; i < progress->stage_count; i++) {
        const struct cli_stage stage = cli_progress_shown(progress, i);
        if (stage.left == 0) {
            continue;
        }
        const struct figures figures = figures_of(&stage, now_ms);
        qr_buf_printf(&line, "%s%s %s%s%s%s%s", line.len ? "; " : "", cli_stage_name(stage.queue), figures.counts,
                      figures.rate[0] ? ", " : "", figures.rate, figures.left[0] ? ", " : "", figures.left);
    }
    if (line.failed == QR_CODE_NONE && line.len) {
        fprintf(stderr, "%s\n", line.data);
    }
}

/* Once, and when it is another, but not for each of many files. */
static void print_reason(struct cli_progress *progress, int64_t now_ms)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf line = {0};
    if (!progress->waiting.text[0] || strcmp(progress->waiting.text, progress->told_waiting.text) == 0 ||
        (progress->told_waiting_ms && now_ms - progress->told_waiting_ms < LINE_EVERY_MS)) {
        return;
    }
    progress->told_waiting = progress->waiting;
    progress->told_waiting_ms = now_ms;
    cli_add_safe(&line, progress->waiting.text, INT_MAX);
    fprintf(stderr, "%s. %s\n", qr_buf_str(&line).ptr, progress->waiting.advice);
}

void cli_progress_tell(struct cli_progress *progress, int64_t now_ms)
{
    progress->told_ms = progress->told_ms ? progress->told_ms : now_ms;
    if (cli_has_terminal(stderr)) {
        if (now_ms - progress->began_ms >= DRAW_AFTER_MS) {
            draw(progress, now_ms);
        }
        return;
    }
    print_reason(progress, now_ms);
    if (now_ms - progress->told_ms >= LINE_EVERY_MS) {
        progress->told_ms = now_ms;
        print_line(progress, now_ms);
    }
}
