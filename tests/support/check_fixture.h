/* Checks in a test: a place with something of everything in it, and what a check finds there. */
#pragma once

#include "check/check.h"
#include "support/workshop.h"

enum { QR_FOUND_MAX = 20 };

struct qr_found {
    struct qr_check_finding findings[QR_FOUND_MAX];
    size_t count;
    struct qr_check_result result;
};

/* Puts a finding there; `arg` is the struct qr_found. */
qr_rc qr_found_note(void *arg, const struct qr_check_finding *finding, qr_err *err);
/* Must be among them. */
const struct qr_check_finding *qr_found_find(const struct qr_found *found, const char *code);

/* A folder with a.md, b.txt, sub/c.md, and a note; all of it indexed. */
struct qr_place {
    struct qr_shop shop;
    qr_uuid folder, sub, a, c, note;
};
void qr_place_open(struct qr_place *place, struct qr_test *t);
/* What a check of it needs, but for what becomes of the findings. */
struct qr_check_options qr_place_options(struct qr_place *place);

struct qr_found qr_place_look(struct qr_place *place, bool repair);
void qr_place_check_clean(struct qr_place *place);
/* Exactly this one, also the second time: looking changes nothing. */
struct qr_check_finding qr_place_check_one(struct qr_place *place, const char *invariant, const char *code);
/* The same, and a repair ends it. */
void qr_place_check_mended(struct qr_place *place, const char *invariant, const char *code);
/* The same, and a repair leaves it as it is. */
void qr_place_check_left(struct qr_place *place, const char *invariant, const char *code);

void qr_place_exec(struct qr_place *place, const char *sql);
/* A chunk of that generation into the index. */
void qr_place_write_rows(struct qr_place *place, qr_uuid item_id, int64_t generation);
