/* Which way a source takes, as one table (JOB-2). */
#pragma once

#include "model/item.h"

enum qr_source_way {
    QR_WAY_DIRECT,    /* read and convert ourselves */
    QR_WAY_PROCESSOR, /* a converter apart from us */
    QR_WAY_CONTAINER, /* expand */
    QR_WAY_INVALID,   /* cannot be taken: `code` and `message` */
};

struct qr_source_facts {
    enum qr_item_type type;
    qr_str name;            /* its extension counts; letter case does not */
    bool has_processor;     /* the base's settings send files of this name to one */
    int64_t size_bytes;     /* -1 = not known yet */
    int64_t size_bytes_max; /* of the base's limits; 0 = none */
};

struct qr_source_plan {
    enum qr_source_way way;
    const char *mime; /* "" = to be found out */
    qr_code code;
    const char *message;
};

/* The extension of a name in small letters, "" for none: "Report.PDF" → "pdf", ".profile" → "". One that is longer than
 * any we know is none. */
enum { QR_EXTENSION_SIZE = 17 };
void qr_source_extension(qr_str name, char ret_extension[static QR_EXTENSION_SIZE]);

struct qr_source_plan qr_source_plan(const struct qr_source_facts *facts);
