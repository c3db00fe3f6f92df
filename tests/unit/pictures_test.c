/* Pictures in Markdown. */
#include "convert/pictures.h"
#include "support/test.h"

QR_TEST(pictures_that_stand_in_the_text_are_found_with_their_lines)
{
    const char *text = "# A\n\n![one](data:image/png;base64,AAAA)\n![two](data:image/jpeg;x=y;base64,BBBB) and\n\n"
                       "[![three](data:image/gif;base64,CC==)](http://x)";
    struct qr_pictures pictures = {.text = qr_str_of(text)};
    struct qr_embedded_picture picture;
    QR_CHECK(qr_pictures_next(&pictures, &picture));
    QR_CHECK_STR("AAAA", picture.base64);
    QR_CHECK_INT(3, picture.line);
    QR_CHECK_STR("data:image/png;base64,AAAA", ((qr_str){text + picture.start, picture.end - picture.start}));
    QR_CHECK(qr_pictures_next(&pictures, &picture));
    QR_CHECK_STR("BBBB", picture.base64);
    QR_CHECK_INT(4, picture.line);
    QR_CHECK(qr_pictures_next(&pictures, &picture));
    QR_CHECK_STR("CC==", picture.base64);
    QR_CHECK_INT(6, picture.line);
    QR_CHECK(!qr_pictures_next(&pictures, &picture));
    QR_CHECK(!qr_pictures_next(&pictures, &picture));
}

QR_TEST(what_only_looks_like_a_picture_is_passed_over)
{
    static const char *const texts[] = {"",
                                        "](data:image/",
                                        "![a](data:image/png;base64,AAAA",
                                        "![a](data:image/png;base64,AA AA)",
                                        "![a](data:image/svg+xml,<svg/>)",
                                        "![a](data:image/png;base64)",
                                        "![a](data:text/plain;base64,AAAA)",
                                        "data:image/png;base64,AAAA)",
                                        "![a](http://x/data:image/png;base64,AAAA)"};
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        struct qr_pictures pictures = {.text = qr_str_of(texts[i])};
        struct qr_embedded_picture picture;
        qr_test_set_context("%s", texts[i]);
        QR_CHECK(!qr_pictures_next(&pictures, &picture));
    }
}
