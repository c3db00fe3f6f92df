/* The configuration in force: default < file < environment < flag. config_keys.h is the table of what can be set. */
#pragma once

#include "base/arena.h"
#include "base/config_key.h"
#include "base/io.h"

enum qr_config_source { QR_SOURCE_DEFAULT, QR_SOURCE_FILE, QR_SOURCE_ENVIRONMENT, QR_SOURCE_FLAG };

struct qr_config_value {
    const char *text;
    int64_t number; /* as qr_config_parse_value says */
    enum qr_config_source source;
    const char *origin; /* "FILE:LINE", the variable's name, the flag; "" for defaults */
};

enum { QR_CONFIG_STRAYS_MAX = 32 };

struct qr_config {
    struct qr_arena arena; /* owns every text below */
    struct qr_config_value values[QR_CONFIG_COUNT];
    const char *file; /* that was read, or NULL */
    /* variables that look like settings but are none: maybe a typing mistake, maybe somebody's API key, so only the
     * name is kept */
    const char *strays[QR_CONFIG_STRAYS_MAX];
    size_t stray_count;
};

struct qr_config_flag {
    const char *flag; /* as the user knows it: "--set", "--data" */
    qr_str key, value;
};

struct qr_config_inputs {
    const struct qr_io *io;
    const char *file;       /* --config: must exist. NULL = QUIRE_CONFIG, which must too, else the user's own if any */
    const char *const *env; /* NULL-terminated "NAME=value"; NULL = none, and then no file of the user's either */
    const struct qr_config_flag *flags; /* the last one for a key counts */
    size_t flag_count;
};

void qr_config_init(struct qr_config *config);
void qr_config_done(struct qr_config *config);

/* Reads everything; the first thing wrong is the error, also where a stronger source would override it: a mistake that
 * waits is found too late. An empty variable counts as not set. */
qr_rc qr_config_load(struct qr_config *config, const struct qr_config_inputs *inputs, qr_err *err);

static inline const char *qr_config_text(const struct qr_config *config, enum qr_config_id id)
{
    return config->values[id].text;
}
static inline int64_t qr_config_number(const struct qr_config *config, enum qr_config_id id)
{
    return config->values[id].number;
}

/* Whether both have the same value for it, wherever it came from. */
bool qr_config_same(const struct qr_config *a, const struct qr_config *b, enum qr_config_id id);
/* The same for all. */
bool qr_config_equal(const struct qr_config *a, const struct qr_config *b);
/* Whether `next` has another value than the program that runs with `now`, and it has to be started again to take it. */
bool qr_config_needs_start(const struct qr_config *next, const struct qr_config *now, enum qr_config_id id);
/* Of `next`, which a program that runs with `now` is about to take: gives back what it cannot take. */
qr_rc qr_config_keep_fixed(struct qr_config *next, const struct qr_config *now, qr_err *err);

/* "default", "file", "environment" or "flag" */
const char *qr_config_source_name(enum qr_config_source source);
/* The variable most like this one that sets something, written to ret_name; false when none is close. */
bool qr_config_nearest_env(const char *name, char ret_name[static QR_CONFIG_ENV_SIZE]);
