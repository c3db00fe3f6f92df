/* Any bytes as a configuration file: parsed, and every entry's key and value looked at as the loader does. */
#include "base/config_key.h"
#include "base/ini.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

struct whole {
    qr_str text;
    int last_line;
};

/* What the parser hands out is a part of the text, in order, and never empty where it must not be. */
static void check_entry(const struct whole *whole, const struct qr_ini_entry *entry)
{
    const char *begin = whole->text.ptr, *end = begin + whole->text.len;
    require(entry->section.len && entry->section.ptr >= begin && entry->section.ptr + entry->section.len <= end);
    require(entry->key.len && entry->key.ptr >= entry->section.ptr + entry->section.len);
    require(entry->value.ptr > entry->key.ptr && entry->value.ptr + entry->value.len <= end);
    require(entry->value.len < QR_INI_LINE_BYTES_MAX && qr_utf8_valid(entry->value));
    require(entry->line > whole->last_line);
}

static qr_rc take_entry(void *arg, const struct qr_ini_entry *entry, qr_err *err)
{
    struct whole *whole = arg;
    check_entry(whole, entry);
    whole->last_line = entry->line;
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        const struct qr_config_key *key = qr_config_key(id);
        QR_CLEANUP(qr_buf_done) struct qr_buf shown = {0};
        int64_t number = 0;
        if (qr_config_parse_value(key, entry->value, &number, err) == QR_OK) {
            require(key->min == key->max || (number >= key->min && number <= key->max));
        }
        qr_config_add_shown(&shown, key, entry->value);
    }
    enum qr_config_id id;
    (void)qr_config_require(entry->key, &id, err);
    return QR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct whole whole = {.text = {(const char *)data, size}};
    qr_err err = {0};
    const qr_rc rc = qr_ini_parse(whole.text, "fuzz.ini", take_entry, &whole, &err);
    require(rc == QR_OK || rc == QR_INVALID || rc == QR_TOO_LARGE);
    return 0;
}
