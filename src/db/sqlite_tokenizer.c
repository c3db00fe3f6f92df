/* FTS5's tokenizer `quire`: between its C interface and the functions of the options. */
#include "db/sqlite.h"

#include "base/mem.h"

struct instance {
    const struct qr_db_tokenizer *tokenizer;
    void *self;
};

static int create(void *context, const char **args QR_UNUSED, int arg_count QR_UNUSED, Fts5Tokenizer **ret_instance)
{
    struct instance *instance = qr_alloc_zero(sizeof *instance);
    if (!instance) {
        return SQLITE_NOMEM;
    }
    instance->tokenizer = context;
    if (instance->tokenizer->create(&instance->self, NULL) != QR_OK) {
        qr_free(instance);
        return SQLITE_NOMEM;
    }
    *ret_instance = (Fts5Tokenizer *)instance;
    return SQLITE_OK;
}

static void delete (Fts5Tokenizer *handle)
{
    struct instance *instance = (struct instance *)handle;
    instance->tokenizer->free(instance->self);
    qr_free(instance);
}

typedef int token_fn(void *context, int flags, const char *token, int len, int start, int end);

struct receiver {
    token_fn *fn;
    void *context;
    int rc; /* what it said last */
};

static qr_rc pass_on(void *arg, qr_str word, size_t start, size_t end, bool is_same_place)
{
    struct receiver *receiver = arg;
    receiver->rc = receiver->fn(receiver->context, is_same_place ? FTS5_TOKEN_COLOCATED : 0, word.ptr, (int)word.len,
                                (int)start, (int)end);
    return receiver->rc == SQLITE_OK ? QR_OK : QR_CANCELLED;
}

static int tokenize(Fts5Tokenizer *handle, void *context, int flags, const char *text, int len, token_fn *fn)
{
    struct instance *instance = (struct instance *)handle;
    struct receiver receiver = {.fn = fn, .context = context, .rc = SQLITE_OK};
    const qr_str all = {text ? text : "", (size_t)len};
    const bool is_query = (flags & FTS5_TOKENIZE_QUERY) != 0;
    const qr_rc rc = instance->tokenizer->tokenize(instance->self, all, is_query, pass_on, &receiver, NULL);
    if (receiver.rc != SQLITE_OK) {
        return receiver.rc;
    }
    return rc == QR_OK ? SQLITE_OK : rc == QR_NOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
}

int qr_sqlite_find_fts5(sqlite3 *handle, fts5_api **ret_api)
{
    sqlite3_stmt *stmt;
    *ret_api = NULL;
    int rc = sqlite3_prepare_v2(handle, "SELECT fts5(?1)", -1, &stmt, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }
    sqlite3_bind_pointer(stmt, 1, ret_api, "fts5_api_ptr", NULL);
    sqlite3_step(stmt);
    rc = sqlite3_finalize(stmt);
    return rc == SQLITE_OK && !*ret_api ? SQLITE_ERROR : rc;
}

int qr_sqlite_register_tokenizer(sqlite3 *handle, const struct qr_db_tokenizer *tokenizer)
{
    fts5_tokenizer functions = {.xCreate = create, .xDelete = delete, .xTokenize = tokenize};
    fts5_api *api;
    const int rc = qr_sqlite_find_fts5(handle, &api);
    return rc == SQLITE_OK ? api->xCreateTokenizer(api, "quire", (void *)tokenizer, &functions, NULL) : rc;
}
