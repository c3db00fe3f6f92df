/* JSON read once from front to back, without making objects of it: for answers that are nearly all numbers. The bytes are
 * foreign: every step looks for the end, and values that nobody asked for are passed over to a bounded depth. Each function
 * says whether it found what it is named after; where it did not, the rest is not to be read on. Private to src/embed/. */
#pragma once

#include "base/str.h"

struct qr_scan {
    const char *at, *end;
};

void qr_scan_space(struct qr_scan *scan);
/* Takes the character, with the space around it. */
bool qr_scan_take(struct qr_scan *scan, char c);
bool qr_scan_is_next(struct qr_scan *scan, char c);
/* Behind a value: a comma and another one, or the end of what it is in. */
bool qr_scan_next(struct qr_scan *scan, char end, bool *ret_is_over);
/* What is between the quotes, escapes as they stand. */
bool qr_scan_string(struct qr_scan *scan, qr_str *ret_text);
bool qr_scan_number(struct qr_scan *scan, double *ret_value);
/* A number of a vector. Some servers write what is none, by rules of their own: then the vector is bad, not the answer. */
bool qr_scan_float(struct qr_scan *scan, float *ret_value);
bool qr_scan_key(struct qr_scan *scan, qr_str *ret_key);
/* Passes over any value. */
bool qr_scan_pass(struct qr_scan *scan);
