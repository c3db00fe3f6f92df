/* Owns the memory of gumbo's tree.
 *
 * gumbo does not look whether its allocations succeed and frees its nodes recursively. So all its memory comes from a
 * pool that goes away at once, and where there is no more, or where gumbo has descended too far, the pool jumps out of
 * it: gumbo keeps nothing outside of that memory. The only longjmp of the project, and it does not leave this file. */
#include "convert/html_tree.h"

#include "base/mem.h"

#include <setjmp.h>

enum {
    STEP_BYTES = 8, /* small blocks are of every multiple of it, large ones of powers of two */
    SMALL_BYTES_MAX = 1024,
    SMALL_CLASSES = SMALL_BYTES_MAX / STEP_BYTES + 1,
    CLASS_COUNT = SMALL_CLASSES + 30,
    SLAB_BYTES = 256 << 10,
    SLAB_BYTES_MIN = 16 << 10,
    STACK_BYTES_MAX = 256 << 10, /* gumbo descends only to free: nowhere near this in a real page */
};

/* A page of nothing but tags takes some 150 bytes of tree for each of its own. */
static const size_t POOL_BYTES_MAX = (size_t)1 << 30, POOL_BYTES_BASE = (size_t)64 << 20, POOL_BYTES_EACH = 192;

/* Before every block, which is aligned for pointers: gumbo has nothing that asks for more, and millions of blocks a page. */
struct header {
    size_t class;
};

/* What is in a block while it is free. */
struct free_block {
    struct free_block *next;
};

struct slab {
    struct slab *older;
};

struct qr_html_pool {
    struct slab *newest;
    char *at, *end;
    size_t total_bytes, limit_bytes;
    struct free_block *free[CLASS_COUNT];
    const char *stack_base;
    qr_code failed;
    jmp_buf out;
};

QR_NORETURN static void leave(struct qr_html_pool *pool, qr_code code)
{
    pool->failed = code;
    longjmp(pool->out, 1);
}

static void look_at_stack(struct qr_html_pool *pool)
{
    const char *here = __builtin_frame_address(0);
    const size_t depth = (size_t)(here < pool->stack_base ? pool->stack_base - here : here - pool->stack_base);
    if (depth > STACK_BYTES_MAX) {
        leave(pool, QR_CODE_LIMIT_EXCEEDED);
    }
}

static void add_slab(struct qr_html_pool *pool, size_t need_bytes)
{
    const size_t wanted = QR_MIN(QR_MAX(pool->total_bytes, (size_t)SLAB_BYTES_MIN), (size_t)SLAB_BYTES);
    const size_t size_bytes = QR_MAX(need_bytes, wanted) + sizeof(struct slab);
    if (size_bytes > pool->limit_bytes - pool->total_bytes) {
        leave(pool, QR_CODE_LIMIT_EXCEEDED);
    }
    struct slab *slab = qr_alloc(size_bytes);
    if (!slab) {
        leave(pool, QR_CODE_OUT_OF_MEMORY);
    }
    slab->older = pool->newest;
    pool->newest = slab;
    pool->total_bytes += size_bytes;
    pool->at = (char *)(slab + 1);
    pool->end = (char *)slab + size_bytes;
}

/* With the header. */
static size_t class_bytes(unsigned class)
{
    return class < SMALL_CLASSES ? (size_t) class * STEP_BYTES : (size_t)SMALL_BYTES_MAX << (class - SMALL_CLASSES + 1);
}

static void *pool_alloc(void *userdata, size_t size_bytes)
{
    struct qr_html_pool *pool = userdata;
    look_at_stack(pool);
    if (size_bytes > POOL_BYTES_MAX) {
        leave(pool, QR_CODE_LIMIT_EXCEEDED);
    }
    const size_t whole_bytes = QR_MAX(size_bytes, sizeof(struct free_block)) + sizeof(struct header);
    unsigned class =
        whole_bytes <= SMALL_BYTES_MAX ? (unsigned)((whole_bytes + STEP_BYTES - 1) / STEP_BYTES) : SMALL_CLASSES;
    while (class_bytes(class) < whole_bytes) {
        class ++;
    }
    struct free_block *block = pool->free[class];
    if (block) {
        pool->free[class] = block->next;
        return block;
    }
    if ((size_t)(pool->end - pool->at) < class_bytes(class)) {
        add_slab(pool, class_bytes(class));
    }
    struct header *header = (struct header *)(void *)pool->at;
    pool->at += class_bytes(class);
    header->class = class;
    return header + 1;
}

static void pool_free(void *userdata, void *block)
{
    struct qr_html_pool *pool = userdata;
    look_at_stack(pool);
    if (block) {
        const struct header *header = (struct header *)block - 1;
        struct free_block *freed = block;
        freed->next = pool->free[header->class];
        pool->free[header->class] = freed;
    }
}

/* ---- the tree ---- */

static void free_pool(struct qr_html_pool *pool)
{
    for (struct slab *slab = pool->newest; slab;) {
        struct slab *older = slab->older;
        qr_free(slab);
        slab = older;
    }
    qr_free(pool);
}

/* The tree's memory is the pool's, whichever way it ends. */
static const GumboNode *parse(struct qr_html_pool *pool, const char *text, size_t len)
{
    GumboOptions options = kGumboDefaultOptions;
    options.allocator = pool_alloc;
    options.deallocator = pool_free;
    options.userdata = pool;
    options.max_errors = 0;
    pool->stack_base = __builtin_frame_address(0);
    if (setjmp(pool->out)) {
        return NULL;
    }
    return gumbo_parse_with_options(&options, text, len)->root;
}

qr_rc qr_html_tree_init(struct qr_html_tree *tree, char *text, size_t len, qr_err *err)
{
    struct qr_html_pool *pool = qr_alloc_zero(sizeof *pool);
    if (!pool) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    pool->limit_bytes = QR_MIN(POOL_BYTES_MAX, POOL_BYTES_BASE + len * POOL_BYTES_EACH);
    qr_html_flatten(text, len);
    const GumboNode *root = parse(pool, text, len);
    if (!root) {
        const qr_code code = pool->failed;
        free_pool(pool);
        return code == QR_CODE_OUT_OF_MEMORY
                   ? qr_fail(err, code, "out of memory for the tree of an HTML page")
                   : qr_fail(err, code, "an HTML page of %zu bytes with too many elements or nested too deeply", len);
    }
    *tree = (struct qr_html_tree){pool, root};
    return QR_OK;
}

void qr_html_tree_done(struct qr_html_tree *tree)
{
    if (tree->pool) {
        free_pool(tree->pool);
    }
    *tree = (struct qr_html_tree){0};
}

/* ---- what those who walk it share ---- */

struct qr_html_frame *qr_html_push(struct qr_html_stack *stack, const GumboNode *node, size_t at)
{
    if (stack->depth == stack->capacity) {
        const size_t capacity = stack->capacity ? stack->capacity * 2 : 64;
        struct qr_html_frame *frames = qr_resize(stack->frames, capacity * sizeof *frames);
        if (!frames) {
            return NULL;
        }
        stack->frames = frames;
        stack->capacity = capacity;
    }
    stack->frames[stack->depth] = (struct qr_html_frame){.node = node, .at = at};
    return &stack->frames[stack->depth++];
}

void qr_html_stack_done(struct qr_html_stack *stack)
{
    qr_free(stack->frames);
    *stack = (struct qr_html_stack){0};
}

const char *qr_html_attribute(const GumboElement *element, const char *name)
{
    const GumboAttribute *found = gumbo_get_attribute(&element->attributes, name);
    return found ? found->value : "";
}
