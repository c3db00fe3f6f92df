/* The one table of errors: X(id, code, rc, HTTP status, exit code, job policy, what to do next).
 *
 * `code` is the stable word that API, CLI, database and logs show; nothing else is ever matched on. A failure is raised
 * by its id, so its class, status, exit code and job policy cannot be forgotten or disagree. docs/ERRORS.md is printed
 * from this table (`quire help errors`), and a test compares the two.
 *
 * Exit codes: 0 ok, 1 failed work, 2 usage, 3 refused by state, 4 not found, 5 unavailable. */
/* clang-format off */
QR_CODE(NONE,               "ok",                 QR_OK,          200, 0, QR_POLICY_FAIL,  "")

/* the request */
QR_CODE(BAD_REQUEST,        "bad_request",        QR_INVALID,     400, 2, QR_POLICY_FAIL,  "Correct the request; the message says where it is malformed.")
QR_CODE(UNKNOWN_FIELD,      "unknown_field",      QR_INVALID,     400, 2, QR_POLICY_FAIL,  "Remove or rename the field; the message names the nearest known one.")
QR_CODE(INVALID_VALUE,      "invalid_value",      QR_INVALID,     422, 2, QR_POLICY_FAIL,  "Give a value in the range the message states.")
QR_CODE(NOT_FOUND,          "not_found",          QR_NOT_FOUND,   404, 4, QR_POLICY_SKIP,  "Check the name or id; list what there is.")
QR_CODE(METHOD_NOT_ALLOWED, "method_not_allowed", QR_INVALID,     405, 2, QR_POLICY_FAIL,  "Use a method that the message names.")
QR_CODE(ALREADY_EXISTS,     "already_exists",     QR_CONFLICT,    409, 3, QR_POLICY_FAIL,  "Use the existing one, or choose another name.")
QR_CODE(VERSION_CONFLICT,   "version_conflict",   QR_CONFLICT,    409, 3, QR_POLICY_FAIL,  "Read the current version and apply the change to it.")
QR_CODE(NOT_TERMINAL,       "not_terminal",       QR_CONFLICT,    409, 3, QR_POLICY_FAIL,  "Wait until it has ended, or cancel it first.")
QR_CODE(NOT_FAILED,         "not_failed",         QR_CONFLICT,    409, 3, QR_POLICY_FAIL,  "Nothing; only what failed or was cancelled can be tried again.")
QR_CODE(NOT_OPEN,           "not_open",           QR_CONFLICT,    409, 3, QR_POLICY_FAIL,  "Nothing; it has already ended.")
QR_CODE(NOT_COMPLETED,      "not_completed",      QR_CONFLICT,    409, 3, QR_POLICY_FAIL,  "Wait until the item is completed.")
QR_CODE(NOT_EMPTY,          "not_empty",          QR_CONFLICT,    409, 3, QR_POLICY_FAIL,  "Confirm that everything in it may go (confirm=true), or delete its items first.")
QR_CODE(IN_USE,             "in_use",             QR_CONFLICT,    409, 3, QR_POLICY_FAIL,  "Give the base that the message names another model first (`quire model use`).")
QR_CODE(BASE_FAILED,        "base_failed",        QR_CONFLICT,    409, 3, QR_POLICY_FAIL,  "See the base's error, then restore the base.")
QR_CODE(ENQUEUE_FAILED,     "enqueue_failed",     QR_UNAVAILABLE, 503, 5, QR_POLICY_FAIL,  "Retry the items that failed; those that were accepted go on.")
QR_CODE(PAYLOAD_TOO_LARGE,  "payload_too_large",  QR_TOO_LARGE,   413, 2, QR_POLICY_FAIL,  "Send less at once; the message states the limit.")
QR_CODE(UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", QR_INVALID, 415, 2, QR_POLICY_FAIL, "Send the body as the message says, with its Content-Type.")
QR_CODE(UNAUTHORIZED,       "unauthorized",       QR_DENIED,      401, 3, QR_POLICY_FAIL,  "Send a key that is valid: Authorization: Bearer qk_…. `quire key create` on the server makes one.")
QR_CODE(FORBIDDEN,          "forbidden",          QR_DENIED,      403, 3, QR_POLICY_FAIL,  "Ask for the permission the message names.")
QR_CODE(RANGE_NOT_SATISFIABLE, "range_not_satisfiable", QR_INVALID, 416, 2, QR_POLICY_FAIL, "Ask for bytes that there are: Content-Range says how many.")
QR_CODE(IDEMPOTENCY_MISMATCH, "idempotency_mismatch", QR_INVALID, 422, 2, QR_POLICY_FAIL, "Use another Idempotency-Key: this one was sent with another request.")
QR_CODE(IDEMPOTENCY_PENDING, "idempotency_pending", QR_CONFLICT, 409, 3, QR_POLICY_FAIL, "Wait for the first request's answer; if its server has ended, look whether it took effect, and use another key.")
QR_CODE(CROSS_SITE,         "cross_site",         QR_DENIED,      403, 3, QR_POLICY_FAIL,  "Send it from a page of this server, or with a key.")
QR_CODE(FOREIGN_HOST,       "foreign_host",       QR_DENIED,      421, 3, QR_POLICY_FAIL,  "Use localhost or 127.0.0.1, or list the name in server.hosts.")
QR_CODE(USAGE,              "usage",              QR_INVALID,     400, 2, QR_POLICY_FAIL,  "See `quire help COMMAND`.")

/* the service */
QR_CODE(UNAVAILABLE,        "unavailable",        QR_UNAVAILABLE, 503, 5, QR_POLICY_RETRY, "Try again; the message names the part that does not answer.")
QR_CODE(SHUTTING_DOWN,      "shutting_down",      QR_UNAVAILABLE, 503, 5, QR_POLICY_RETRY, "Try again after the restart; accepted work continues by itself.")
QR_CODE(TIMEOUT,            "timeout",            QR_TIMEOUT,     503, 5, QR_POLICY_RETRY, "Try again, or ask for less at once.")
QR_CODE(CANCELLED,          "cancelled",          QR_CANCELLED,   503, 1, QR_POLICY_SKIP,  "Nothing; it was stopped on purpose.")
QR_CODE(DISK_FULL,          "disk_full",          QR_FULL,        503, 5, QR_POLICY_RETRY, "Free space on the data folder's disk; no restart is needed.")
QR_CODE(IO_ERROR,           "io_error",           QR_IO,          503, 5, QR_POLICY_RETRY, "Check the disk; the message names the file. Nothing that was acknowledged is affected.")
QR_CODE(OUT_OF_MEMORY,      "out_of_memory",      QR_NOMEM,       503, 5, QR_POLICY_RETRY, "Give the process more memory, or ask for less at once.")
QR_CODE(INTERNAL,           "internal",           QR_BUG,         500, 5, QR_POLICY_FAIL,  "A defect of Quire: report it with the log lines of that time.")

/* the data folder and the database */
QR_CODE(DATA_LOCKED,        "data_locked",        QR_UNAVAILABLE, 503, 5, QR_POLICY_RETRY, "Another process owns the data folder: use it through that one, stop it, or choose another folder with --data.")
QR_CODE(DATA_READONLY,      "data_readonly",      QR_DENIED,      503, 5, QR_POLICY_FAIL,  "Make the data folder writable for this user, or choose another with --data.")
QR_CODE(DATA_FOREIGN,       "data_foreign",       QR_CORRUPT,     503, 5, QR_POLICY_FAIL,  "The database was not made by Quire: choose another folder with --data.")
QR_CODE(DATA_CORRUPT,       "data_corrupt",       QR_CORRUPT,     503, 5, QR_POLICY_FAIL,  "Restore the data folder from a backup; the file is left as it is.")
QR_CODE(SCHEMA_NEWER,       "schema_newer",       QR_CONFLICT,    503, 5, QR_POLICY_FAIL,  "The data was written by a newer Quire: use that version or a later one.")

/* what ends a job or an item */
QR_CODE(UNSUPPORTED_TYPE,   "unsupported_type",   QR_INVALID,     415, 1, QR_POLICY_FAIL,  "Convert it to a format that Quire reads, or configure a file processor.")
QR_CODE(TOO_LARGE,          "too_large",          QR_TOO_LARGE,   413, 1, QR_POLICY_FAIL,  "Raise the base's limit, or split the file.")
QR_CODE(CORRUPT,            "corrupt",            QR_CORRUPT,     422, 1, QR_POLICY_FAIL,  "Check the file: its content does not fit its format.")
QR_CODE(SOURCE_MISSING,     "source_missing",     QR_NOT_FOUND,   404, 1, QR_POLICY_FAIL,  "Put the file or folder back, or delete the item.")
QR_CODE(SOURCE_UNREADABLE,  "source_unreadable",  QR_DENIED,      422, 1, QR_POLICY_FAIL,  "Give this user permission to read it, or wait until it stops changing; then retry.")
QR_CODE(CONVERSION_FAILED,  "conversion_failed",  QR_INVALID,     422, 1, QR_POLICY_FAIL,  "See the converter's message; then retry.")
QR_CODE(CONVERSION_TIMEOUT, "conversion_timeout", QR_TIMEOUT,     504, 1, QR_POLICY_FAIL,  "Split the file, or give the converter more power; then retry.")
QR_CODE(CHUNKS_FAILED,      "chunks_failed",      QR_INVALID,     422, 1, QR_POLICY_FAIL,  "See what the server said; change the text or the chunk size (`quire base set`), then `quire retry ITEM`.")
QR_CODE(EMBEDDING_FAILED,   "embedding_failed",   QR_UNAVAILABLE, 502, 1, QR_POLICY_RETRY, "See the server's message and correct what it names (`quire base set` changes url, model and key); then `quire retry ITEM`.")
QR_CODE(INDEX_LOST,         "index_lost",         QR_UNAVAILABLE, 503, 5, QR_POLICY_RETRY, "Nothing; the base's index is being rebuilt from what is stored.")
QR_CODE(RATE_LIMITED,       "rate_limited",       QR_UNAVAILABLE, 429, 5, QR_POLICY_WAIT,  "Nothing; it goes on by itself as fast as the limit allows.")
QR_CODE(ENDPOINT_REFUSED,   "endpoint_refused",   QR_UNAVAILABLE, 502, 5, QR_POLICY_WAIT,  "Correct the key, its rights or the quota of the service that the message names; work goes on by itself.")
QR_CODE(DIMENSION_MISMATCH, "dimension_mismatch", QR_CONFLICT,    409, 1, QR_POLICY_FAIL,  "The model's dimension changed: restore the base, or set the model back.")
QR_CODE(INTERRUPTED,        "interrupted",        QR_UNAVAILABLE, 503, 1, QR_POLICY_FAIL,  "The process ended while it was worked on: retry it.")
QR_CODE(STAGE_SKIPPED,      "stage_skipped",      QR_BUG,         500, 1, QR_POLICY_FAIL,  "A stage declined without a known reason: report it, then retry.")
QR_CODE(LIMIT_EXCEEDED,     "limit_exceeded",     QR_TOO_LARGE,   422, 1, QR_POLICY_FAIL,  "Raise the limit that the message names, or leave something out.")
QR_CODE(DELETING,           "deleting",           QR_STALE,       409, 3, QR_POLICY_SKIP,  "Nothing; it is being deleted.")
QR_CODE(CRASHED_WORKER,     "crashed_worker",     QR_BUG,         500, 1, QR_POLICY_FAIL,  "Look at this item's content: the process died each time it was worked on. Retry it after an upgrade.")

/* what a job's write meets: the work is no longer wanted */
QR_CODE(LOST,               "lost",               QR_LOST,        409, 3, QR_POLICY_SKIP,  "Nothing; another worker holds the job now and its result counts.")
QR_CODE(STALE,              "stale_generation",   QR_STALE,       409, 3, QR_POLICY_SKIP,  "Nothing; a newer attempt replaced this one.")
/* clang-format on */
