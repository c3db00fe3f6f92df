/* The workflow in a test with everything real: entry points, plan, runner, handlers, index store. The test makes sources and
 * requests, lets all jobs run until none is left, and looks at what there is.
 *
 * After each round the invariants of workflow_fixture.h are looked at. */
#pragma once

#include "handler/context.h"
#include "job/runner.h"
#include "support/workflow_fixture.h"

struct qr_shop {
    struct qr_desk desk;
    struct qr_handler_context context; /* put a processor or analyser of the test's own here */
    struct qr_handler handlers[QR_JOB_TYPE_END];
    struct qr_index_options index_options;
    char index_dir[160], work_dir[160];
    /* Called once, when what handlers wrote is about to be recorded; NULL = nothing comes between. */
    void (*before_record)(struct qr_shop *shop);
};

enum { QR_SHOP_PURGE_AFTER_MS = 31000 }; /* then what a purge waits for is over */

#define QR_SHOP_HASHED "{\"embedding\":{\"provider\":\"hash\"}}"

void qr_shop_open(struct qr_shop *shop, struct qr_test *t, const char *settings);
void qr_shop_close(struct qr_shop *shop);
/* All settings of its base. */
void qr_shop_set_settings(struct qr_shop *shop, const char *settings);
/* This provider for all bases that embed something; NULL = by their settings. */
void qr_shop_use_provider(struct qr_shop *shop, struct qr_provider *provider);
/* The model of these settings of a base, shared with its handlers; it lives as long as the shop. */
struct qr_batcher *qr_shop_batcher(struct qr_shop *shop, const char *settings);

/* Runs jobs until none is queued or running; those that are due later stay. */
void qr_shop_work(struct qr_shop *shop);
/* The same where the queue of deletes is paused. */
void qr_shop_work_but_deletes(struct qr_shop *shop);
/* Only until no delete is: other queues may be paused. */
void qr_shop_work_deletes(struct qr_shop *shop);
/* Moves the clock, then as qr_shop_work. */
void qr_shop_work_after(struct qr_shop *shop, int64_t ms);
void qr_shop_set_paused(struct qr_shop *shop, enum qr_queue queue, bool paused);

/* ---- sources, below "src" in the test's folder ---- */

const char *qr_shop_path(struct qr_shop *shop, const char *name);
void qr_shop_write(struct qr_shop *shop, const char *name, const char *content);
void qr_shop_make_folder(struct qr_shop *shop, const char *name);
void qr_shop_remove(struct qr_shop *shop, const char *name); /* a file or an empty folder */
/* Adds the file or folder. */
qr_uuid qr_shop_add_file(struct qr_shop *shop, const char *name, const char *options);
qr_uuid qr_shop_add_folder(struct qr_shop *shop, const char *name, const char *options);
/* As if a key had added it: no link is followed. */
qr_uuid qr_shop_add_bound(struct qr_shop *shop, enum qr_item_type type, const char *name);
/* A folder "tree" with a.md, b.txt, sub/c.md; all of it indexed. */
qr_uuid qr_shop_add_tree(struct qr_shop *shop);

/* ---- requests on one item or root ---- */

void qr_shop_refresh(struct qr_shop *shop, qr_uuid id);
void qr_shop_reindex(struct qr_shop *shop, qr_uuid id);
void qr_shop_retry(struct qr_shop *shop, qr_uuid id);
void qr_shop_delete(struct qr_shop *shop, qr_uuid id);

/* ---- what comes between ---- */

/* A provider during whose first call something happens to the item. */
struct qr_disturbed {
    struct qr_provider provider;
    struct qr_shop *shop;
    qr_uuid item_id;
    void (*disturb)(const struct qr_disturbed *disturbed);
};

/* Opens the shop with this provider, and adds a note of three chunks, each of which is a call. */
void qr_disturbed_open(struct qr_disturbed *disturbed, struct qr_shop *shop, struct qr_test *t);
/* A way to disturb: the item's content becomes "new words". */
void qr_disturb_by_update(const struct qr_disturbed *disturbed);

/* ---- looking ---- */

/* Items that are completed, and the sum of the generations of the leaves. */
int64_t qr_shop_completed(struct qr_shop *shop);
int64_t qr_shop_generations(struct qr_shop *shop);
/* Chunks of the generation, and how many chunks the text search finds; all generations count. */
size_t qr_shop_chunks(struct qr_shop *shop, qr_uuid item_id, int64_t generation);
size_t qr_shop_hits(struct qr_shop *shop, const char *query);
/* Rows of any (item, generation) in the base's index. */
size_t qr_shop_extents(struct qr_shop *shop);
/* The model that search uses; 0 = none. */
int64_t qr_shop_live_model(struct qr_shop *shop);
/* Chunks of any generation that have a vector: of the live model, of that one. */
int64_t qr_shop_vectors(struct qr_shop *shop);
int64_t qr_shop_vectors_of(struct qr_shop *shop, int64_t model);
