/* What an answer that is not 2xx means: the server's words, whatever shape they have, and what follows from them. Pure. */
#pragma once

#include "base/str.h"
#include "remote/http.h"

enum { QR_REFUSAL_WORDS_SIZE = 320 };

/* `words` become one line of valid UTF-8 without control characters; "" where the server says nothing that can be shown. */
enum qr_refusal qr_refusal_read(int status, qr_str body, char ret_words[static QR_REFUSAL_WORDS_SIZE]);
/* The code that stands for it. */
qr_code qr_refusal_code(enum qr_refusal refusal);
