/* Ignore rules as git has them: patterns from several files and lists, of which the last that matches decides. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Whose rule it is. What is in the built-in list stays ignored whatever a .gitignore says. */
enum qr_ignore_origin { QR_IGNORE_GIT, QR_IGNORE_QUIRE, QR_IGNORE_LIST };

struct qr_ignore_rule {
    qr_str pattern;    /* without '!', the leading and the trailing '/' */
    size_t base_bytes; /* of a path, before the part that the pattern is about */
    enum qr_ignore_origin origin;
    bool is_negated, folders_only;
    bool is_name;    /* has no '/': about the last name of a path, at any depth */
    bool is_literal; /* has no wildcard and no escape */
};

enum {
    QR_IGNORE_FILE_BYTES_MAX = 1 << 20,
    QR_IGNORE_RULES_MAX = 20000, /* each entry is held against each of them */
};

struct qr_ignore {
    struct qr_arena *arena;
    struct qr_ignore_rule *rules; /* in the arena, as are their patterns */
    size_t count, capacity;
};

void qr_ignore_init(struct qr_ignore *ignore, struct qr_arena *arena);

/* Adds the rules of a file; they outrank those before. `text` is copied. `folder`: where the file is, relative to what
 * paths are relative to; empty = there itself. `limit_exceeded` beyond QR_IGNORE_RULES_MAX. */
qr_rc qr_ignore_add_file(struct qr_ignore *ignore, qr_str text, qr_str folder, enum qr_ignore_origin origin,
                         qr_err *err);
/* Adds one pattern, as a line of a file at the top would be, but for comments and white space at its end. */
qr_rc qr_ignore_add_pattern(struct qr_ignore *ignore, qr_str pattern, qr_err *err);

/* The rule that decides on the path ("a/b/c", any bytes), NULL when none matches. Folders above it are not looked at. */
const struct qr_ignore_rule *qr_ignore_find(const struct qr_ignore *ignore, qr_str path, bool is_folder);
