#include "support/search_fixture.h"

#include <stdio.h>

static void must(qr_rc rc, const qr_err *err)
{
    if (rc != QR_OK) {
        QR_FAIL("%s (%s)", err->msg, qr_code_info(err->code)->name);
    }
}

void library_open(struct library *library, struct qr_test *t, const char *settings)
{
    *library = (struct library){0};
    qr_arena_init(&library->arena, 0);
    qr_shop_open(&library->shop, t, settings);
    library->model = qr_shop_live_model(&library->shop);
    if (strstr(settings, "\"hash\"")) {
        library->batcher = qr_shop_batcher(&library->shop, settings);
    }
}

void library_close(struct library *library)
{
    qr_arena_done(&library->arena);
    qr_shop_close(&library->shop);
}

qr_uuid library_note(struct library *library, const char *name, const char *content)
{
    return qr_desk_add_note(&library->shop.desk, name, content);
}

qr_uuid library_note_with(struct library *library, const char *name, const char *content, const char *attributes)
{
    struct qr_desk *desk = &library->shop.desk;
    const qr_uuid id = library_note(library, name, content);
    qr_err err;
    must(qr_workflow_patch(&desk->workflow, desk->base_id, id, &(struct qr_item_patch){.attributes = attributes}, &err),
         &err);
    return id;
}

void library_work(struct library *library)
{
    qr_shop_work(&library->shop);
}

struct qr_search library_search(struct library *library, const char *query)
{
    return (struct qr_search){.db = library->shop.desk.db,
                              .index = library->shop.context.index,
                              .base_id = library->shop.desk.base_id,
                              .batcher = library->batcher,
                              .model = library->model,
                              .query = qr_str_of(query),
                              .fusion = {QR_FUSION_WEIGHTED, {0.5, 0.5}},
                              .keeps_chunks = true,
                              .top_k = 10};
}

struct qr_search_answer library_run(struct library *library, const struct qr_search *search)
{
    struct qr_search_answer answer;
    qr_err err;
    must(qr_search_run(search, &library->arena, &answer, &err), &err);
    return answer;
}

struct qr_search_answer library_ask(struct library *library, const char *query)
{
    const struct qr_search search = library_search(library, query);
    return library_run(library, &search);
}

bool answer_has(const struct qr_search_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->count; i++) {
        if (strcmp(answer->hits[i].item->name, name) == 0) {
            return true;
        }
    }
    return false;
}

const char *answer_names(const struct qr_search_answer *answer)
{
    static char names[2000];
    size_t len = 0;
    names[0] = '\0';
    for (size_t i = 0; i < answer->count && len < sizeof names - 100; i++) {
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", i ? " " : "", answer->hits[i].item->name);
    }
    return names;
}
