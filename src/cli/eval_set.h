/* Test sets of retrieval: documents, queries, and which documents answer which query. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct eval_document {
    qr_str id, title, text; /* valid UTF-8, in the arena */
};

struct eval_judgement {
    size_t document; /* its place in the set */
    double gain;     /* above 0 */
};

struct eval_query {
    qr_str id;
    const char *text;
    struct eval_judgement *judgements;
    size_t judgement_count; /* at least 1 */
};

struct eval_set {
    struct qr_arena arena;
    struct eval_document *documents;
    size_t document_count, document_capacity;
    struct eval_query *queries;
    size_t query_count, query_capacity;
};

/* A folder in the layout of BEIR (corpus.jsonl, queries.jsonl, qrels/test.tsv, or dev or train where there is no test), or a
 * file in the layout of SQuAD (each question is answered by its own paragraph). At most `queries_max` queries, 0 = all. To
 * be ended also when it could not be read. */
qr_rc eval_set_read(struct eval_set *set, const char *path, size_t queries_max, qr_err *err);
void eval_set_done(struct eval_set *set);
