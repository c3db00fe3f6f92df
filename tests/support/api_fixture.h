/* Requests through quire_call, to a data folder of the test's own. A call that is not answered as expected ends the test. */
#pragma once

#include "base/json.h"
#include "support/test.h"

#include <quire/quire.h>

/* The base that api_open_base makes. */
#define API_BASE  "/api/v1/bases/b"
#define API_ITEMS API_BASE "/items"

enum { API_ID_SIZE = 37 };

struct quire *api_open(struct qr_test *t);
struct quire *api_open_base(struct qr_test *t);
void api_start_work(struct quire *quire);

/* The answer, which must have this status; the caller's. */
json_t *api_call(struct quire *quire, const char *method, const char *path, const char *body, int status);
/* The answer has this status, and this in its text. */
void api_check(struct quire *quire, const char *method, const char *path, const char *body, int status,
               const char *has);
/* A member of the object; "" or 0 where there is none. */
const char *api_text(const json_t *object, const char *name);
long long api_number(const json_t *object, const char *name);

/* ---- items of the base ---- */

void api_keep_id(const json_t *item, char ret_id[static API_ID_SIZE]);
void api_add_note(struct quire *quire, const char *name, const char *content, char ret_id[static API_ID_SIZE]);
/* Of an item, and what follows its id; static memory. */
const char *api_item_path(const char *id, const char *rest);
/* Until the item has the status; the test's own time limit ends it otherwise. */
json_t *api_wait_for(struct quire *quire, const char *id, const char *status);
/* How many hits. */
size_t api_search(struct quire *quire, const char *words);
