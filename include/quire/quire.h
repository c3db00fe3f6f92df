/* Quire as a library: open a data folder, call, close.
 *
 *     struct quire_options options = {0};
 *     struct quire_error error;
 *     struct quire *quire;
 *     options.data_dir = "/var/lib/notes";
 *     if (quire_open(&options, &quire, &error)) {
 *         fprintf(stderr, "%s (%s)\n", error.message, error.code);
 *     } else {
 *         struct quire_response response;
 *         quire_call(quire, "POST", "/api/v1/check", NULL, &response);
 *         puts(response.body);
 *         quire_response_done(&response);
 *         quire_close(quire);
 *     }
 *
 * Every operation is a request (method, path, JSON body): the same that the HTTP server and the command line speak.
 * quire_call is the short form; quire_request_call also says who asks and takes conditions.
 * A handle may be used by several threads at once; opening and closing it are one thread's. Text is UTF-8. C99 and C++.
 */
#ifndef QUIRE_QUIRE_H
#define QUIRE_QUIRE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
const char *quire_version(void);

/* An open data folder. */
struct quire;

/* What went wrong. Nothing in it needs to be freed. */
struct quire_error {
    int status;         /* as the HTTP status: 422, 503 */
    const char *code;   /* the stable word to match on: "data_locked"; docs/ERRORS.md lists them */
    const char *advice; /* what to do next, a sentence */
    char message[480];  /* what happened, a sentence; never holds a password */
};

struct quire_setting {
    const char *key; /* "database.url"; docs/CONFIG.md lists them */
    const char *value;
};

/* Set everything to 0 first: what is 0 has its default, also in later versions. */
struct quire_options {
    const char *data_dir; /* required; made, readable for this user only, when it is missing */
    const char *program;  /* how others are told who holds the folder; default "quire" */
    const struct quire_setting *settings;
    size_t setting_count;
    /* The library reads neither configuration files nor the environment: that is the program's to do. */
};

/* Opens the data folder, and makes what is missing. On SQLite one process at a time owns a folder: a second one gets
 * `data_locked`. Returns 0, or error->status; *ret_quire is set only on success. `error` may be NULL. */
int quire_open(const struct quire_options *options, struct quire **ret_quire, struct quire_error *error);

/* Takes other settings than it was opened with: those that CONFIG.md says take effect at a reload, for the next request. All are
 * given, as for quire_open; what is left out gets its default, and what cannot change stays. The first that is wrong is the
 * error, and then nothing changes. One thread at a time. Returns 0, or error->status. `error` may be NULL. */
int quire_reload(struct quire *quire, const struct quire_setting *settings, size_t count, struct quire_error *error);

/* Waits for what is being written. No call may be running or follow. NULL is fine. */
void quire_close(struct quire *quire);

/* Begins to run jobs in this process: first frees what processes that died have left, then claims what is due, and goes
 * on in threads of its own until quire_stop_work. Without it a handle takes requests and adds jobs, and another process
 * runs them, or a later one. Once a handle at a time. Returns 0, or error->status; then no job runs. `error` may be
 * NULL. */
int quire_start_work(struct quire *quire, struct quire_error *error);

/* Claims no more jobs, waits up to grace_ms (0 = not at all) for those that run to end, then asks them to stop: they go
 * back to their queue for whoever runs jobs next, and nothing is lost. Returns when no job runs in this process. The
 * handle stays open. Does nothing when no work was begun; quire_close stops it too, with no grace. */
void quire_stop_work(struct quire *quire, int grace_ms);

/* From now on no request waits for a model: searches go by words and keep their order, requests for embeddings are
 * `shutting_down`. For a server that is to stop; from any thread, also while calls are running, which end within a second. */
void quire_stop_waiting(struct quire *quire);

/* A header of a request or an answer. */
struct quire_header {
    const char *name;  /* "Retry-After"; compared without regard to case */
    const char *value; /* without spaces around it */
};

/* A request as every transport hands it over. Set everything to 0 first: what is 0 was not sent. All texts end with a
 * NUL, are borrowed for the call, and are as they came: nobody has looked at them. */
struct quire_request {
    const char *method; /* "GET"; required */
    const char *target; /* the path and what stands behind its '?', undecoded; required */

    const char *body;         /* may be NULL; may hold NULs where its type is not JSON */
    size_t body_size;         /* without a NUL behind it */
    const char *content_type; /* of the body; NULL = JSON */

    /* Who asks. */
    int is_local_owner; /* 1: this very process, or whoever may open the data folder's socket: needs no key, may do
                                   everything, also name paths of this machine */
    const char
        *authorization; /* the whole header, "Bearer qk_…": a secret, never logged, never repeated in an answer */
    const char *remote_address; /* "192.0.2.7", for limits and the audit line; NULL = local */
    const char *request_id;     /* by which log lines and the answer are found together; NULL = none */

    /* What is to be done only once, or only if. */
    const char *idempotency_key; /* of a POST: sent again with the same key and body it has the first one's answer */
    const char *if_match;        /* the ETag that a change is meant for */
    const char *if_none_match;   /* the ETag that the caller has already */
    const char *range;           /* "bytes=0-1023": a part of what is asked for */
    const char *if_range;        /* the ETag that the part must be of; otherwise the whole is the answer */

    /* All headers, those above too, for whoever needs another one. */
    const struct quire_header *headers;
    size_t header_count;

    int takes_pieces; /* 1: the answer's body may come in pieces, as response->pieces */
};

/* The value of the first header of this name, or NULL. */
const char *quire_request_header(const struct quire_request *request, const char *name);

struct quire_response {
    int status;               /* as the HTTP status */
    const char *body;         /* JSON; an error is {"error": {"code", "message", "details"?}}. Never NULL */
    size_t body_size;         /* without the NUL behind it */
    const char *content_type; /* "application/json", or of an item's own bytes what they are; nothing to free */
    /* What else a transport has to say: ETag, Content-Range, Retry-After, Allow, … */
    const struct quire_header *headers;
    size_t header_count;
    struct quire_pieces *pieces; /* instead of a body, which is empty then; NULL otherwise, and without takes_pieces */
};

/* Sends a request and waits for the answer. Returns response->status. */
int quire_request_call(struct quire *quire, const struct quire_request *request, struct quire_response *ret_response);

/* The same where the answer is at hand: it was given before, and nothing was written since. Waits for nothing, so that a thread
 * which has no time may ask first. Returns response->status, or 0: quire_request_call is to be called. */
int quire_request_recall(struct quire *quire, const struct quire_request *request, struct quire_response *ret_response);

/* 1 where a key is needed and the request has none that is valid, whatever it asks for: what it sends need not be kept. 0
 * otherwise, and where that cannot be found out now. */
int quire_request_is_strange(struct quire *quire, const struct quire_request *request);

/* An answer's body that is larger than anybody should hold, or has no end: the bytes of a large item, events as they happen.
 *
 * quire_pieces_size: all of it, -1 = nobody knows.
 * quire_pieces_read fills in at most `size` bytes and returns how many; it may take a while. 0: there are none yet, and `wake` is called
 * once there may be; QUIRE_PIECES_END; QUIRE_PIECES_BROKEN: what was read is not the whole. One thread at a time.
 * quire_pieces_on_wake says what is called, from any thread; it must return at once and call nothing of this header.
 * quire_pieces_free: once it returns, `wake` is not called any more. quire_response_done frees those that nobody has taken out. All are
 * freed before quire_close. */
struct quire_pieces;
enum { QUIRE_PIECES_END = -1, QUIRE_PIECES_BROKEN = -2 };
long long quire_pieces_size(const struct quire_pieces *pieces);
long quire_pieces_read(struct quire_pieces *pieces, char *bytes, size_t size);
void quire_pieces_on_wake(struct quire_pieces *pieces, void (*wake)(void *arg), void *arg);
void quire_pieces_free(struct quire_pieces *pieces);

/* A request whose body comes in pieces and may be larger than memory: files that are added (multipart/form-data to
 * …/uploads) or replaced (…/content). They are written to the data folder as they come.
 *
 * quire_stream_is_for: 1 where a request's body is to be sent this way; quire_request_call takes it too, whole.
 * quire_stream_open returns 0 and the stream, or the status of a refusal with its answer. The request is borrowed until the
 * stream ends; its body is not looked at.
 * quire_stream_write returns 0, or the status of a refusal, which quire_stream_end then answers with: more need not be sent.
 * quire_stream_end answers once everything is durable; quire_stream_cancel leaves nothing. Both free the stream. */
struct quire_stream;
int quire_stream_is_for(const struct quire_request *request);
int quire_stream_open(struct quire *quire, const struct quire_request *request, struct quire_stream **ret_stream,
                      struct quire_response *ret_response);
int quire_stream_write(struct quire_stream *stream, const char *bytes, size_t size);
int quire_stream_end(struct quire_stream *stream, struct quire_response *ret_response);
void quire_stream_cancel(struct quire_stream *stream);

/* The short form: of the local owner, without headers. `body` is JSON, or NULL for none. */
int quire_call(struct quire *quire, const char *method, const char *path, const char *body,
               struct quire_response *ret_response);

/* The value of the first header of this name, or NULL. */
const char *quire_response_header(const struct quire_response *response, const char *name);

/* Frees the body and the headers. */
void quire_response_done(struct quire_response *response);

#ifdef __cplusplus
}
#endif

#endif
