/* A map of pages that is emptied when it is full. */
#include "index/row_lengths.h"

#include "base/mem.h"

enum { PAGES_MAX = 1 << 15 }; /* of 4 million rows: 20 MB */

void qr_row_lengths_init(struct row_lengths *lengths, uint64_t seed)
{
    *lengths = (struct row_lengths){0};
    qr_mutex_init(&lengths->lock);
    qr_map_init(&lengths->pages, seed);
}

static void forget(struct row_lengths *lengths)
{
    size_t cursor = 0;
    qr_str key;
    void *page;
    while (qr_map_next(&lengths->pages, &cursor, &key, &page)) {
        qr_free(page);
    }
    qr_map_done(&lengths->pages);
}

void qr_row_lengths_done(struct row_lengths *lengths)
{
    forget(lengths);
    qr_mutex_done(&lengths->lock);
}

static qr_str key_of(const int64_t *number)
{
    return (qr_str){(const char *)number, sizeof *number};
}

bool qr_row_lengths_find(struct row_lengths *lengths, int64_t number, struct lengths_page *ret_page)
{
    QR_HOLD(&lengths->lock);
    const struct lengths_page *page = qr_map_find(&lengths->pages, key_of(&number));
    if (page) {
        *ret_page = *page;
    }
    return page != NULL;
}

/* NULL where there is no memory: then it is not remembered. Under the lock. */
static struct lengths_page *take_page(struct row_lengths *lengths, int64_t number)
{
    struct lengths_page *page = qr_map_find(&lengths->pages, key_of(&number));
    if (page) {
        return page;
    }
    if (lengths->pages.count >= PAGES_MAX) {
        const uint64_t seed = lengths->pages.seed;
        forget(lengths);
        qr_map_init(&lengths->pages, seed);
    }
    page = qr_alloc_zero(sizeof *page);
    if (page && !qr_map_put(&lengths->pages, key_of(&number), page)) {
        qr_free(page);
        page = NULL;
    }
    return page;
}

void qr_row_lengths_put(struct row_lengths *lengths, int64_t number, const struct lengths_page *page)
{
    QR_HOLD(&lengths->lock);
    struct lengths_page *known = take_page(lengths, number);
    for (size_t i = 0; known && i < LENGTHS_A_PAGE; i++) {
        known->of[i] = page->of[i] ? page->of[i] : known->of[i]; /* an older look knows fewer rows */
    }
}
