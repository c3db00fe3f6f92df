/* Words as texts have them: few are frequent, many are rare. */
#include "workflow/files.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = 20000, FILES_A_FOLDER = 100, BYTES_MIN = 300, BYTES_MAX = 1500 };

static uint64_t next_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* The rarer a word, the longer it is. */
static size_t add_word(char *out, uint64_t *state)
{
    static const char *const syllables[] = {"ka", "lo",  "mi",  "ner", "tas", "vu", "ri",  "sen",
                                            "do", "pal", "qui", "re",  "est", "on", "tri", "um"};
    const double part = (double)next_number(state) / 2147483648.0;
    unsigned word = (unsigned)(pow((double)WORDS, part) - 1); /* Zipf */
    size_t len = 0;
    do {
        const char *syllable = syllables[word % 16];
        memcpy(out + len, syllable, strlen(syllable));
        len += strlen(syllable);
        word /= 16;
    } while (word > 0);
    return len;
}

static size_t fill(char text[static BYTES_MAX + 64], uint64_t *state)
{
    const size_t wanted = BYTES_MIN + next_number(state) % (BYTES_MAX - BYTES_MIN);
    size_t len = 0;
    for (int words = 1; len < wanted; words++) {
        len += add_word(text + len, state);
        text[len++] = words % 12 == 0 ? '\n' : ' ';
    }
    text[len - 1] = '\n';
    return len;
}

static void fail(const char *path)
{
    fprintf(stderr, "bench: %s: %s\n", path, strerror(errno));
    exit(1);
}

static void make_folder(const char *path)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        fail(path);
    }
}

static void write_file(const char *path, const char *text, size_t len)
{
    const int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, len) != (ssize_t)len || close(fd) != 0) {
        fail(path);
    }
}

size_t files_make(const char *dir, int count, unsigned seed)
{
    char path[600], text[BYTES_MAX + 64];
    uint64_t state = seed * 2654435761u + 1;
    size_t bytes = 0;
    make_folder(dir);
    for (int i = 0; i < count; i++) {
        if (i % FILES_A_FOLDER == 0) {
            snprintf(path, sizeof path, "%s/part-%05d", dir, i / FILES_A_FOLDER);
            make_folder(path);
        }
        const size_t len = fill(text, &state);
        snprintf(path, sizeof path, "%s/part-%05d/text-%07d.txt", dir, i / FILES_A_FOLDER, i);
        write_file(path, text, len);
        bytes += len;
    }
    return bytes;
}
