/* What is in a folder: its entries, by the ignore rules and limits. One level: subfolders are entries.
 *
 * Symbolic links, sockets and devices are not entries, and no link below the root is followed. Ignored: what .gitignore and
 * .quireignore of the folder and of those above it (up to the root that was added) say, the deeper outranking the higher
 * and .quireignore the .gitignore beside it; and a built-in list (node_modules, …), from which only a .quireignore can take
 * something out; .git and the like never. Include and exclude patterns of the root come last: they only leave out. An
 * ignored folder is no entry, so nothing in it is ever listed. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct qr_walk_options {
    const char *root;   /* the folder that was added: ignore files from here down count */
    const char *folder; /* the one to list: root, or below it */
    bool no_links;      /* none is followed on the way to the root either */
    const char *const
        *include; /* patterns like those of .gitignore; with any, files that neither match one nor are in a
                                   folder that does are left out */
    size_t include_count;
    const char *const *exclude;
    size_t exclude_count;
    int64_t entries_max; /* `limit_exceeded` beyond; 0 = 1,000,000 */
};

struct qr_entry {
    qr_str name; /* raw bytes */
    bool is_folder;
    int64_t size_bytes, mtime_ns;
    int error; /* errno: it is there but cannot be looked at; 0 = fine */
};

/* The entries in the order of their names' bytes. `source_missing` when there is no such folder, `source_unreadable` when it
 * cannot be read. *ret_is_empty: there is nothing at all in the folder, ignored or not. */
qr_rc qr_walk(const struct qr_walk_options *options, struct qr_arena *arena, struct qr_entry **ret_entries,
              size_t *ret_count, bool *ret_is_empty, qr_err *err);
