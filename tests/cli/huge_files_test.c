/* Files of a shape that nobody means: one endless line, lines without end, a size beyond the limit. Each gets an answer. */
#include "support/program.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* `part` again and again, so many bytes. */
static void write_repeated(struct qr_test *t, const char *name, const char *part, size_t size_bytes)
{
    FILE *file = fopen(qr_test_path(t, name), "w");
    QR_CHECK(file != NULL);
    for (size_t done = 0; done < size_bytes; done += strlen(part)) {
        QR_CHECK(fputs(part, file) >= 0);
    }
    QR_CHECK_INT(0, fclose(file));
}

QR_TEST(a_file_beyond_the_limit_is_too_large_without_being_read)
{
    const int fd = open(qr_test_path(t, "one-line.txt"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    QR_CHECK(fd >= 0 && ftruncate(fd, (off_t)1 << 40) == 0); /* a hole: nobody could read it in time */
    close(fd);
    program_check(t, PROGRAM("add", "one-line.txt"), 1, "larger than 100000000 bytes (too_large)");
    program_check(t, PROGRAM("base", "create", "large", "limits.file_bytes_max=2000000000"), 0, "large");
    program_check(t, PROGRAM("add", "-b", "large", "one-line.txt"), 1, "larger than 2000000000 bytes (too_large)");
}

QR_TEST(one_endless_line_is_split_and_found)
{
    write_repeated(t, "words.txt", "alpha beta gamma delta ", 1000000);
    write_repeated(t, "solid.txt", "x", 1000000);
    program_check(t, PROGRAM("add", "words.txt"), 0, "completed");
    program_check(t, PROGRAM("add", "solid.txt"), 0, "completed");
    program_check(t, PROGRAM("search", "--top", "1", "\"gamma delta\""), 0, "words.txt#L1");
}

QR_TEST(lines_without_end_are_split_and_found_at_their_line)
{
    write_repeated(t, "lines.txt", "a\n", 200000);
    FILE *file = fopen(qr_test_path(t, "lines.txt"), "a");
    QR_CHECK(file != NULL && fputs("quince\n", file) >= 0 && fclose(file) == 0);
    write_repeated(t, "empty.txt", "\n", 1000000);
    program_check(t, PROGRAM("add", "lines.txt"), 0, "completed");
    program_check(t, PROGRAM("add", "empty.txt"), 0, "0 chunks  (empty)");
    const struct program_end end = program_run(t, PROGRAM("search", "--json", "quince"));
    QR_CHECK_HAS("\"line_end\":100001", end.out);
}
