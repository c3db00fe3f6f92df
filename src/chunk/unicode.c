/* Tables of characters. Ranges are whole blocks where a block is nearly all marks: a cut that is not made costs nothing,
 * one inside what people see as one character does. */
#include "chunk/unicode.h"

#include "model/markdown.h"

struct range {
    uint32_t first, last;
};

static const struct range joined[] = {
    {0x0300, 0x036F},   {0x0483, 0x0489},   {0x0591, 0x05C7},   {0x0610, 0x061A}, {0x064B, 0x065F}, {0x0670, 0x0670},
    {0x06D6, 0x06ED},   {0x0711, 0x0711},   {0x0730, 0x074A},   {0x07A6, 0x07B0}, {0x07EB, 0x07F3}, {0x0816, 0x082D},
    {0x0859, 0x085B},   {0x0898, 0x089F},   {0x08CA, 0x0903},   {0x0E31, 0x0E31}, {0x0E33, 0x0E3A}, {0x0E47, 0x0E4E},
    {0x0EB1, 0x0EB1},   {0x0EB3, 0x0EBC},   {0x0EC8, 0x0ECE},   {0x0F18, 0x0F19}, {0x0F35, 0x0F39}, {0x0F3E, 0x0F3F},
    {0x0F71, 0x0F87},   {0x0F8D, 0x0FBC},   {0x102B, 0x103E},   {0x1056, 0x1059}, {0x1160, 0x11FF}, {0x135D, 0x135F},
    {0x17B4, 0x17D3},   {0x180B, 0x180F},   {0x1AB0, 0x1ACE},   {0x1B34, 0x1B44}, {0x1DC0, 0x1DFF}, {0x200C, 0x200D},
    {0x20D0, 0x20F0},   {0x2CEF, 0x2CF1},   {0x302A, 0x302F},   {0x3099, 0x309A}, {0xA66F, 0xA672}, {0xA802, 0xA802},
    {0xA8E0, 0xA8F1},   {0xAAB0, 0xAAB4},   {0xFE00, 0xFE0F},   {0xFE20, 0xFE2F}, {0xFF9E, 0xFF9F}, {0x1D165, 0x1D169},
    {0x1F3FB, 0x1F3FF}, {0xE0020, 0xE007F}, {0xE0100, 0xE01EF},
};

static const struct range wide[] = {
    {0x1100, 0x11FF}, {0x2E80, 0xA4CF}, {0xA960, 0xA97F},   {0xAC00, 0xD7FF},
    {0xF900, 0xFAFF}, {0xFF01, 0xFF9F}, {0x20000, 0x3FFFD},
};

static bool in_ranges(uint32_t code, const struct range *ranges, size_t count)
{
    size_t low = 0;
    while (count) {
        const size_t half = count / 2;
        if (code > ranges[low + half].last) {
            low += half + 1;
            count -= half + 1;
        } else if (code < ranges[low + half].first) {
            count = half;
        } else {
            return true;
        }
    }
    return false;
}

/* The scripts of India share one layout, a block each. */
static bool is_indic_mark(uint32_t code)
{
    if (code < 0x0900 || code > 0x0DFF) {
        return false;
    }
    const uint32_t at = code & 0x7F;
    return at <= 0x03 || at == 0x3C || (at >= 0x3E && at <= 0x4D) || (at >= 0x51 && at <= 0x57) ||
           (at >= 0x62 && at <= 0x63);
}

static uint32_t decode(const unsigned char *s, size_t len)
{
    switch (len) {
    case 2:
        return (uint32_t)(s[0] & 0x1F) << 6 | (s[1] & 0x3F);
    case 3:
        return (uint32_t)(s[0] & 0x0F) << 12 | (uint32_t)(s[1] & 0x3F) << 6 | (s[2] & 0x3F);
    default:
        return (uint32_t)(s[0] & 0x07) << 18 | (uint32_t)(s[1] & 0x3F) << 12 | (uint32_t)(s[2] & 0x3F) << 6 |
               (s[3] & 0x3F);
    }
}

struct qr_char qr_char_at(qr_str text)
{
    if (text.len == 0) {
        return (struct qr_char){0};
    }
    const unsigned char *s = (const unsigned char *)text.ptr;
    if (s[0] < 0x80) {
        return (struct qr_char){.code = s[0], .len = 1, .is_space = s[0] == ' ' || (s[0] >= '\t' && s[0] <= '\r')};
    }
    const size_t len = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (len > text.len) { /* not valid: never read beyond the end */
        return (struct qr_char){.code = s[0], .len = 1};
    }
    const uint32_t code = decode(s, len);
    return (struct qr_char){
        .code = code,
        .len = len,
        .is_space = qr_space_len(text) > 0,
        .is_wide = in_ranges(code, wide, QR_COUNT(wide)),
        .is_joined = code >= 0x300 && (in_ranges(code, joined, QR_COUNT(joined)) || is_indic_mark(code)),
    };
}

static bool is_one_of(uint32_t code, const uint32_t *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (codes[i] == code) {
            return true;
        }
    }
    return false;
}

bool qr_char_ends_sentence(uint32_t code)
{
    static const uint32_t ends[] = {'.', '!', '?', 0x2026, 0x3002, 0xFF01, 0xFF0E, 0xFF1F, 0xFF61, 0x0964, 0x061F};
    return is_one_of(code, ends, QR_COUNT(ends));
}

bool qr_char_closes(uint32_t code)
{
    static const uint32_t closers[] = {'"',    '\'',   ')',    ']',    '}',    0x00BB, 0x2019, 0x201D, 0x203A,
                                       0x3001, 0x3009, 0x300B, 0x300D, 0x300F, 0x3011, 0xFF09, 0xFF0C, 0xFF3D};
    return is_one_of(code, closers, QR_COUNT(closers));
}

bool qr_char_is_regional(uint32_t code)
{
    return code >= 0x1F1E6 && code <= 0x1F1FF;
}
