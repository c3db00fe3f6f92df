/* Replays a corpus through a fuzz target, as one test in the protocol of tests/support/test.c.
 *
 * NAME_fuzz_replay takes tests/fuzz/corpus/NAME, or the folder it is given. The inputs run in a child process, which
 * keeps the current one in shared memory, so that a crash can be blamed on its input. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

enum { INPUT_BYTES_MAX = 16 << 20 };

static const char test_name[] = "corpus";
static const char suffix[] = "_fuzz_replay";

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* A block of exactly the input's size: a sanitizer sees a read beyond it. */
static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat st;
    if (!file || fstat(fileno(file), &st) || st.st_size > INPUT_BYTES_MAX) {
        perror(path);
        exit(2);
    }
    const size_t size_bytes = (size_t)st.st_size;
    uint8_t *bytes = malloc(size_bytes ? size_bytes : 1);
    if (!bytes || fread(bytes, 1, size_bytes, file) != size_bytes) {
        perror(path);
        exit(2);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size_bytes);
    free(bytes);
}

static int replay_all(const char *folder, struct dirent **inputs, int count, int *current)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (chdir(folder)) {
            perror(folder);
            exit(2);
        }
        for (*current = 0; *current < count; (*current)++) {
            replay_file(inputs[*current]->d_name);
        }
        exit(0); /* with the leak check */
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static int run(const char *suite, const char *folder)
{
    int *current = mmap(NULL, sizeof *current, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct dirent **inputs = NULL;
    const int count = scandir(folder, &inputs, is_input, alphasort);
    if (current == MAP_FAILED || count <= 0) {
        printf("FAIL %s.%s: no inputs in %s\n", suite, test_name, folder);
        return 1;
    }
    const int status = replay_all(folder, inputs, count, current);
    if (status == 0) {
        printf("ok   %s.%s: %d inputs\n", suite, test_name, count);
    } else {
        printf("FAIL %s.%s: status %d at %s\n", suite, test_name, status,
               *current < count ? inputs[*current]->d_name : "the end");
    }
    for (int i = 0; i < count; i++) {
        free(inputs[i]);
    }
    free(inputs);
    munmap(current, sizeof *current);
    return status != 0;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *suite = slash ? slash + 1 : argv[0];
    const char *argument = argc > 1 ? argv[1] : "";
    if (strcmp(argument, "--list") == 0) {
        printf("%s.%s\n", suite, test_name);
        return 0;
    }
    const size_t len = strlen(suite), suffix_len = sizeof suffix - 1;
    char folder[PATH_MAX];
    if (argument[0] && strchr(argument, '/')) {
        snprintf(folder, sizeof folder, "%s", argument);
    } else if (!strstr(test_name, argument) || len <= suffix_len || strcmp(suite + len - suffix_len, suffix) != 0) {
        printf("0 passed, 0 failed, 0 skipped\n"); /* the filter means another test, or the name no corpus */
        return 0;
    } else {
        snprintf(folder, sizeof folder, QUIRE_SOURCE_DIR "/tests/fuzz/corpus/%.*s", (int)(len - suffix_len), suite);
    }
    const int failed = run(suite, folder);
    printf("%d passed, %d failed, 0 skipped\n", !failed, failed);
    return failed;
}
