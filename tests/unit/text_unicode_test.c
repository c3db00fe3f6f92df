/* Characters: classes, graphemes, sentences, words, folding. */
#include "text/unicode.h"

#include "support/test.h"

static void check_fold(const char *expected, qr_str text)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    qr_fold(&out, text);
    QR_CHECK_STR(expected, qr_buf_str(&out));
}

QR_TEST(spellings_of_one_word_fold_to_one_form)
{
    check_fold("strasse", QR_STR("STRASSE"));
    check_fold("strasse", QR_STR("Straße"));
    check_fold("cafe", QR_STR("CAFÉ"));
    check_fold("cafe", QR_STR("Cafe\u0301"));
    check_fold("istanbul", QR_STR("İstanbul"));
    check_fold("abc fi 123", QR_STR("ＡＢＣ ﬁ ١٢٣"));
    check_fold("ガ", QR_STR("ｶﾞ"));
    check_fold("елка йод", QR_STR("Ёлка Йод"));
    check_fold("йод", QR_STR("и\u0306од"));
    check_fold("الكتاب", QR_STR("الكِتَابُ"));
    check_fold("किताब", QR_STR("किताब"));
    check_fold("\uFFFD"
               "a",
               QR_STR("\xff"
                      "A"));
    check_fold("한국", QR_STR("\u1112\u1161\u11ab\u1100\u116e\u11a8"));
}

QR_TEST(a_grapheme_is_what_people_see_as_one_character)
{
    QR_CHECK_INT(1, qr_grapheme_len(QR_STR("ab")));
    QR_CHECK_INT(3, qr_grapheme_len(QR_STR("e\u0301x")));
    QR_CHECK_INT(8, qr_grapheme_len(QR_STR("🇩🇪🇫🇷")));
    QR_CHECK_INT(18, qr_grapheme_len(QR_STR("👨‍👩‍👧!")));
    QR_CHECK_INT(2, qr_grapheme_len(QR_STR("\r\nx")));
    QR_CHECK_INT(1, qr_grapheme_len(QR_STR("\xff\xfe")));
    QR_CHECK_INT(0, qr_grapheme_len(QR_STR("")));
}

static void check_sentences(const char *expected, qr_str text)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    while (text.len) {
        const size_t len = qr_sentence_len(text);
        qr_buf_printf(&out, "[%.*s]", (int)len, text.ptr);
        text = (qr_str){text.ptr + len, text.len - len};
    }
    QR_CHECK_STR(expected, qr_buf_str(&out));
}

QR_TEST(sentences_end_where_people_end_them)
{
    check_sentences("[One. ][Two! ][Three?]", QR_STR("One. Two! Three?"));
    check_sentences("[Dr. Smith paid 3.14 to e.g. J. Doe. ][He left.]",
                    QR_STR("Dr. Smith paid 3.14 to e.g. J. Doe. He left."));
    check_sentences("[“Yes.” ][No.]", QR_STR("“Yes.” No."));
    check_sentences("[他走了。][好！」][是]", QR_STR("他走了。好！」是"));
    check_sentences("[สวัสดี ][ครับ]", QR_STR("สวัสดี ครับ"));
    check_sentences("[A title\n\n][A text]", QR_STR("A title\n\nA text"));
}

QR_TEST(words_are_letters_and_digits_with_what_stands_between_them)
{
    qr_str rest = QR_STR(" don’t, 3.14 cafe\u0301! 東京");
    size_t start;
    QR_CHECK_STR("don’t", qr_word_next(&rest, &start));
    QR_CHECK_INT(1, start);
    QR_CHECK_STR("3.14", qr_word_next(&rest, NULL));
    QR_CHECK_STR("cafe\u0301", qr_word_next(&rest, NULL));
    QR_CHECK_STR("東", qr_word_next(&rest, NULL));
    QR_CHECK_STR("京", qr_word_next(&rest, NULL));
    QR_CHECK_STR("", qr_word_next(&rest, NULL));
    QR_CHECK_INT(0, rest.len);
}

QR_TEST(classes_tell_scripts_without_spaces_from_others)
{
    QR_CHECK_INT(QR_RUNE_CJK, qr_rune_at(QR_STR("東")).class);
    QR_CHECK_INT(QR_RUNE_CJK, qr_rune_at(QR_STR("한")).class);
    QR_CHECK_INT(QR_RUNE_CJK, qr_rune_at(QR_STR("ー")).class);
    QR_CHECK_INT(QR_RUNE_OTHER, qr_rune_at(QR_STR("。")).class);
    QR_CHECK_INT(QR_RUNE_UNSPACED, qr_rune_at(QR_STR("ก")).class);
    QR_CHECK_INT(QR_RUNE_DIGIT, qr_rune_at(QR_STR("๑")).class);
    QR_CHECK_INT(QR_RUNE_LETTER, qr_rune_at(QR_STR("ا")).class);
    QR_CHECK_INT(QR_RUNE_SPACE, qr_rune_at(QR_STR("\u3000")).class);
    QR_CHECK_INT(QR_RUNE_IGNORED, qr_rune_at(QR_STR("\u00AD")).class);
    QR_CHECK_INT(QR_RUNE_OTHER, qr_rune_at(QR_STR("\xC3")).class);
}
