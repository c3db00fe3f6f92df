/* How far the work is that somebody waits for: a bar a stage on a terminal, lines now and then on a pipe. */
#pragma once

#include "cli/cli.h"

enum { CLI_STAGES_MAX = 8, CLI_SAMPLES_MAX = 12 };

struct cli_stage {
    char queue[16];
    const char *unit;        /* "file", "chunk"; NULL = of jobs, which need no word */
    long long ended;         /* as it was seen last: of the process that runs jobs */
    long long done, left;    /* since this one looks */
    bool is_more, is_paused; /* `left` is the least it can be */
    struct cli_sample {
        int64_t at_ms;
        long long done;
    } samples[CLI_SAMPLES_MAX]; /* oldest first */
    size_t sample_count;
};

/* What of a queue was seen. */
struct cli_seen {
    const char *queue;
    long long ended, left;
    bool is_more, is_paused;
};

struct cli_progress {
    struct cli_stage stages[CLI_STAGES_MAX];
    size_t stage_count;
    struct cli_stage files;    /* that were read, where they are known: then they stand for the jobs that read them */
    long long files_before;    /* the fewest that were done at any look */
    int64_t began_ms, told_ms; /* 0 = not yet */
    bool counts_from_zero;     /* this process runs the jobs: all that end were waited for */
    int drawn;                 /* lines on the terminal, which the next ones replace */
    int64_t moved_ms;          /* when a job was last seen to have ended */
    struct cli_reason {
        char text[640];     /* "waiting: MESSAGE (CODE)"; "" = not known, or nobody has to know */
        const char *advice; /* what to do, a sentence */
    } waiting, told_waiting;
    int64_t told_waiting_ms; /* on a pipe; 0 = never */
};

/* How lines are to look. */
struct cli_screen {
    int columns;
    bool is_unicode, is_coloured;
};

void cli_progress_see(struct cli_progress *progress, const struct cli_seen *seen, int64_t now_ms);
/* The files that are waited for: how many there are, and how many still have to be read. */
void cli_progress_see_files(struct cli_progress *progress, long long total, long long left, int64_t now_ms);
/* The chunks that a new model is built of. */
void cli_progress_see_build(struct cli_progress *progress, long long done, long long total, int64_t now_ms);
/* The bytes of a folder that is copied. */
void cli_progress_see_copy(struct cli_progress *progress, int64_t done_bytes, int64_t total_bytes, int64_t now_ms);
/* True when no job has ended for some seconds. */
bool cli_progress_is_stalled(const struct cli_progress *progress, int64_t now_ms);
/* Why that is, which is told until a job ends or it is something else. */
void cli_progress_explain(struct cli_progress *progress, const char *code, const char *message);
/* Draws or prints it on standard error, when it is time to. */
void cli_progress_tell(struct cli_progress *progress, int64_t now_ms);
/* Takes what was drawn from the terminal. */
void cli_progress_erase(struct cli_progress *progress);

/* How a person calls the work of a queue: "reading". */
const char *cli_stage_name(const char *queue);
/* What is shown of the i-th stage: of reading files, where they are known, else jobs; and while folders are listed nobody knows
 * how long the rest takes. */
struct cli_stage cli_progress_shown(const struct cli_progress *progress, size_t i);
/* Jobs that ended since the look began; NULL = of all queues. */
long long cli_progress_done(const struct cli_progress *progress, const char *queue);

/* ---- pure ---- */

/* Jobs or files a second, over the last seconds; 0 = not known yet. */
double cli_stage_rate(const struct cli_stage *stage, int64_t now_ms);
/* "reading      ██████░░░░  1,240 of 5,000 files  412/s  9 s left": never wider than the screen less what ^C takes. */
void cli_stage_write_bar(const struct cli_stage *stage, int64_t now_ms, const struct cli_screen *screen,
                         struct qr_buf *out);
/* "1,234,567" */
struct cli_grouped {
    char text[32];
};
struct cli_grouped cli_grouped(long long number);
/* "40 ms", "1.5 s", "41 s", "3 min 20 s", "2 h 10 min" */
struct cli_grouped cli_duration(int64_t ms);
