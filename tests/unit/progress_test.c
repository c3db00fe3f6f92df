/* Progress: rates and times left from what was seen of the queues, and lines that fit. */
#include "cli/progress.h"

#include "support/test.h"

static const struct cli_screen plain = {.columns = 80};

static void see(struct cli_progress *progress, int64_t now_ms, long long ended, long long left)
{
    cli_progress_see(progress, &(struct cli_seen){.queue = "convert", .ended = ended, .left = left}, now_ms);
}

static const char *bar_of(const struct cli_progress *progress, int64_t now_ms, const struct cli_screen *screen)
{
    static char text[512];
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    cli_stage_write_bar(&progress->stages[0], now_ms, screen, &out);
    QR_CHECK(out.failed == QR_CODE_NONE && out.len < sizeof text);
    memcpy(text, out.data, out.len + 1);
    return text;
}

QR_TEST(rate_and_time_left_are_those_of_the_last_seconds)
{
    struct cli_progress progress = {.counts_from_zero = true};
    see(&progress, 1000, 0, 5000);
    QR_CHECK_TEXT("reading      ..................  0 of 5,000", bar_of(&progress, 1000, &plain));
    for (int i = 1; i <= 20; i++) { /* slow, then fast */
        see(&progress, 1000 + i * 500, i <= 8 ? i : 8 + (i - 8) * 206, i <= 8 ? 5000 - i : 4992 - (i - 8) * 206);
    }
    QR_CHECK_INT(412, (long long)(cli_stage_rate(&progress.stages[0], 11000) + 0.5));
    QR_CHECK_TEXT("reading      ########..........  2,480 of 5,000  412/s  7 s left", bar_of(&progress, 11000, &plain));
}

QR_TEST(work_that_ends_in_bursts_has_the_rate_of_several)
{
    struct cli_progress progress = {.counts_from_zero = true};
    for (int s = 0; s <= 120; s++) { /* 96 every 30 seconds */
        see(&progress, 1000 + s * 1000, s / 30 * 96, 1000 - s / 30 * 96);
    }
    QR_CHECK_HAS("384 of 1,000  3/s  3 min 13 s left", bar_of(&progress, 121000, &plain));
    see(&progress, 130000, 384, 616); /* and nothing for a while does not make it forget */
    QR_CHECK_HAS("384 of 1,000  3/s  3 min 27 s left", bar_of(&progress, 130000, &plain));
}

QR_TEST(work_that_takes_minutes_is_said_in_minutes)
{
    struct cli_progress progress = {.counts_from_zero = true};
    see(&progress, 1000, 0, 100);
    see(&progress, 5000, 2, 98);
    QR_CHECK_HAS("2 of 100  30/min  3 min 17 s left", bar_of(&progress, 5000, &plain));
}

QR_TEST(a_count_that_ends_early_gives_no_time_left)
{
    struct cli_progress progress = {.counts_from_zero = true};
    for (int i = 0; i < 4; i++) {
        cli_progress_see(&progress,
                         &(struct cli_seen){.queue = "convert", .ended = i * 500, .left = 10000, .is_more = true},
                         1000 + i * 500);
    }
    QR_CHECK_HAS("1,500 of more than 11,500  1,000/s", bar_of(&progress, 2500, &plain));
    QR_CHECK(strstr(bar_of(&progress, 2500, &plain), "left") == NULL);
}

QR_TEST(another_process_that_takes_over_counts_on)
{
    struct cli_progress progress = {0};
    see(&progress, 1000, 70, 30); /* it ran before we looked */
    QR_CHECK_INT(0, cli_progress_done(&progress, "convert"));
    see(&progress, 2000, 80, 20);
    see(&progress, 3000, 5, 15);
    QR_CHECK_INT(15, cli_progress_done(&progress, "convert"));
    QR_CHECK_HAS("15 of 30", bar_of(&progress, 3000, &plain));
}

QR_TEST(a_paused_stage_says_so)
{
    struct cli_progress progress = {0};
    cli_progress_see(&progress, &(struct cli_seen){.queue = "embed", .left = 7, .is_paused = true}, 1000);
    QR_CHECK_TEXT("embedding    ..................  0 of 7  paused", bar_of(&progress, 9000, &plain));
}

QR_TEST(a_line_fits_every_width)
{
    struct cli_progress progress = {.counts_from_zero = true};
    see(&progress, 1000, 0, 1234567);
    see(&progress, 5000, 40000, 1194567);
    for (int columns = 30; columns < 200; columns++) {
        const struct cli_screen screen = {.columns = columns};
        const char *line = bar_of(&progress, 5000, &screen);
        QR_CHECK_HAS("reading", line);
        if ((int)strlen(line) > columns - 3 && columns > 40) {
            QR_FAIL("%d columns: %s", columns, line);
        }
    }
    const struct cli_screen unicode = {.columns = 80, .is_unicode = true, .is_coloured = true};
    QR_CHECK_HAS("\033[32m░", bar_of(&progress, 5000, &unicode));
}

QR_TEST(numbers_and_times_are_easy_to_read)
{
    QR_CHECK_TEXT("0", cli_grouped(0).text);
    QR_CHECK_TEXT("999", cli_grouped(999).text);
    QR_CHECK_TEXT("1,000", cli_grouped(1000).text);
    QR_CHECK_TEXT("-1,234,567", cli_grouped(-1234567).text);
    QR_CHECK_TEXT("-123", cli_grouped(-123).text);
    QR_CHECK_TEXT("40 ms", cli_duration(40).text);
    QR_CHECK_TEXT("1.5 s", cli_duration(1500).text);
    QR_CHECK_TEXT("41 s", cli_duration(41200).text);
    QR_CHECK_TEXT("3 min 20 s", cli_duration(200000).text);
    QR_CHECK_TEXT("2 h 10 min", cli_duration(7800000).text);
    QR_CHECK_TEXT("cleaning up", cli_stage_name("delete"));
    QR_CHECK_TEXT("other", cli_stage_name("other"));
}

QR_TEST(what_holds_up_the_work_is_said_until_a_job_ends)
{
    struct cli_progress progress = {.counts_from_zero = true};
    see(&progress, 1000, 5, 10);
    QR_CHECK(!cli_progress_is_stalled(&progress, 3900));
    see(&progress, 3900, 6, 9);
    QR_CHECK(!cli_progress_is_stalled(&progress, 6800));
    see(&progress, 6900, 6, 9);
    QR_CHECK(cli_progress_is_stalled(&progress, 6900));
    cli_progress_explain(&progress, "disk_full", "writing x: the disk is full.");
    QR_CHECK_TEXT("waiting: writing x: the disk is full (disk_full)", progress.waiting.text);
    QR_CHECK_HAS("Free space", progress.waiting.advice);
    cli_progress_explain(&progress, "", "nobody knows why.");
    QR_CHECK_TEXT("waiting: nobody knows why", progress.waiting.text); /* no empty brackets */
    cli_progress_explain(&progress, "disk_full", "writing x: the disk is full.");
    see(&progress, 7000, 6, 9);
    QR_CHECK_HAS("disk_full", progress.waiting.text);
    see(&progress, 8000, 7, 8);
    QR_CHECK_TEXT("", progress.waiting.text);
    QR_CHECK(!cli_progress_is_stalled(&progress, 8000));
}

static const char *shown_bar(const struct cli_progress *progress, int64_t now_ms)
{
    static char text[512];
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    const struct cli_stage stage = cli_progress_shown(progress, 0);
    cli_stage_write_bar(&stage, now_ms, &plain, &out);
    snprintf(text, sizeof text, "%s", qr_buf_str(&out).ptr);
    return text;
}

QR_TEST(files_stand_for_the_jobs_that_read_them)
{
    struct cli_progress progress = {.counts_from_zero = true};
    see(&progress, 1000, 0, 10000);
    QR_CHECK_HAS("0 of 10,000", shown_bar(&progress, 1000)); /* not known yet */
    cli_progress_see_files(&progress, 31192, 31192, 1000);
    see(&progress, 3000, 1500, 10000); /* a job does several files, or a file takes two jobs */
    cli_progress_see_files(&progress, 31192, 30192, 3000);
    QR_CHECK_HAS("1,000 of 31,192 files  500/s  1 min 1 s left", shown_bar(&progress, 3000));
    QR_CHECK_INT(1500, cli_progress_done(&progress, "convert"));
}

QR_TEST(files_that_were_read_before_do_not_count)
{
    struct cli_progress progress = {.counts_from_zero = true};
    see(&progress, 1000, 0, 1);
    cli_progress_see_files(&progress, 500, 0, 1000); /* all of them, until the folder is looked at again */
    cli_progress_see_files(&progress, 510, 30, 2000);
    QR_CHECK_HAS("0 of 30", shown_bar(&progress, 2000));
    cli_progress_see_files(&progress, 510, 10, 3000);
    QR_CHECK_HAS("20 of 30", shown_bar(&progress, 3000));
}

QR_TEST(while_folders_are_listed_there_are_more_files)
{
    struct cli_progress progress = {.counts_from_zero = true};
    see(&progress, 1000, 0, 50);
    cli_progress_see(&progress, &(struct cli_seen){.queue = "expand", .left = 2}, 1000);
    cli_progress_see_files(&progress, 60, 50, 1000);
    QR_CHECK_HAS("0 of more than 50", shown_bar(&progress, 1000));
    cli_progress_see(&progress, &(struct cli_seen){.queue = "expand", .ended = 2}, 2000);
    QR_CHECK_HAS("0 of 50", shown_bar(&progress, 2000));
}

QR_TEST(bytes_of_a_copy_are_counted_in_what_moves)
{
    struct cli_progress small = {0}, large = {0};
    cli_progress_see_copy(&small, 0, 300 << 10, 1000);
    cli_progress_see_copy(&small, 100 << 10, 300 << 10, 2000);
    QR_CHECK_HAS("copying ", bar_of(&small, 2000, &plain));
    QR_CHECK_HAS("100 of 300 KB  100/s  3 s left", bar_of(&small, 2000, &plain));
    cli_progress_see_copy(&large, INT64_C(1) << 30, INT64_C(4) << 30, 1000);
    QR_CHECK_HAS("1,024 of 4,096 MB", bar_of(&large, 1000, &plain));
}

QR_TEST(chunks_of_a_model_that_is_built_are_counted_with_those_that_were_there)
{
    struct cli_progress progress = {.counts_from_zero = true};
    cli_progress_see_build(&progress, 400, 1000, 1000);
    cli_progress_see_build(&progress, 500, 1000, 2000);
    const char *bar = bar_of(&progress, 2000, &plain);
    QR_CHECK_HAS("embedding ", bar);
    QR_CHECK_HAS("500 of 1,000 chunks  100/s  6 s left", bar);
    cli_progress_see_build(&progress, 450, 1000, 3000); /* another pass: the rate is not known yet */
    QR_CHECK_HAS("450 of 1,000 chunks", bar_of(&progress, 3000, &plain));
    QR_CHECK(cli_stage_rate(&progress.stages[0], 3000) == 0);
    QR_CHECK(cli_progress_is_stalled(&progress, 6000) && !cli_progress_is_stalled(&progress, 5000));
}
