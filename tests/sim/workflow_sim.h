/* The simulation of the whole workflow: one process after another over one data folder, the product's runner, handlers, plan,
 * beat, index and artifacts; around it people who ask for things, a folder that changes, services that answer late or not at
 * all, and an oracle that looks after every commit. */
#pragma once

#include "handler/context.h"
#include "sim/world.h"
#include "workflow/workflow.h"

/* ---- workflow_parts.c: what a process consists of ---- */

struct parts;
struct qr_visible_memory;

/* Of this run: <dir>/index, /artifacts, /work; and /tree, which is not the product's. */
const char *sim_path(const char *name);
void sim_folder_begin(void);
void sim_folder_end(void);

void parts_install(void);
const struct qr_workflow *parts_workflow(const struct process *process);
struct qr_index_set *parts_index(const struct process *process);
struct qr_visible_memory *parts_visible(const struct process *process);
const struct qr_artifacts *parts_artifacts(const struct process *process);

/* The job whose handler runs in this coroutine, and since when (wall clock); NULL = none. */
const struct qr_job *parts_current_job(int64_t *ret_since_ms);

/* Those who were found to want what a batcher is about to ask for, in this coroutine: whether they may (I8), and since when
 * the first of them runs. */
void parts_check_callers(int64_t *ret_since_ms);

/* ---- workflow_services.c: what is outside of the process, and survives it ---- */

void services_begin(void);
/* In the memory of the process. */
struct qr_provider *services_provider(const struct qr_embedding_settings *embedding);
struct qr_processor *services_processor(void);
struct qr_analyser *services_analyser(void);

/* ---- workflow_tree.c: a folder that changes ---- */

enum { TREE_ROOTS = 2 };

void tree_begin(void);
void tree_change(void);
/* Everything is there again, and stays. */
void tree_settle(void);
const char *tree_root(int number);
/* Files that are there: *ret_path is absolute. False behind the last. */
bool tree_file(int index, const char **ret_path, int *ret_number, int *ret_version);
/* The text of a document: it begins with its number and version, and every piece of it has the word "common". */
void tree_add_text(struct qr_buf *out, int number, int version, size_t size_bytes);

/* ---- workflow_people.c ---- */

void people_begin(void);
void people(void *process);
/* Notes whose content was promised: any version from the acknowledged one to the one tried last. False behind the last. */
struct promised_note {
    qr_uuid id;
    int number, version_acknowledged, version_tried;
};
bool people_note(int index, struct promised_note *ret_note);
/* After the faults: what stands in the way of the end is cleared away, and everything looked at once more. */
void people_finish(void *process);
bool people_have_finished(void);

/* ---- the oracle: workflow_oracle.h says which file does what ---- */

void flow_oracle_begin(void);
void flow_oracle_end(void);
void flow_oracle_check(void);
/* What was promised about items. */
void flow_oracle_expect(qr_uuid id);
void flow_oracle_may_go(qr_uuid id);
void flow_oracle_must_go(qr_uuid id);
void flow_oracle_base_may_go(qr_uuid id);

struct seen_item {
    qr_uuid id, base_id;
    bool is_container, is_root;
    int type, status;
};
/* A random one that is not deleting. */
bool flow_oracle_pick_item(struct seen_item *ret_item);
/* The n-th that fits, for going through them all. */
bool flow_oracle_nth_item(int n, int status, bool only_folders, struct seen_item *ret_item);
int flow_oracle_item_count(void);
/* A random one of the query's ids. */
bool flow_oracle_pick_id(const char *sql, qr_uuid *ret_id);
int64_t flow_oracle_i64(const char *sql);

/* Whether the job may ask for something that is paid for, now (I8). */
void flow_oracle_check_call(const struct qr_job *job, int64_t since_ms);
/* Text that is in the cache since before the attempt began is not paid for again. */
void flow_oracle_check_not_cached(const unsigned char *key, size_t key_bytes, int64_t since_ms);
/* Whether search may show the chunk now, and how many chunks of a base it must show. */
bool flow_oracle_is_visible(qr_uuid base_id, qr_uuid item_id, int64_t generation);
int64_t flow_oracle_visible_chunks(qr_uuid base_id);
/* Chunks in the index stores: none changes while it is live, all of a live generation are there. Of bases that are ready, and
 * whose store is their own; after the drain (`must_be_own`) it is. */
void flow_oracle_check_index(bool must_be_own);
/* Whether the base is ready and nobody rebuilds its store, which carries its stamp. */
bool flow_oracle_is_settled(qr_uuid base_id);
/* After the drain: which models there are vectors of, and that each build has come to its end. */
void flow_oracle_check_models(void);

/* NULL = nothing is open, active or deleting. */
const char *flow_oracle_unrest(void);
void flow_oracle_check_drained(void);

struct flow_totals {
    uint64_t model_changes, model_switches;
    uint64_t provider_calls, provider_failures, items, stale_results, searches, requests, refused, removed, swaps, kept;
};
extern struct flow_totals flow_totals;
