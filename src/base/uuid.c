/* Layout (RFC 9562): 48 bits of milliseconds, version 7, 12 bits of sequence, variant 2, 62 random bits.
 *
 * Invariant: (last_ms, sequence) only grows, so ids do too. When the clock stands still or jumps back the last
 * millisecond is used on; when its 4096 sequence numbers are spent, the next millisecond is borrowed from the future.
 */
#include "base/uuid.h"

enum { SEQUENCE_MAX = 0xFFF };

void qr_uuid_gen_init(struct qr_uuid_gen *gen, const struct qr_clock *clock, struct qr_rand *rand)
{
    *gen = (struct qr_uuid_gen){.clock = clock, .rand = rand, .last_ms = -1};
    pthread_mutex_init(&gen->lock, NULL);
}

void qr_uuid_gen_done(struct qr_uuid_gen *gen)
{
    pthread_mutex_destroy(&gen->lock);
}

static void next_stamp(struct qr_uuid_gen *gen, int64_t *ret_ms, uint16_t *ret_sequence)
{
    const int64_t now_ms = QR_MAX(qr_clock_wall_ms(gen->clock), (int64_t)0);
    if (now_ms > gen->last_ms) {
        gen->last_ms = now_ms;
        gen->sequence = 0;
    } else if (gen->sequence < SEQUENCE_MAX) {
        gen->sequence++;
    } else {
        gen->last_ms++;
        gen->sequence = 0;
    }
    *ret_ms = gen->last_ms;
    *ret_sequence = gen->sequence;
}

qr_uuid qr_uuid_next(struct qr_uuid_gen *gen)
{
    int64_t ms;
    uint16_t sequence;
    qr_uuid id;
    pthread_mutex_lock(&gen->lock);
    next_stamp(gen, &ms, &sequence);
    gen->rand->fill(gen->rand, id.bytes + 8, 8); /* under the lock: a seeded source is not thread-safe */
    pthread_mutex_unlock(&gen->lock);
    for (int i = 0; i < 6; i++) {
        id.bytes[i] = (unsigned char)((uint64_t)ms >> (40 - 8 * i));
    }
    id.bytes[6] = (unsigned char)(0x70 | sequence >> 8);
    id.bytes[7] = (unsigned char)sequence;
    id.bytes[8] = (unsigned char)(0x80 | (id.bytes[8] & 0x3F));
    return id;
}

static bool dash_follows(int byte_index)
{
    return byte_index == 3 || byte_index == 5 || byte_index == 7 || byte_index == 9;
}

void qr_uuid_format(qr_uuid id, char ret_text[static QR_UUID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char *at = ret_text;
    for (int i = 0; i < QR_UUID_BYTES; i++) {
        *at++ = digits[id.bytes[i] >> 4];
        *at++ = digits[id.bytes[i] & 15];
        if (dash_follows(i)) {
            *at++ = '-';
        }
    }
    *at = '\0';
}

bool qr_uuid_parse(qr_str text, qr_uuid *ret_id)
{
    if (text.len != QR_UUID_TEXT_SIZE - 1) {
        return false;
    }
    qr_uuid id;
    const char *at = text.ptr;
    for (int i = 0; i < QR_UUID_BYTES; i++) {
        const int high = qr_hex_digit(*at++);
        const int low = qr_hex_digit(*at++);
        if (high < 0 || low < 0 || (dash_follows(i) && *at++ != '-')) {
            return false;
        }
        id.bytes[i] = (unsigned char)(high << 4 | low);
    }
    *ret_id = id;
    return true;
}

int64_t qr_uuid_time_ms(qr_uuid id)
{
    int64_t ms = 0;
    for (int i = 0; i < 6; i++) {
        ms = ms << 8 | id.bytes[i];
    }
    return ms;
}

bool qr_uuid_prefix_range(qr_str prefix, qr_uuid *ret_first, qr_uuid *ret_last)
{
    if (prefix.len == 0 || prefix.len > QR_UUID_TEXT_SIZE - 1) {
        return false;
    }
    memset(ret_first, 0, sizeof *ret_first);
    memset(ret_last, 0xff, sizeof *ret_last);
    size_t digit_count = 0;
    for (size_t i = 0; i < prefix.len; i++) {
        const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        const int digit = qr_hex_digit(prefix.ptr[i]);
        if (is_dash ? prefix.ptr[i] != '-' : digit < 0) {
            return false;
        }
        if (!is_dash) {
            const int shift = digit_count % 2 ? 0 : 4;
            unsigned char *first = &ret_first->bytes[digit_count / 2], *last = &ret_last->bytes[digit_count / 2];
            *first = (unsigned char)((*first & ~(0xf << shift)) | digit << shift);
            *last = (unsigned char)((*last & ~(0xf << shift)) | digit << shift);
            digit_count++;
        }
    }
    return true;
}
