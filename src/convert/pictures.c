/* Finds pictures in Markdown. One pass over the text. */
#include "convert/pictures.h"

static size_t count_lines(qr_str text, size_t from, size_t to)
{
    size_t count = 0;
    for (size_t i = from; i < to; i++) {
        count += text.ptr[i] == '\n';
    }
    return count;
}

/* "image/png;base64,": where the data begins behind it; 0 = it is none. */
static size_t data_at(qr_str url)
{
    const qr_str mark = QR_STR(";base64,");
    const char *comma = memchr(url.ptr, ',', url.len);
    const size_t at = comma ? (size_t)(comma - url.ptr) + 1 : 0;
    return at >= mark.len && memcmp(url.ptr + at - mark.len, mark.ptr, mark.len) == 0 ? at : 0;
}

bool qr_pictures_next(struct qr_pictures *pictures, struct qr_embedded_picture *ret_picture)
{
    const qr_str mark = QR_STR("](data:image/"), text = pictures->text;
    while (pictures->at < text.len) {
        const char *found = memmem(text.ptr + pictures->at, text.len - pictures->at, mark.ptr, mark.len);
        if (!found) {
            break;
        }
        const size_t start = (size_t)(found - text.ptr) + 2;
        size_t end = start;
        while (end < text.len && text.ptr[end] != ')' && (unsigned char)text.ptr[end] > ' ') {
            end++;
        }
        const size_t data = data_at((qr_str){text.ptr + start, end - start});
        pictures->line += count_lines(text, pictures->line_at, start);
        pictures->line_at = start;
        pictures->at = end;
        if (data && end < text.len && text.ptr[end] == ')') {
            *ret_picture = (struct qr_embedded_picture){
                start, end, pictures->line + 1, {text.ptr + start + data, end - start - data}};
            return true;
        }
    }
    pictures->at = text.len;
    return false;
}
