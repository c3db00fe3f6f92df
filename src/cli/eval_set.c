/* Whole files are read: a set is a few hundred megabytes at most. */
#include "cli/eval_set.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"

#include <errno.h>
#include <sys/stat.h>

enum { FILE_BYTES_MAX = 1 << 30 };

static const struct qr_json_limits limits = {.size_bytes_max = FILE_BYTES_MAX, .depth_max = 64, .values_max = 1 << 26};

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the test set");
}

static qr_rc not_a_set(const char *path, qr_err *err)
{
    return qr_fail(
        err, QR_CODE_INVALID_VALUE,
        "%s is no test set: that is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv in it (BEIR), "
        "or a JSON file of paragraphs with questions (SQuAD)",
        path);
}

/* ---- the set ---- */

static bool grow(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    const size_t wanted = *capacity ? *capacity * 2 : 1024;
    void *grown = qr_resize(*(void **)array, wanted * size);
    if (!grown) {
        return false;
    }
    *(void **)array = grown;
    *capacity = wanted;
    return true;
}

static qr_str copy(struct eval_set *set, const char *text, bool *ok)
{
    const qr_str from = qr_str_of(text ? text : "");
    const qr_str kept = {qr_arena_copy(&set->arena, from), from.len};
    *ok = *ok && kept.ptr;
    return kept;
}

static qr_rc add_document(struct eval_set *set, const char *id, const char *title, const char *text, qr_err *err)
{
    bool ok = grow(&set->documents, set->document_count, &set->document_capacity, sizeof set->documents[0]);
    if (ok) {
        set->documents[set->document_count++] =
            (struct eval_document){copy(set, id, &ok), copy(set, title, &ok), copy(set, text, &ok)};
    }
    return ok ? QR_OK : out_of_memory(err);
}

static qr_rc add_query(struct eval_set *set, const char *id, const char *text, qr_err *err)
{
    bool ok = grow(&set->queries, set->query_count, &set->query_capacity, sizeof set->queries[0]);
    if (ok) {
        set->queries[set->query_count++] =
            (struct eval_query){.id = copy(set, id, &ok), .text = copy(set, text, &ok).ptr};
    }
    return ok ? QR_OK : out_of_memory(err);
}

/* Judgements of a query come one after the other mostly; the array grows in the arena. */
static qr_rc add_judgement(struct eval_set *set, struct eval_query *query, size_t document, double gain, qr_err *err)
{
    const size_t count = query->judgement_count;
    if ((count & (count - 1)) == 0) { /* full at 0, 1, 2, 4, 8 … */
        struct eval_judgement *grown = qr_arena_array(&set->arena, count ? count * 2 : 1, sizeof *grown);
        if (!grown) {
            return out_of_memory(err);
        }
        if (count) {
            memcpy(grown, query->judgements, count * sizeof *grown);
        }
        query->judgements = grown;
    }
    query->judgements[query->judgement_count++] = (struct eval_judgement){document, gain};
    return QR_OK;
}

/* ---- BEIR ---- */

typedef qr_rc take_line_fn(struct eval_set *set, const json_t *line, qr_err *err);

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static qr_rc take_document(struct eval_set *set, const json_t *line, qr_err *err)
{
    return add_document(set, text_of(line, "_id"), text_of(line, "title"), text_of(line, "text"), err);
}

static qr_rc take_query(struct eval_set *set, const json_t *line, qr_err *err)
{
    return add_query(set, text_of(line, "_id"), text_of(line, "text"), err);
}

static qr_rc read_file(const char *folder, const char *name, struct qr_buf *out, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    qr_buf_printf(&path, "%s%s%s", folder, name[0] ? "/" : "", name);
    QR_TRY(qr_buf_check(&path, err));
    return qr_fs_read(qr_io_system(), path.data, FILE_BYTES_MAX, out, err);
}

static qr_rc read_lines(struct eval_set *set, const char *folder, const char *name, take_line_fn *take, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf file = {0};
    QR_TRY(read_file(folder, name, &file, err));
    qr_str rest = qr_buf_str(&file);
    for (int64_t number = 1; rest.len; number++) {
        const qr_str line = qr_str_trim(qr_str_split(&rest, '\n'));
        QR_JSON *value = NULL;
        if (line.len == 0) {
            continue;
        }
        if (qr_json_parse(line, &limits, &value, NULL) != QR_OK || !text_of(value, "_id")[0]) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "line %lld of %s is not an object with an _id",
                           (long long)number, name);
        }
        QR_TRY(take(set, value, err));
    }
    return QR_OK;
}

struct names {
    struct qr_map documents, queries; /* id → its place + 1 */
};

static qr_rc read_names(const struct eval_set *set, struct names *names, qr_err *err)
{
    for (size_t i = 0; i < set->document_count; i++) {
        if (!qr_map_put(&names->documents, set->documents[i].id, (void *)(i + 1))) {
            return out_of_memory(err);
        }
    }
    for (size_t i = 0; i < set->query_count; i++) {
        if (!qr_map_put(&names->queries, set->queries[i].id, (void *)(i + 1))) {
            return out_of_memory(err);
        }
    }
    return QR_OK;
}

/* QUERY TAB DOCUMENT TAB GAIN; the first line says so. */
static qr_rc take_judgements(struct eval_set *set, qr_str rest, const struct names *names, qr_err *err)
{
    qr_str_split(&rest, '\n');
    while (rest.len) {
        qr_str line = qr_str_trim(qr_str_split(&rest, '\n'));
        const qr_str query_id = qr_str_split(&line, '\t'), document_id = qr_str_split(&line, '\t');
        int64_t gain;
        const size_t query = (size_t)qr_map_find(&names->queries, query_id);
        const size_t document = (size_t)qr_map_find(&names->documents, document_id);
        if (query && document && qr_str_to_i64(line, &gain) && gain > 0) {
            QR_TRY(add_judgement(set, &set->queries[query - 1], document - 1, (double)gain, err));
        }
    }
    return QR_OK;
}

static qr_rc read_judgements(struct eval_set *set, const char *folder, qr_err *err)
{
    static const char *const files[] = {"qrels/test.tsv", "qrels/dev.tsv", "qrels/train.tsv"};
    QR_CLEANUP(qr_buf_done) struct qr_buf file = {0};
    qr_rc rc = QR_OK;
    for (size_t i = 0; i < QR_COUNT(files); i++) {
        rc = read_file(folder, files[i], &file, err);
        if (rc == QR_OK) {
            break;
        }
    }
    QR_TRY(rc);
    struct names names;
    qr_map_init(&names.documents, 1);
    qr_map_init(&names.queries, 1);
    rc = read_names(set, &names, err);
    rc = rc == QR_OK ? take_judgements(set, qr_buf_str(&file), &names, err) : rc;
    qr_map_done(&names.documents);
    qr_map_done(&names.queries);
    return rc;
}

static qr_rc read_beir(struct eval_set *set, const char *folder, qr_err *err)
{
    qr_rc rc = read_lines(set, folder, "corpus.jsonl", take_document, err);
    rc = rc == QR_OK ? read_lines(set, folder, "queries.jsonl", take_query, err) : rc;
    rc = rc == QR_OK ? read_judgements(set, folder, err) : rc;
    return rc == QR_NOT_FOUND ? not_a_set(folder, err) : rc;
}

/* ---- SQuAD ---- */

static qr_rc take_paragraph(struct eval_set *set, const json_t *paragraph, const char *title, qr_err *err)
{
    const json_t *question;
    size_t i;
    QR_TRY(add_document(set, text_of(paragraph, "id"), title, text_of(paragraph, "context"), err));
    json_array_foreach(json_object_get(paragraph, "qas"), i, question)
    {
        QR_TRY(add_query(set, text_of(question, "id"), text_of(question, "question"), err));
        QR_TRY(add_judgement(set, &set->queries[set->query_count - 1], set->document_count - 1, 1, err));
    }
    return QR_OK;
}

/* The title of an article stands over all of its paragraphs and some sets repeat an id there: it is left out. */
static qr_rc read_squad(struct eval_set *set, const char *path, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf file = {0};
    QR_JSON *value = NULL;
    const json_t *article, *paragraph;
    size_t i, j;
    QR_TRY(read_file(path, "", &file, err));
    const qr_rc rc = qr_json_parse(qr_buf_str(&file), &limits, &value, err);
    if (rc != QR_OK) {
        return rc == QR_INVALID ? not_a_set(path, err) : rc;
    }
    json_array_foreach(json_object_get(value, "data"), i, article)
    {
        json_array_foreach(json_object_get(article, "paragraphs"), j, paragraph)
        {
            QR_TRY(take_paragraph(set, paragraph, "", err));
        }
    }
    return QR_OK;
}

/* ---- both ---- */

static void drop_unjudged(struct eval_set *set, size_t queries_max)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->query_count && (queries_max == 0 || kept < queries_max); i++) {
        if (set->queries[i].judgement_count && set->queries[i].text[0]) {
            set->queries[kept++] = set->queries[i];
        }
    }
    set->query_count = kept;
}

qr_rc eval_set_read(struct eval_set *set, const char *path, size_t queries_max, qr_err *err)
{
    struct stat status;
    *set = (struct eval_set){0};
    qr_arena_init(&set->arena, 0);
    if (stat(path, &status) != 0) {
        return qr_fail_errno(err, errno, "cannot read the test set %s", path);
    }
    QR_TRY(S_ISDIR(status.st_mode) ? read_beir(set, path, err) : read_squad(set, path, err));
    drop_unjudged(set, queries_max);
    if (set->query_count == 0) {
        return set->document_count == 0
                   ? not_a_set(path, err)
                   : qr_fail(err, QR_CODE_INVALID_VALUE, "%s has no query with a judged document", path);
    }
    return QR_OK;
}

void eval_set_done(struct eval_set *set)
{
    qr_free(set->documents);
    qr_free(set->queries);
    qr_arena_done(&set->arena);
}
