/* Requests to a data folder as its users make them, and what was acknowledged of them, kept outside of the process that may
 * die. A thing is a note or a file; each version of it holds a word of its own, so that a search tells which one is there.
 *
 * The process says what it is about to ask for, asks, and says that it was answered. When it is gone, each thing must be in
 * one of the versions between the last that was answered and the last that was begun. */
#pragma once

#include "api/instance.h"
#include "base/json.h"
#include "support/child.h"

enum { WORKFLOW_LEDGER_THINGS_MAX = 1000, WORKFLOW_LEDGER_WORD_SIZE = 48 };

struct workflow_thing {
    char id[QR_UUID_TEXT_SIZE];   /* "" = not known: files below a folder */
    int begun, acknowledged;      /* versions; 0 = none */
    bool hiding_begun, is_hidden; /* deleted, cancelled or disabled: no version may be found */
    bool is_deleted;              /* … and the item must be gone, where it is hidden */
};

struct workflow_ledger {
    char base[64]; /* the name of the base that all of them are in */
    struct workflow_thing things[WORKFLOW_LEDGER_THINGS_MAX];
    int count;
};

enum workflow_event_kind { WORKFLOW_BEGUN, WORKFLOW_DONE, WORKFLOW_HIDING, WORKFLOW_DELETING, WORKFLOW_HIDDEN };
struct workflow_event {
    int32_t thing, version;
    enum workflow_event_kind kind;
    char id[QR_UUID_TEXT_SIZE];
};

/* ---- in the process ---- */

/* Ends the process with 1, and says why. */
QR_NORETURN void workflow_child_fail(const char *fmt, ...) QR_PRINTF(1, 2);
void workflow_child_require(qr_rc rc, const qr_err *err);

/* Opens the folder as the next process does when the lease of the one that died has run out and a minute has passed since its
 * last beat. `url` of the database, NULL = SQLite. */
struct quire *workflow_open(const char *folder, const char *url);

/* Takes note, here and in the parent. `id` may be NULL: as it was. */
void workflow_tell(struct workflow_ledger *ledger, int thing, enum workflow_event_kind kind, int version,
                   const char *id);

/* One request. The body is JSON; takes it over. The answer must have the status, 0 = any below 500. */
json_t *workflow_call(struct quire *quire, int status, const char *method, const char *path, json_t *body);
/* "/api/v1/bases/BASE" and what is printed behind it; static memory, valid until the next call. */
const char *workflow_path(const struct workflow_ledger *ledger, const char *fmt, ...) QR_PRINTF(2, 3);

/* Waits until no job is open. */
void workflow_drain(struct quire *quire);
int64_t workflow_number(struct quire *quire, const char *sql);
void workflow_exec(struct quire *quire, const char *sql);

/* The word of the version, and a text around it that makes about `chunk_count` chunks, all different. */
void workflow_word(const struct workflow_ledger *ledger, int thing, int version,
                   char word[static WORKFLOW_LEDGER_WORD_SIZE]);
void workflow_text(const struct workflow_ledger *ledger, int thing, int version, int chunk_count, struct qr_buf *out);
/* {"type": "note", …} */
json_t *workflow_note(const struct workflow_ledger *ledger, int thing, const char *name, int version, int chunk_count);

/* Compares, once nothing is open: how many things are not as they may be, each said on stderr. */
int workflow_compare(struct quire *quire, const struct workflow_ledger *ledger);
/* How many findings `check` has, each said on stderr. */
int workflow_findings(struct quire *quire);
/* How many items shown by search have other chunks than they say (I3, I7), and, where all is `drained`, how many rows of the
 * index belong to nothing; each said on stderr. */
int workflow_index_faults(struct quire *quire, bool drained);

/* ---- in the parent ---- */

/* Takes note of what it says next; false when it is gone. */
bool workflow_listen(struct child *child, struct workflow_ledger *ledger);
