/* What is kept of a file that a converter has. */
#include "handler/ticket.h"
#include "support/test.h"

static struct qr_arena arena; /* of the test */
static qr_err err;

QR_TEST(a_ticket_is_read_as_it_was_written)
{
    static const struct {
        struct qr_ticket ticket;
        const char *text;
    } cases[] = {{{"T-1", 1, 0}, "T-1"},
                 {{"T 1 2", 1, 0}, "T 1 2"},
                 {{"T-1", 2, 0}, "T-1\n2 0"},
                 {{"T-1", 1, 1700000000000}, "T-1\n1 1700000000000"},
                 {{"ä", 20, 5}, "ä\n20 5"}};
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        struct qr_ticket ticket;
        qr_test_set_context("%s", cases[i].text);
        QR_CHECK_TEXT(cases[i].text, qr_ticket_write(&cases[i].ticket, &arena));
        QR_CHECK_RC(QR_OK, qr_ticket_read(cases[i].text, &arena, &ticket, &err));
        QR_CHECK_TEXT(cases[i].ticket.name, ticket.name);
        QR_CHECK_INT(cases[i].ticket.handed_count, ticket.handed_count);
        QR_CHECK_INT(cases[i].ticket.running_since_ms, ticket.running_since_ms);
    }
    qr_arena_done(&arena);
}

QR_TEST(a_ticket_that_was_not_written_so_is_a_defect)
{
    static const char *const texts[] = {"T\nx", "T\n1", "T\n1 x", "T\n1 2 3"};
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        struct qr_ticket ticket;
        qr_test_set_context("%s", texts[i]);
        QR_CHECK_CODE(QR_CODE_INTERNAL, qr_ticket_read(texts[i], &arena, &ticket, &err));
    }
    qr_arena_done(&arena);
}
