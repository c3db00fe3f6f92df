/* What a typed query finds, over every database: the same words in documents of several languages. */
#include "index/index.h"

#include "support/index_fixture.h"

enum { BASE = 1 };

static const char *const DOCUMENTS[] = {
    "The universities were running studies of the older cities with rates that are high.",
    "Die Häuser der alten Städte sind für die Bürger gebaut worden, und die Straße ist schön.",
    "L’éducation des enfants est une chose que les parents ont toujours considérée avec sérieux.",
    "Вечером дети читали книги о зелёных деревьях в новом саду.",
    "北京大学是中国最好的大学之一，图书馆有很多书。",
    "ภาษาไทยเป็นภาษาที่สวยงาม",
    "int getHTTPResponse2(struct http_client *c); see config.yaml and jo.doe@example.org",
};

static void write_documents(struct index_fixture *f)
{
    for (unsigned i = 0; i < QR_COUNT(DOCUMENTS); i++) {
        index_write(f, test_id(BASE), test_id(10 + i), 1, 0, DOCUMENTS[i]);
    }
    index_sync(f, test_id(BASE));
}

QR_DB_TEST(a_query_finds_other_forms_of_its_words_in_every_language)
{
    static const char *const QUERIES[QR_COUNT(DOCUMENTS)][6] = {
        {"university", "run", "City", "rate"},
        {"haus", "HÄUSER", "strasse", "Burger"},
        {"education", "enfant", "éducation", "l'éducation"},
        {"книга", "ЗЕЛЕНЫЙ", "саду"},
        {"大学", "图书馆", "书"},
        {"ภาษา", "สวยงาม"},
        {"gethttpresponse2", "response", "httpClient", "config.yaml", "doe", "JO.DOE@example.org"},
    };
    struct index_fixture f;
    index_fixture_open(&f, t);
    write_documents(&f);
    for (size_t i = 0; i < QR_COUNT(QUERIES); i++) {
        for (size_t k = 0; k < QR_COUNT(QUERIES[i]) && QUERIES[i][k]; k++) {
            qr_test_set_context("%s", QUERIES[i][k]);
            QR_CHECK_INT(1, index_hit_count(&f, test_id(BASE), QUERIES[i][k]));
        }
    }
    qr_test_set_context("%s", "");
    QR_CHECK_INT(0, index_hit_count(&f, test_id(BASE), "rats")); /* what the French stem of rate would be */
    QR_CHECK_INT(0, index_hit_count(&f, test_id(BASE), "北海"));
    QR_CHECK_INT(0, index_hit_count(&f, test_id(BASE), "...'\"\\ | & !"));
    index_fixture_close(&f);
}

QR_DB_TEST(what_was_removed_is_found_no_more_in_any_language)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    write_documents(&f);
    qr_err err;
    qr_uuid items[QR_COUNT(DOCUMENTS)];
    for (unsigned i = 0; i < QR_COUNT(DOCUMENTS); i++) {
        items[i] = test_id(10 + i);
    }
    QR_CHECK_RC(QR_OK, qr_index_delete_items(f.set, test_id(BASE), items, QR_COUNT(items), &err));
    for (size_t i = 0; i < QR_COUNT(DOCUMENTS); i++) {
        QR_CHECK_INT(0, index_hit_count(&f, test_id(BASE), DOCUMENTS[i]));
    }
    index_fixture_close(&f);
}

QR_DB_TEST(a_chunk_that_does_not_show_its_language_has_that_of_its_document)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    const struct qr_chunk chunks[] = {
        {.ordinal = 0, .text = QR_STR("Häuser, Gärten"), .title = QR_STR("Berichte")},
        {.ordinal = 1,
         .text = QR_STR("Die Stadt ist für die Bürger gebaut und wird nicht verkauft."),
         .title = QR_STR("Berichte")},
    };
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(f.set, test_id(BASE), test_id(10), 1, chunks, 2, NULL, &err));
    index_sync(&f, test_id(BASE));
    QR_CHECK_INT(1, index_hit_count(&f, test_id(BASE), "Haus"));
    QR_CHECK_INT(2, index_hit_count(&f, test_id(BASE), "Bericht")); /* the title is in every chunk */
    index_fixture_close(&f);
}
