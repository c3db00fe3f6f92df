/* Tickets as text: "NAME", or "NAME\nHANDED SINCE". */
#include "handler/ticket.h"

qr_rc qr_ticket_read(const char *text, struct qr_arena *arena, struct qr_ticket *ret_ticket, qr_err *err)
{
    qr_str rest = qr_str_of(text);
    const qr_str name = qr_str_split(&rest, '\n');
    struct qr_ticket ticket = {.name = qr_arena_copy(arena, name), .handed_count = 1};
    if (!ticket.name) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a ticket");
    }
    if (rest.len && (!qr_str_to_i64(qr_str_split(&rest, ' '), &ticket.handed_count) ||
                     !qr_str_to_i64(rest, &ticket.running_since_ms))) {
        return qr_fail(err, QR_CODE_INTERNAL, "the ticket of a converter is not as it was written");
    }
    *ret_ticket = ticket;
    return QR_OK;
}

const char *qr_ticket_write(const struct qr_ticket *ticket, struct qr_arena *arena)
{
    if (ticket->handed_count <= 1 && ticket->running_since_ms == 0) {
        return ticket->name;
    }
    return qr_arena_printf(arena, "%s\n%lld %lld", ticket->name, (long long)ticket->handed_count,
                           (long long)ticket->running_since_ms);
}
