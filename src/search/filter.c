/* From the cheapest question to the dearest. */
#include "search/filter.h"

bool qr_filter_fits_none(const struct qr_search_filter *filter)
{
    return filter->types == QR_FILTER_NO_TYPE || (filter->item_ids && filter->item_id_count == 0);
}

/* ---- the tree ---- */

static bool is_one_of(qr_str id, const struct qr_search_filter *filter)
{
    for (size_t i = 0; i < filter->item_id_count; i++) {
        if (memcmp(id.ptr, filter->item_ids[i].bytes, QR_UUID_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_inside(const struct qr_search_filter *filter, const struct qr_item_facts *item)
{
    for (size_t at = 0; at + QR_UUID_BYTES <= item->path.len; at += QR_UUID_BYTES) {
        if (is_one_of((qr_str){item->path.ptr + at, QR_UUID_BYTES}, filter)) {
            return true;
        }
    }
    return !filter->item_ids;
}

/* ---- paths ---- */

static char small(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

/* Goes back to the last star only, so the work is at most the product of the lengths. */
static bool fits(qr_str text, qr_str pattern)
{
    size_t at = 0, in_pattern = 0, star = SIZE_MAX, behind_star = 0;
    while (at < text.len) {
        if (in_pattern < pattern.len && pattern.ptr[in_pattern] == '*') {
            star = in_pattern++;
            behind_star = at;
        } else if (in_pattern < pattern.len &&
                   (pattern.ptr[in_pattern] == '?' || small(pattern.ptr[in_pattern]) == small(text.ptr[at]))) {
            in_pattern++;
            at++;
        } else if (star != SIZE_MAX) {
            in_pattern = star + 1;
            at = ++behind_star;
        } else {
            return false;
        }
    }
    while (in_pattern < pattern.len && pattern.ptr[in_pattern] == '*') {
        in_pattern++;
    }
    return in_pattern == pattern.len;
}

bool qr_path_fits(qr_str path, qr_str pattern)
{
    const bool is_folder = qr_str_ends_with(pattern, QR_STR("/"));
    for (;;) {
        const qr_str begin = {path.ptr, QR_MIN(path.len, pattern.len)};
        if (fits(path, pattern) || (is_folder && fits(begin, pattern))) {
            return true;
        }
        const char *slash = memchr(path.ptr, '/', path.len);
        if (path.len == 0 || !slash) {
            return false;
        }
        path.len -= (size_t)(slash - path.ptr) + 1;
        path.ptr = slash + 1;
    }
}

static bool fits_patterns(const struct qr_search_filter *filter, const struct qr_item_facts *item)
{
    const qr_str path = item->source.len ? item->source : item->name;
    for (size_t i = 0; i < filter->pattern_count; i++) {
        const struct qr_path_pattern *pattern = &filter->patterns[i];
        if (qr_path_fits(path, pattern->pattern) == pattern->is_excluded) {
            return false;
        }
    }
    return true;
}

/* ---- attributes ---- */

static bool value_fits(const json_t *value, const json_t *wanted)
{
    const json_t *one;
    size_t i;
    if (!json_is_array(wanted)) {
        return value && json_equal(value, wanted);
    }
    json_array_foreach(wanted, i, one)
    {
        if (value && json_equal(value, one)) {
            return true;
        }
    }
    return false;
}

static qr_rc check_attributes(const struct qr_search_filter *filter, const struct qr_item_facts *item, bool *ret_passes,
                              qr_err *err)
{
    QR_JSON *attributes = NULL;
    const json_t *wanted;
    const char *key;
    if (item->attributes.len &&
        qr_json_parse(item->attributes, &QR_JSON_REQUEST_LIMITS, &attributes, err) == QR_NOMEM) {
        return QR_NOMEM;
    }
    *ret_passes = true;
    json_object_foreach((json_t *)filter->attributes, key, wanted)
    {
        *ret_passes = *ret_passes && value_fits(json_object_get(attributes, key), wanted);
    }
    return QR_OK;
}

qr_rc qr_filter_check(const struct qr_search_filter *filter, const struct qr_item_facts *item, bool *ret_passes,
                      qr_err *err)
{
    *ret_passes = (filter->types == 0 || (filter->types & QR_BIT(item->type))) && is_inside(filter, item) &&
                  fits_patterns(filter, item);
    return *ret_passes && filter->attributes ? check_attributes(filter, item, ret_passes, err) : QR_OK;
}
