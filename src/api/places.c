/* Counts who waits for models. */
#include "api/places.h"

int qr_places(const struct quire *quire)
{
    const int threads = (int)qr_config_number(qr_instance_config(quire), QR_CONFIG_SERVER_THREADS);
    return QR_MAX(threads - QR_MAX(threads / 4, 1), 1);
}

bool qr_place_take(struct quire *quire)
{
    if (atomic_fetch_add(&quire->models_waiting, 1) < qr_places(quire)) {
        return true;
    }
    atomic_fetch_sub(&quire->models_waiting, 1);
    return false;
}

void qr_place_leave(struct quire *quire)
{
    atomic_fetch_sub(&quire->models_waiting, 1);
}

bool qr_waiting_is_over(void *quire)
{
    return atomic_load(&((struct quire *)quire)->is_waiting_over);
}

void quire_stop_waiting(struct quire *quire)
{
    atomic_store(&quire->is_waiting_over, true);
}
