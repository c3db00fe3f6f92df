#include "workflow/place.h"

#include "api/instance.h"
#include "index/set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_US_MIN = 1000, LOOK_US_MAX = 20000 };

static void fail(const struct quire_error *error)
{
    fprintf(stderr, "bench: %s (%s)\n", error->message, error->code);
    exit(1);
}

void place_open(struct place *place, const char *dir, bool works)
{
    const struct quire_options options = {.data_dir = dir, .program = "bench"};
    struct quire_error error;
    *place = (struct place){0};
    if (quire_open(&options, &place->quire, &error) || (works && quire_start_work(place->quire, &error))) {
        fail(&error);
    }
}

void place_close(struct place *place)
{
    quire_close(place->quire);
}

int place_ask(struct place *place, const char *method, const char *path, const char *body,
              struct quire_response *ret_response)
{
    return place->ask ? place->ask(place, method, path, body, ret_response)
                      : quire_call(place->quire, method, path, body, ret_response);
}

json_t *place_call(struct place *place, const char *method, const char *path, json_t *body)
{
    char full[512];
    struct quire_response response;
    snprintf(full, sizeof full, "/api/v1%s", path);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    const int status = place_ask(place, method, full, text, &response);
    if (status >= 300) {
        fprintf(stderr, "bench: %s %s: %s\n", method, full, response.body);
        exit(1);
    }
    json_t *answer = json_loads(response.body, 0, NULL);
    quire_response_done(&response);
    free(text);
    json_decref(body);
    return answer;
}

json_t *place_call_base(struct place *place, const char *method, const char *path, json_t *body)
{
    char full[512];
    snprintf(full, sizeof full, "/bases/%s%s", place->base, path);
    return place_call(place, method, full, body);
}

static void copy_id(const json_t *object, char ret_id[static PLACE_ID_SIZE])
{
    const char *id = json_string_value(json_object_get(object, "id"));
    snprintf(ret_id, PLACE_ID_SIZE, "%s", id ? id : "");
}

void place_add_base(struct place *place, const char *name)
{
    json_t *base = place_call(place, "POST", "/bases", json_pack("{s:s}", "name", name));
    copy_id(base, place->base);
    json_decref(base);
}

void place_add_folder(struct place *place, const char *folder, bool again, char ret_id[static PLACE_ID_SIZE])
{
    json_t *body = json_pack("{s:[{s:s, s:s}], s:s}", "items", "type", "directory", "path", folder, "on_conflict",
                             again ? "update" : "create");
    json_t *answer = place_call_base(place, "POST", "/items", body);
    copy_id(json_array_get(json_object_get(answer, "items"), 0), ret_id);
    json_decref(answer);
}

/* An item that is to be refreshed stays what it is until that has found a change. */
static bool is_refreshed(struct place *place, const char *id)
{
    char path[128];
    snprintf(path, sizeof path, "/jobs?item=%s&type=refresh-source&limit=1", id);
    json_t *jobs = place_call(place, "GET", path, NULL);
    const json_t *job = json_array_get(json_object_get(jobs, "data"), 0);
    const char *state = job ? json_string_value(json_object_get(job, "state")) : "completed";
    const bool is_refreshed = state && strcmp(state, "completed") == 0;
    json_decref(jobs);
    return is_refreshed;
}

static bool is_completed(struct place *place, const char *id)
{
    char path[64];
    snprintf(path, sizeof path, "/items/%s", id);
    json_t *item = place_call_base(place, "GET", path, NULL);
    const char *status = json_string_value(json_object_get(item, "status"));
    if (!status || strcmp(status, "failed") == 0) {
        char *text = json_dumps(item, JSON_COMPACT);
        fprintf(stderr, "bench: an item failed: %s\n", text);
        exit(1);
    }
    const bool is_completed = strcmp(status, "completed") == 0;
    json_decref(item);
    return is_completed;
}

static bool is_over(struct place *place, const char *id)
{
    char path[64];
    snprintf(path, sizeof path, "/items/%s", id);
    json_t *item = place_call_base(place, "GET", path, NULL);
    const char *status = json_string_value(json_object_get(item, "status"));
    const bool is_over = status && (strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0);
    json_decref(item);
    return is_over;
}

/* To within a few percent: more looks would be what is measured. */
static void wait_until(bool (*is_so)(struct place *place, const char *id), struct place *place, const char *id)
{
    const int64_t began_us = bench_now_us();
    while (!is_so(place, id)) {
        const int64_t part_us = (bench_now_us() - began_us) / 30;
        bench_sleep_us(QR_MIN(QR_MAX(part_us, (int64_t)LOOK_US_MIN), (int64_t)LOOK_US_MAX));
    }
}

void place_wait(struct place *place, const char *id)
{
    wait_until(is_completed, place, id);
}

void place_wait_over(struct place *place, const char *id)
{
    wait_until(is_over, place, id);
}

void place_wait_refreshed(struct place *place, const char *id)
{
    wait_until(is_refreshed, place, id);
    wait_until(is_completed, place, id);
}

bool place_has_open(struct place *place, const char *type)
{
    static const char *const states[] = {"scheduled", "queued", "running"};
    bool has = false;
    for (size_t i = 0; !has && i < QR_COUNT(states); i++) {
        char path[128];
        snprintf(path, sizeof path, "/jobs?state=%s&type=%s&limit=1", states[i], type);
        json_t *jobs = place_call(place, "GET", path, NULL);
        has = json_array_size(json_object_get(jobs, "data")) > 0;
        json_decref(jobs);
    }
    return has;
}

static void add_writes(struct qr_db *db, double *longest_ms, uint64_t *count)
{
    struct qr_db_stats stats;
    qr_db_stats(db, &stats);
    *longest_ms = QR_MAX(*longest_ms, (double)stats.longest_write_us / 1e3);
    *count += stats.commits;
}

struct place_writes place_writes(const struct place *place)
{
    struct qr_index_set *set = place->quire->index;
    struct place_writes writes = {0};
    add_writes(place->quire->db, &writes.main_longest_ms, &writes.main_count);
    QR_HOLD(&set->lock);
    size_t cursor = 0;
    qr_str key;
    void *value;
    while (qr_map_next(&set->stores, &cursor, &key, &value)) {
        const struct index_store *store = value;
        if (store->state == STORE_OPEN) {
            add_writes(store->db, &writes.index_longest_ms, &writes.index_count);
        }
    }
    return writes;
}
