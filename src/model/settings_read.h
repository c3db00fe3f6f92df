/* How a part of the settings is read from its JSON object. Private to src/model/. A value that is absent keeps what the setting
 * holds already, its default. */
#pragma once

#include "model/settings.h"

enum { QR_NAME_BYTES_MAX = 200, QR_URL_BYTES_MAX = 1000, QR_PATH_BYTES_MAX = 4096, QR_IN_FLIGHT_SETTING_MAX = 64 };

/* One object of the settings, and where it stands. */
struct qr_section {
    const json_t *object; /* NULL = absent: every setting in it keeps its default */
    const char *path;     /* "chunking." */
    struct qr_arena *arena;
    qr_err *err;
};

/* `fields`: those that there are, between single spaces. */
qr_rc qr_section_open(const struct qr_section *above, const char *name, const char *path, const char *fields,
                      struct qr_section *ret_section);
qr_rc qr_section_text(const struct qr_section *section, const char *name, size_t len_max, const char **setting);
/* A text of one line, such as a model's name. */
qr_rc qr_section_name(const struct qr_section *section, const char *name, const char **setting);
/* One of the words, which stand between single spaces. */
qr_rc qr_section_word(const struct qr_section *section, const char *name, const char *words, const char **setting);
qr_rc qr_section_number(const struct qr_section *section, const char *name, int64_t min, int64_t max, int64_t *setting);
/* From 0 to 1. */
qr_rc qr_section_part(const struct qr_section *section, const char *name, double *setting);
/* A list of texts that are not empty. */
qr_rc qr_section_list(const struct qr_section *section, const char *name, size_t count_max, size_t len_max,
                      const char ***ret_list, size_t *ret_count);
qr_rc qr_section_out_of_memory(qr_err *err);

/* ---- of servers elsewhere ---- */

/* Without slashes at its end, and without the operation ("/embeddings", "" = none), which is put behind it for each request:
 * people give both. */
qr_rc qr_section_url(const struct qr_section *section, const char *example, const char *operation, const char **url);
/* Where the key is read from. What is given instead of a name is likely to be the key: it is refused before it is stored. */
qr_rc qr_section_key_place(const struct qr_section *section, const char **env, const char **file);
/* requests_a_minute, tokens_a_minute, in_flight. */
qr_rc qr_section_endpoint_limits(const struct qr_section *section, int64_t *requests_a_minute, int64_t *tokens_a_minute,
                                 int64_t *in_flight);

/* ---- settings_services.c ---- */

#define QR_SERVICE_DEFAULTS                                                                                            \
    {                                                                                                                  \
        .url = "", .model = "", .api_key_env = "", .api_key_file = ""                                                  \
    }
#define QR_RERANK_DEFAULTS                                                                                             \
    {                                                                                                                  \
        .provider = "none", .service = QR_SERVICE_DEFAULTS, .top_n = 50, .document_bytes = 8000,                       \
        .request_bytes = 500000                                                                                        \
    }
#define QR_VISION_DEFAULTS                                                                                             \
    {                                                                                                                  \
        .service = QR_SERVICE_DEFAULTS, .prompt = "", .max_tokens = 1000, .picture_bytes = 10 * 1000 * 1000            \
    }
#define QR_DOCLING_DEFAULTS                                                                                            \
    {                                                                                                                  \
        .service = QR_SERVICE_DEFAULTS                                                                                 \
    }
qr_rc qr_settings_read_rerank(const struct qr_section *above, struct qr_rerank_settings *rerank);
/* `is_used`: then what it cannot do without must be there. */
qr_rc qr_settings_read_vision(const struct qr_section *above, bool is_used, struct qr_vision_settings *vision);
qr_rc qr_settings_read_docling(const struct qr_section *section, bool is_used, struct qr_docling_settings *docling);
