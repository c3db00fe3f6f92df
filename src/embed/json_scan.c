/* Numbers are read by hand: of sixteen digits and a small exponent a float is exact, and strtod would be most of the work. */
#include "embed/json_scan.h"

#include <math.h>

enum { DEPTH_MAX = 32 };

void qr_scan_space(struct qr_scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\r' || *scan->at == '\t')) {
        scan->at++;
    }
}

bool qr_scan_take(struct qr_scan *scan, char c)
{
    qr_scan_space(scan);
    if (scan->at == scan->end || *scan->at != c) {
        return false;
    }
    scan->at++;
    qr_scan_space(scan);
    return true;
}

bool qr_scan_is_next(struct qr_scan *scan, char c)
{
    qr_scan_space(scan);
    return scan->at < scan->end && *scan->at == c;
}

bool qr_scan_next(struct qr_scan *scan, char end, bool *ret_is_over)
{
    *ret_is_over = qr_scan_take(scan, end);
    return *ret_is_over || (qr_scan_take(scan, ',') && !qr_scan_is_next(scan, end));
}

bool qr_scan_string(struct qr_scan *scan, qr_str *ret_text)
{
    if (!qr_scan_is_next(scan, '"')) {
        return false;
    }
    const char *start = ++scan->at;
    while (scan->at < scan->end && *scan->at != '"') {
        if ((unsigned char)*scan->at < 0x20) {
            return false;
        }
        scan->at += *scan->at == '\\' && scan->end - scan->at > 1 ? 2 : 1;
    }
    if (scan->at >= scan->end) {
        return false;
    }
    *ret_text = (qr_str){start, (size_t)(scan->at - start)};
    scan->at++;
    return true;
}

static bool take_word(struct qr_scan *scan, const char *word)
{
    const size_t len = strlen(word);
    if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0) {
        return false;
    }
    scan->at += len;
    return true;
}

/* 10 to the power of -POWERS_MAX … POWERS_MAX: beyond it no float is. */
enum { POWERS_MAX = 64, EXPONENT_MAX = 9999, DIGITS_MAX = 19 };

static double power_of_ten(int exponent)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double power = 1;
    for (; exponent > 22; exponent -= 22) {
        power *= powers[22];
    }
    return power * powers[exponent];
}

static double scale(uint64_t digits, int exponent)
{
    static const double fractions[] = {1e0,   1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,  1e-9,  1e-10,
                                       1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19, 1e-20, 1e-21};
    if (digits == 0 || exponent < -POWERS_MAX - DIGITS_MAX) {
        return 0;
    }
    if (exponent > POWERS_MAX) {
        return INFINITY;
    }
    /* of tenths and the like the inverse is near enough: a float keeps half as many digits */
    return exponent >= 0                          ? (double)digits * power_of_ten(exponent)
           : -exponent < (int)QR_COUNT(fractions) ? (double)digits * fractions[-exponent]
                                                  : (double)digits / power_of_ten(-exponent);
}

static bool is_digit(const struct qr_scan *scan)
{
    return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

/* Eight digits at once, in one word: most of an answer is these. */
static bool read_eight_digits(const char *at, uint32_t *ret_value)
{
    const uint64_t high = 0xF0F0F0F0F0F0F0F0U, threes = 0x3030303030303030U;
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) { /* one load, where the lowest byte comes first */
        word |= (uint64_t)(unsigned char)at[i] << (8 * i);
    }
    if ((word & high) != threes || ((word + 0x0606060606060606U) & high) != threes) {
        return false;
    }
    word -= threes;
    word = word * 10 + (word >> 8); /* pairs, then fours, then all: each in its place */
    *ret_value = (uint32_t)(((word & 0x000000FF000000FFU) * 0x000F424000000064U +
                             (word >> 16 & 0x000000FF000000FFU) * 0x0000271000000001U) >>
                            32);
    return true;
}

/* Digits into *value; what no float can tell apart any more only moves the point. */
static int take_digits(struct qr_scan *scan, uint64_t *value, int *significant)
{
    const char *at = scan->at, *const end = scan->end;
    uint64_t digits = *value;
    int count = *significant, dropped = 0;
    uint32_t eight;
    for (; count + 8 <= DIGITS_MAX && end - at >= 8 && read_eight_digits(at, &eight); at += 8) {
        digits = digits * 100000000 + eight;
        count += digits > 0 ? 8 : 0;
    }
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        if (count < DIGITS_MAX) {
            digits = digits * 10 + (uint64_t)(*at - '0');
            count += digits > 0;
        } else {
            dropped = QR_MIN(dropped + 1, (int)EXPONENT_MAX);
        }
    }
    scan->at = at;
    *value = digits;
    *significant = count;
    return dropped;
}

static bool take_exponent(struct qr_scan *scan, int *exponent)
{
    int value = 0;
    scan->at++;
    const bool is_negative = scan->at < scan->end && *scan->at == '-';
    scan->at += is_negative || (scan->at < scan->end && *scan->at == '+');
    if (!is_digit(scan)) {
        return false;
    }
    for (; is_digit(scan); scan->at++) {
        value = QR_MIN(value * 10 + (*scan->at - '0'), (int)EXPONENT_MAX);
    }
    *exponent += is_negative ? -value : value;
    return true;
}

bool qr_scan_number(struct qr_scan *scan, double *ret_value)
{
    const bool is_negative = scan->at < scan->end && *scan->at == '-';
    uint64_t digits = 0;
    int significant = 0, exponent = 0;
    scan->at += is_negative;
    if (!is_digit(scan)) {
        return false;
    }
    exponent += take_digits(scan, &digits, &significant);
    if (scan->at < scan->end && *scan->at == '.') {
        const char *point = ++scan->at;
        const int dropped = take_digits(scan, &digits, &significant);
        if (scan->at == point) {
            return false;
        }
        exponent -= (int)QR_MIN(scan->at - point, (ptrdiff_t)EXPONENT_MAX) - dropped;
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E') && !take_exponent(scan, &exponent)) {
        return false;
    }
    *ret_value = is_negative ? -scale(digits, exponent) : scale(digits, exponent);
    return true;
}

bool qr_scan_float(struct qr_scan *scan, float *ret_value)
{
    double value = NAN;
    if (!qr_scan_number(scan, &value)) {
        if (!take_word(scan, "null") && !take_word(scan, "NaN") && !take_word(scan, "Infinity")) {
            return false; /* the sign of "-Infinity" was taken already */
        }
        value = NAN;
    }
    *ret_value = (float)value;
    return true;
}

static bool skip_plain(struct qr_scan *scan)
{
    qr_str ignored;
    double number;
    if (qr_scan_is_next(scan, '"')) {
        return qr_scan_string(scan, &ignored);
    }
    return take_word(scan, "true") || take_word(scan, "false") || take_word(scan, "null") ||
           qr_scan_number(scan, &number);
}

bool qr_scan_key(struct qr_scan *scan, qr_str *ret_key)
{
    return qr_scan_string(scan, ret_key) && qr_scan_take(scan, ':');
}

/* Without recursion: the bits of `is_object` are what is open. */
bool qr_scan_pass(struct qr_scan *scan)
{
    uint64_t is_object = 0;
    unsigned depth = 0;
    qr_str ignored;
    do {
        const bool opens_object = qr_scan_is_next(scan, '{'), opens = opens_object || qr_scan_is_next(scan, '[');
        bool is_value = !opens;
        if (opens) {
            if (++depth > DEPTH_MAX) {
                return false;
            }
            is_object = is_object << 1 | opens_object;
            scan->at++;
            is_value = qr_scan_take(scan, opens_object ? '}' : ']');
            if (is_value) {
                is_object >>= 1;
                depth--;
            }
        } else if (!skip_plain(scan)) {
            return false;
        }
        while (is_value && depth > 0) {
            bool is_over;
            if (!qr_scan_next(scan, is_object & 1 ? '}' : ']', &is_over)) {
                return false;
            }
            is_object >>= is_over;
            depth -= is_over;
            is_value = is_over;
        }
        if (depth > 0 && (is_object & 1) && !qr_scan_key(scan, &ignored)) {
            return false;
        }
    } while (depth > 0);
    return true;
}
