/* Owns the one transition table of circuits (circuit.h, C1 and C2). */
#include "remote/circuit.h"

bool qr_circuit_lets_through(const struct qr_circuit *circuit, uint64_t key_mark, int64_t now_ms)
{
    if (!circuit->is_open) {
        return true;
    }
    return circuit->try_number == 0 && (now_ms >= circuit->next_try_ms || key_mark != circuit->key_mark);
}

int64_t qr_circuit_wait_ms(const struct qr_circuit *circuit, int64_t now_ms)
{
    if (circuit->try_number) {
        return QR_CIRCUIT_TRY_WAIT_MS;
    }
    return QR_MAX(circuit->next_try_ms - now_ms, (int64_t)0);
}

static void open_or_stay(struct qr_circuit *circuit, const struct qr_circuit_news *news)
{
    if (!circuit->is_open) {
        circuit->is_open = true;
        circuit->since_wall_ms = news->wall_ms;
        circuit->pause_ms = QR_CIRCUIT_PAUSE_MS_MIN;
    } else {
        circuit->pause_ms = QR_MIN(circuit->pause_ms * 2, (int64_t)QR_CIRCUIT_PAUSE_MS_MAX);
    }
    circuit->refusal = *news->refusal;
    circuit->key_mark = news->key_mark;
    circuit->next_try_ms = news->now_ms + circuit->pause_ms;
}

bool qr_circuit_hear(struct qr_circuit *circuit, const struct qr_circuit_news *news)
{
    const bool is_try = circuit->try_number && circuit->try_number == news->number;
    if (circuit->is_open && !is_try) {
        return false;
    }
    circuit->try_number = 0;
    switch (news->verdict) {
    case QR_VERDICT_UNUSED:
        return false;
    case QR_VERDICT_ANSWERED:
        circuit->is_open = false;
        return is_try;
    case QR_VERDICT_UNKNOWN:
        circuit->next_try_ms = news->now_ms + circuit->pause_ms;
        return is_try;
    case QR_VERDICT_REFUSED:
        open_or_stay(circuit, news);
        return true;
    }
    return false;
}
