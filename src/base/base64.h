/* Base64 as in RFC 4648, with its padding. */
#pragma once

#include "base/buf.h"

/* 0 to 63; -1: it is none. */
int qr_base64_digit(char c);
void qr_base64_add(struct qr_buf *out, qr_str bytes);
/* Appends what the text stands for; white space in it is passed over. False: it is no base64, and what was appended is to be
 * thrown away. Memory that ran out is the buffer's error. */
bool qr_base64_read(qr_str text, struct qr_buf *out);
