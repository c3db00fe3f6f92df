/* What each route takes and gives: one row a handler. A test fails for a route that has none. */
#include "api/openapi.h"

#include "api/once.h"

/* clang-format off */
const struct qr_operation qr_operations[] = {
    {qr_route_bases_list, "listBases", "Bases", NULL, "200:BasePage", "invalid_value"},
    {qr_route_bases_add, "createBase", "Bases", "BaseNew", "201:BaseDetail", "already_exists forbidden"},
    {qr_route_bases_show, "getBase", "Bases", NULL, "200:BaseDetail", ""},
    {qr_route_bases_set, "updateBase", "Bases", "BaseChange", "200:Base|BaseEstimate", "already_exists version_conflict base_failed index_lost"},
    {qr_route_bases_delete, "deleteBase", "Bases", NULL, "202:BaseJob", "not_empty invalid_value enqueue_failed"},
    {qr_route_bases_restore, "restoreBase", "Bases", NULL, "202:BaseJob", "not_failed enqueue_failed"},

    {qr_route_items_list, "listItems", "Items", NULL, "200:ItemPage", "invalid_value"},
    {qr_route_items_add, "addItems", "Items", "ItemsNew", "202:ItemsAdded", "forbidden base_failed enqueue_failed limit_exceeded"},
    {qr_route_uploads, "uploadFiles", "Items", NULL, "202:ItemsAdded", "invalid_value base_failed enqueue_failed limit_exceeded"},
    {qr_route_items_show, "getItem", "Items", NULL, "200:Item", ""},
    {qr_route_items_set, "updateItem", "Items", "ItemChange", "200:Item", "base_failed"},
    {qr_route_content_show, "getContent", "Items", NULL, "200:Content", "invalid_value not_completed"},
    {qr_route_content_set, "setContent", "Items", "ContentNew", "202:Item", "not_terminal base_failed enqueue_failed"},
    {qr_route_raw, "getRaw", "Items", NULL, "200:bytes 206:bytes", "invalid_value not_completed source_missing source_unreadable range_not_satisfiable"},
    {qr_route_totals, "getTotals", "Items", NULL, "200:Totals", "invalid_value"},
    {qr_route_chunks, "listChunks", "Items", NULL, "200:ChunkPage", "invalid_value not_completed index_lost"},
    {qr_route_assets, "listAssets", "Items", NULL, "200:AssetPage", "invalid_value"},
    {qr_route_item_events, "listItemEvents", "Items", NULL, "200:ItemEventPage", "invalid_value"},
    {qr_route_items_delete, "deleteItems", "Items", "Ids", "202:Selection", "base_failed enqueue_failed"},
    {qr_route_items_reindex, "reindexItems", "Items", "ReindexIds", "202:Selection 200:SelectionEstimate", "not_terminal base_failed enqueue_failed"},
    {qr_route_items_retry, "retryItems", "Items", "Ids", "202:Selection", "base_failed enqueue_failed"},
    {qr_route_items_refresh, "refreshItems", "Items", "Ids", "202:Selection", "base_failed enqueue_failed"},

    {qr_route_base_search, "searchBase", "Search", "Search", "200:SearchAnswer", "base_failed index_lost"},
    {qr_route_search, "searchBases", "Search", "SearchInBases", "200:SearchAnswer", "not_found base_failed index_lost"},

    {qr_route_process, "process", "Runs", "ProcessNew", "202:Run", "base_failed enqueue_failed"},
    {qr_route_runs_list, "listRuns", "Runs", NULL, "200:RunPage", "invalid_value"},
    {qr_route_run_show, "getRun", "Runs", NULL, "200:Run", ""},
    {qr_route_run_cancel, "cancelRun", "Runs", NULL, "200:Run", "not_open"},

    {qr_route_events, "followEvents", "Events", NULL, "200:events", "not_found"},

    {qr_route_jobs_list, "listJobs", "Jobs", NULL, "200:JobPage", "invalid_value"},
    {qr_route_jobs_show, "getJob", "Jobs", NULL, "200:JobDetail", ""},
    {qr_route_jobs_cancel, "cancelJob", "Jobs", NULL, "200:Job|JobId", "not_open"},
    {qr_route_jobs_retry, "retryJob", "Jobs", NULL, "202:Job|JobId", "not_terminal not_failed base_failed enqueue_failed deleting"},
    {qr_route_queues_list, "listQueues", "Jobs", NULL, "200:QueuePage", ""},
    {qr_route_queues_pause, "pauseQueue", "Jobs", NULL, "200:Queue", ""},
    {qr_route_queues_resume, "resumeQueue", "Jobs", NULL, "200:Queue", ""},

    {qr_route_keys_list, "listKeys", "Keys", NULL, "200:KeyPage", "invalid_value"},
    {qr_route_keys_add, "createKey", "Keys", "KeyNew", "201:KeyMade", "already_exists not_found"},
    {qr_route_keys_delete, "deleteKey", "Keys", NULL, "200:Key", ""},
    {qr_route_keys_rotate, "rotateKey", "Keys", "KeyRotation", "200:KeyMade", ""},
    {qr_route_members_list, "listMembers", "Keys", NULL, "200:MemberPage", "invalid_value"},
    {qr_route_members_show, "getMember", "Keys", NULL, "200:Member", ""},
    {qr_route_members_set, "setMember", "Keys", "MemberRole", "200:Member", ""},
    {qr_route_members_delete, "deleteMember", "Keys", NULL, "200:Member", ""},

    {qr_route_models_list, "listModels", "Models", NULL, "200:ModelPage", "invalid_value"},
    {qr_route_models_add, "createModel", "Models", "ModelNew", "201:Model", "already_exists forbidden"},
    {qr_route_models_delete, "deleteModel", "Models", NULL, "200:ModelGone", "in_use"},

    {qr_route_backup, "backUp", "Server", "BackupNew", "201:Backup", "already_exists forbidden"},
    {qr_route_check, "check", "Server", "CheckRequest", "200:CheckAnswer", "index_lost"},
    {qr_route_cache_show, "getCache", "Server", NULL, "200:Cache", ""},
    {qr_route_cache_prune, "pruneCache", "Server", "PruneRequest", "200:Pruned", ""},
    {qr_route_healthz, "getHealth", "Server", NULL, "200:Health", ""},
    {qr_route_readyz, "getReadiness", "Server", NULL, "200:Readiness 503:Readiness", ""},
    {qr_route_metrics, "getMetrics", "Server", NULL, "200:metrics", ""},
    {qr_route_openapi, "getDescription", "Server", NULL, "200:object", ""},
    {qr_route_docs, "getDocs", "Server", NULL, "200:html", ""},

    {qr_route_dify_retrieval, "difyRetrieval", "Compatible", "DifySearch", "200:DifyRecords", "not_found base_failed index_lost"},
    {qr_route_vector_store_search, "searchVectorStore", "Compatible", "StoreSearch", "200:StoreResults", "base_failed index_lost"},
    {qr_route_embeddings, "createEmbeddings", "Compatible", "EmbeddingsRequest", "200:Embeddings", "not_found embedding_failed endpoint_refused rate_limited"},
};

/* Of one name the row of a single route comes before that of all. */
static const struct qr_parameter path_parameters[] = {
    {"b", NULL, "text", "The base: its id or its name."},
    {"i", NULL, "text", "The item: its id, or the beginning of it that no other has."},
    {"r", NULL, "text", "The run: its id."},
    {"j", NULL, "text", "The job: its id, or the beginning of it that no other has."},
    {"q", NULL, "QueueName", "The queue."},
    {"k", qr_route_members_show, "text", "The key: its id."},
    {"k", qr_route_members_set, "text", "The key: its id."},
    {"k", qr_route_members_delete, "text", "The key: its id."},
    {"k", NULL, "text", "The key: its id or its name."},
    {"m", NULL, "text", "The name of the embedding settings."},
};

static const struct qr_parameter query_parameters[] = {
    {"limit", qr_route_content_show, "int(8..4194304)", "How many bytes at most; a character is never cut."},
    {"limit", qr_route_raw, "int(1..4194304)", "How many bytes at most."},
    {"limit", NULL, "int(1..200)", "How many at most; 50 where it is absent."},
    {"offset", NULL, "int(0..)", "The first byte."},
    {"cursor", NULL, "text", "The next_cursor of the page before."},
    {"confirm", NULL, "bool", "That everything in it may go."},
    {"parent", NULL, "text", "Only what is in this item; root: what is in none."},
    {"status", NULL, "'idle'|'preparing'|'processing'|'reading'|'embedding'|'completed'|'failed'", "Only with this status."},
    {"type", qr_route_items_list, "ItemType", "Only of this type."},
    {"type", NULL, "text", "Only of this type."},
    {"q", NULL, "text", "Only those that have this in their name."},
    {"source", NULL, "text", "The one with this path or address."},
    {"sort", NULL, "'name'|'created'|'updated'|'size'|'-name'|'-created'|'-updated'|'-size'", "The order; with a - the other way round."},
    {"process", NULL, "'auto'|'manual'", "Whether they are worked on at once."},
    {"chunks", NULL, "bool", "Whether chunks are counted too."},
    {"state", NULL, "JobState", "Only in this state."},
    {"queue", NULL, "QueueName", "Only of this queue."},
    {"base", qr_route_events, "text", "Only of this base: its id or its name."},
    {"base", NULL, "id", "Only of this base."},
    {"item", NULL, "id", "Only of this item."},
};

static const struct qr_parameter header_parameters[] = {
    {"If-Match", qr_route_bases_set, "text", "The ETag of the base that the change is meant for."},
    {"Range", qr_route_raw, "text", "A part, as in bytes=0-1023."},
    {"Last-Event-ID", qr_route_events, "text", "The id of the event behind which to go on; without it, from now on."},
    {"If-Range", qr_route_raw, "text", "The ETag that the part must be of; else the whole is the answer."},
};

static const struct qr_parameter idempotency_key = {
    "Idempotency-Key", NULL, "text", "Sent again with the same key and body, the request has the first one's answer."};
/* clang-format on */

const size_t qr_operation_count = QR_COUNT(qr_operations);

const struct qr_operation *qr_operation_find(const struct qr_route *route)
{
    for (size_t i = 0; i < QR_COUNT(qr_operations); i++) {
        if (qr_operations[i].fn == route->fn) {
            return &qr_operations[i];
        }
    }
    return NULL;
}

static const struct qr_parameter *find(const struct qr_parameter *all, size_t count, const struct qr_route *route,
                                       qr_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (qr_str_equal(qr_str_of(all[i].name), name) && (!all[i].fn || all[i].fn == route->fn)) {
            return &all[i];
        }
    }
    return NULL;
}

const struct qr_parameter *qr_path_parameter(const struct qr_route *route, qr_str name)
{
    return find(path_parameters, QR_COUNT(path_parameters), route, name);
}

const struct qr_parameter *qr_query_parameter(const struct qr_route *route, qr_str name)
{
    return find(query_parameters, QR_COUNT(query_parameters), route, name);
}

const struct qr_parameter *qr_header_parameters(const struct qr_route *route, size_t *ret_count)
{
    const struct qr_parameter *first = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < QR_COUNT(header_parameters); i++) {
        if (header_parameters[i].fn == route->fn) {
            first = first ? first : &header_parameters[i];
            ++*ret_count;
        }
    }
    if (!first && qr_once_is_for(route)) {
        *ret_count = 1;
        return &idempotency_key;
    }
    return first;
}
