/* Encodings other than Unicode, by iconv: their many names, and reading them. Windows-1252, the most frequent one, is
 * done here, so that the last resort needs nothing from the system. Pure. */
#include "convert/encoding.h"

#include "base/buf.h"

#include <errno.h>
#include <iconv.h>

enum { ROUND_BYTES = 1 << 16, NAME_BYTES_MAX = 40 };

static const char WINDOWS_1252[] = "windows-1252";

/* As the web does: a name stands for the larger encoding that people use under it. */
static const struct {
    const char *names; /* between single spaces, small letters */
    const char *charset;
} charsets[] = {
    {"windows-1252 cp1252 iso-8859-1 iso8859-1 iso_8859-1 latin1 latin-1 l1 us-ascii ascii ansi_x3.4-1968 x-cp1252",
     WINDOWS_1252},
    {"windows-1250 cp1250 x-cp1250", "windows-1250"},
    {"windows-1251 cp1251 x-cp1251", "windows-1251"},
    {"windows-1253 cp1253", "windows-1253"},
    {"windows-1254 cp1254 iso-8859-9 iso8859-9 latin5", "windows-1254"},
    {"windows-1255 cp1255", "windows-1255"},
    {"windows-1256 cp1256", "windows-1256"},
    {"windows-1257 cp1257", "windows-1257"},
    {"windows-1258 cp1258", "windows-1258"},
    {"iso-8859-2 iso8859-2 iso_8859-2 latin2 latin-2", "iso-8859-2"},
    {"iso-8859-3 iso8859-3", "iso-8859-3"},
    {"iso-8859-4 iso8859-4", "iso-8859-4"},
    {"iso-8859-5 iso8859-5", "iso-8859-5"},
    {"iso-8859-6 iso8859-6", "iso-8859-6"},
    {"iso-8859-7 iso8859-7", "iso-8859-7"},
    {"iso-8859-8 iso8859-8 iso-8859-8-i", "iso-8859-8"},
    {"iso-8859-10 iso8859-10", "iso-8859-10"},
    {"iso-8859-11 iso8859-11 tis-620 windows-874 cp874", "cp874"},
    {"iso-8859-13 iso8859-13", "iso-8859-13"},
    {"iso-8859-14 iso8859-14", "iso-8859-14"},
    {"iso-8859-15 iso8859-15 iso_8859-15 latin9 latin-9", "iso-8859-15"},
    {"iso-8859-16 iso8859-16", "iso-8859-16"},
    {"koi8-r koi8", "koi8-r"},
    {"koi8-u", "koi8-u"},
    {"ibm855 cp855", "ibm855"},
    {"ibm866 cp866", "ibm866"},
    {"ibm850 cp850", "ibm850"},
    {"ibm852 cp852", "ibm852"},
    {"ibm862 cp862", "ibm862"},
    {"ibm865 cp865", "ibm865"},
    {"mac-cyrillic x-mac-cyrillic maccyrillic", "mac-cyrillic"},
    {"mac-centraleurope", "mac-centraleurope"},
    {"macintosh x-mac-roman mac", "macintosh"},
    {"viscii", "viscii"},
    {"georgian-academy", "georgian-academy"},
    {"georgian-ps", "georgian-ps"},
    {"shift_jis shift-jis sjis x-sjis windows-31j ms_kanji cp932 ms932", "cp932"},
    {"euc-jp x-euc-jp eucjp", "euc-jp"},
    {"iso-2022-jp csiso2022jp", "iso-2022-jp"},
    {"gb18030 gbk gb2312 gb_2312-80 x-gbk cp936 euc-cn chinese", "gb18030"},
    {"big5 big5-hkscs cn-big5 x-x-big5 cp950 big-5", "big5-hkscs"},
    {"euc-tw", "euc-tw"},
    {"euc-kr uhc cp949 ks_c_5601-1987 ksc5601 windows-949 korean", "uhc"},
    {"johab", "johab"},
    {"iso-2022-kr", "iso-2022-kr"},
};

const char *qr_charset_find(qr_str name)
{
    for (size_t i = 0; i < QR_COUNT(charsets) && name.len && name.len <= NAME_BYTES_MAX; i++) {
        qr_str rest = qr_str_of(charsets[i].names);
        while (rest.len) {
            const qr_str known = qr_str_split(&rest, ' ');
            if (qr_str_equal_any_case(known, name)) {
                return charsets[i].charset;
            }
        }
    }
    return NULL;
}

/* ---- Windows-1252 ---- */

/* 0x80–0x9F; 0 = not assigned. Above, the code is the byte. */
static const uint16_t windows_1252[] = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178,
};

static void convert_windows_1252(qr_str bytes, struct qr_buf *out, size_t *bad)
{
    while (bytes.len) {
        const size_t part = QR_MIN(bytes.len, (size_t)ROUND_BYTES);
        char *const room = qr_buf_reserve(out, part * 3);
        char *to = room;
        for (size_t i = 0; room && i < part; i++) {
            const unsigned char byte = (unsigned char)bytes.ptr[i];
            uint32_t code = byte >= 0x80 && byte <= 0x9F ? windows_1252[byte - 0x80] : byte;
            *bad += code == 0 && byte;
            code = code == 0 && byte ? 0xFFFD : code;
            if (code < 0x80) {
                *to++ = (char)code;
            } else if (code < 0x800) {
                *to++ = (char)(0xC0 | code >> 6);
                *to++ = (char)(0x80 | (code & 0x3F));
            } else {
                *to++ = (char)(0xE0 | code >> 12);
                *to++ = (char)(0x80 | (code >> 6 & 0x3F));
                *to++ = (char)(0x80 | (code & 0x3F));
            }
        }
        if (!room) {
            return;
        }
        qr_buf_grown(out, (size_t)(to - room));
        bytes = (qr_str){bytes.ptr + part, bytes.len - part};
    }
}

/* ---- the others ---- */

static void convert_by_iconv(iconv_t with, qr_str bytes, struct qr_buf *out, size_t *bad)
{
    char *from = (char *)(uintptr_t)bytes.ptr; /* iconv only reads it */
    size_t left = bytes.len;
    while (left) {
        const size_t size_bytes = QR_MIN(left, (size_t)ROUND_BYTES) * 3 + 16;
        char *to = qr_buf_reserve(out, size_bytes);
        size_t room = size_bytes;
        if (!to) {
            return;
        }
        const size_t done = iconv(with, &from, &left, &to, &room);
        const int errnum = done == (size_t)-1 ? errno : 0;
        qr_buf_grown(out, size_bytes - room);
        if (errnum == EILSEQ || errnum == EINVAL) { /* EINVAL: half a character at the end */
            qr_buf_add_text(out, "\uFFFD");
            *bad += errnum == EILSEQ;
            from++;
            left--;
        }
    }
}

bool qr_charset_convert(const char *charset, qr_str bytes, struct qr_buf *out, size_t *ret_bad)
{
    *ret_bad = 0;
    if (strcmp(charset, WINDOWS_1252) == 0) {
        convert_windows_1252(bytes, out, ret_bad);
    } else {
        iconv_t with = iconv_open("UTF-8", charset);
        if (with == (iconv_t)-1) {
            return false;
        }
        convert_by_iconv(with, bytes, out, ret_bad);
        iconv_close(with);
    }
    return out->failed == QR_CODE_NONE;
}

const char *qr_charset_at(size_t index)
{
    return index < QR_COUNT(charsets) ? charsets[index].charset : NULL;
}
