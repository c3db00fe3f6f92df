/* What is found by what: documents and queries in many languages over a small inverted index; and what holds of the tokens of
 * any text. */
#include "text/tokens.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/rand.h"
#include "support/fault.h"
#include "support/test.h"
#include "text/unicode.h"

/* ---- tokens as a line of text: "a b|form+whole" ---- */

static qr_rc write_token(void *arg, const struct qr_token *token, qr_err *err QR_UNUSED)
{
    static const char SIGNS[] = {[QR_TOKEN_NEW] = ' ', [QR_TOKEN_FORM] = '|', [QR_TOKEN_WHOLE] = '+'};
    struct qr_buf *out = arg;
    if (out->len || token->kind != QR_TOKEN_NEW) {
        qr_buf_add_char(out, SIGNS[token->kind]);
    }
    qr_buf_add(out, token->text);
    return QR_OK;
}

static struct qr_tokenizer *make_tokenizer(void)
{
    struct qr_tokenizer *tokenizer;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_tokenizer_create(&tokenizer, &err));
    return tokenizer;
}

static void check_tokens(const char *expected, const char *text, enum qr_token_use use, qr_languages languages)
{
    QR_CLEANUP(qr_tokenizer_free_ptr) struct qr_tokenizer *tokenizer = make_tokenizer();
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_tokenize(tokenizer, qr_str_of(text), use, languages, write_token, &out, &err));
    QR_CHECK_STR(expected, qr_buf_str(&out));
}

static void check_document(const char *expected, const char *text)
{
    check_tokens(expected, text, QR_TOKENS_OF_DOCUMENT, 0);
}

QR_TEST(words_are_folded_and_stemmed)
{
    check_document("the run dog jump", "The RUNNING dogs, jumped.");
    check_document("cafe naiv", "Café NAÏVE");
    check_document("john book", "John’s books");
    check_document("don+dont t", "don't");
    check_document("", "");
    check_document("", " \t\n.,;!? — “”");
}

QR_TEST(names_of_parts_are_given_whole_and_in_parts)
{
    check_document("get+gethttpresponse2 http respons 2", "getHTTPResponse2");
    check_document("snake+snakecas case", "snake_case");
    check_document("e+email mail", "e-mail");
    check_document("config+configyaml yaml", "config.yaml");
    check_document("node+nodej js", "Node.js");
    check_document("init", "__init__");
    check_document("rna mi+mirna rna", "RNAs miRNAs");
    check_document("il+il6 6", "IL-6");
    check_document("c+c++ c+c# net+.net asp+aspnet net", "C++ C# .NET ASP.NET");
    check_document("std vector", "std::vector");
    check_document("o+oreilli reilli", "O'Reilly");
}

QR_TEST(numbers_addresses_and_urls_are_given_whole_and_in_parts)
{
    check_document("1+1234.56 234 56", "1,234.56");
    check_document("3+3.14 14", "3.14");
    check_document("2024+2024-05-01 05 01", "2024-05-01");
    check_document("1+1.2.3 2 3", "1.2.3");
    check_document("12+12:30 30", "12:30");
    check_document("jo+jodoe@examplecom doe exampl com", "Jo.Doe@example.com");
    check_document("https+example.com/a/?b=1 www+wwwexamplecom exampl com a b 1", "https://www.example.com/a/?b=1.");
}

QR_TEST(text_without_spaces_is_given_in_pairs_and_threes)
{
    check_document("東京+東 京都+京 都", "東京都");
    check_document("タワ+タ ワー+ワ ー", "ﾀﾜｰ");
    check_document("ガギ+ガ ギ", "ｶﾞｷﾞ");
    check_document("학교+학 교", "학교");
    check_document("ไทย+ไท+ไ ทย+ท ย", "ไทย");
    check_tokens("東京 京都", "東京都", QR_TOKENS_OF_QUERY, 0);
    check_tokens("東", "東", QR_TOKENS_OF_QUERY, 0);
    check_tokens("ไท", "ไท", QR_TOKENS_OF_QUERY, 0);
}

QR_TEST(a_query_has_the_stems_of_every_language_of_the_base)
{
    const qr_languages both = QR_BIT(QR_LANGUAGE_ENGLISH) | QR_BIT(QR_LANGUAGE_FRENCH);
    check_tokens("rate|ratF", "rate", QR_TOKENS_OF_QUERY, both);
    check_tokens("rate", "rate", QR_TOKENS_OF_QUERY, 0);
    check_tokens("ratF", "rate", QR_TOKENS_OF_DOCUMENT, QR_BIT(QR_LANGUAGE_FRENCH));
    /* words of another script than the document's language have that script's stems */
    check_tokens("hous книг", "houses книги", QR_TOKENS_OF_DOCUMENT, QR_BIT(QR_LANGUAGE_RUSSIAN));
}

/* ---- a small index ---- */

struct index {
    struct qr_tokenizer *tokenizer;
    struct qr_map words; /* of one document */
    qr_languages languages;
};

static qr_rc add_word(void *arg, const struct qr_token *token, qr_err *err QR_UNUSED)
{
    struct index *index = arg;
    QR_CHECK(qr_map_put(&index->words, token->text, index));
    return QR_OK;
}

static void index_init(struct index *index, qr_str document)
{
    qr_err err;
    index->tokenizer = make_tokenizer();
    qr_map_init(&index->words, 1);
    index->languages = QR_BIT(qr_language_detect(document));
    QR_CHECK_RC(
        QR_OK, qr_tokenize(index->tokenizer, document, QR_TOKENS_OF_DOCUMENT, index->languages, add_word, index, &err));
}

static void index_done(struct index *index)
{
    qr_map_done(&index->words);
    qr_tokenizer_free(index->tokenizer);
}

struct lookup {
    const struct index *index;
    size_t groups, found; /* words asked for, and those that are there in one form or another */
    bool is_found;        /* the current one */
};

static qr_rc look_up(void *arg, const struct qr_token *token, qr_err *err QR_UNUSED)
{
    struct lookup *lookup = arg;
    if (token->kind != QR_TOKEN_FORM) {
        lookup->groups++;
        lookup->is_found = false;
    }
    if (!lookup->is_found && qr_map_find(&lookup->index->words, token->text)) {
        lookup->is_found = true;
        lookup->found++;
    }
    return QR_OK;
}

/* A base holds documents of other languages too. */
static struct lookup ask(struct index *index, qr_str query, qr_languages others)
{
    struct lookup lookup = {.index = index};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_tokenize(index->tokenizer, query, QR_TOKENS_OF_QUERY, index->languages | others, look_up,
                                   &lookup, &err));
    return lookup;
}

static const qr_languages ALL_LANGUAGES = QR_BIT(QR_LANGUAGE_COUNT) - 1;

/* Each word of a query must be found: `query` is any number of queries, parted by a line break. */
static const struct {
    const char *code, *document, *found, *not_found;
} TABLE[] = {
    {"en", "The universities were running studies of children's behaviour in all of the older cities.",
     "university\nrun\nstudy\nstudies\nchildren\nbehaviours\ncity\nOLD City", "discourse\nrunt\ncat"},
    {"de", "Die Häuser der alten Städte sind für die Bürger gebaut worden, und die Straße ist schön.",
     "Haus\nHäuser\nHAUSER\nhäusern\nBürgers\nburger\nstrasse\nStraßen\nschönes", "Hase\nPferd"},
    {"fr", "L’éducation des enfants est une chose que les parents ont toujours considérée avec sérieux.",
     "éducation\neducation\nenfant\nparent\nconsiderer\ntoujours\nl'éducation", "chien\nvoiture"},
    {"es", "La educación de los niños es muy importante para el país y las canciones que cantaban.",
     "educación\neducacion\nniño\nnino\nniña\npais\ncanción\ncantar\ncanciones", "perro\ncoche"},
    {"pt", "As informações sobre a população não são muito claras e os relatórios foram publicados.",
     "informação\ninformacoes\npopulacao\nrelatório\nrelatorio\npublicado", "cachorro"},
    {"it", "Le città italiane sono molto belle e gli studenti della scuola hanno visto la cattedrale.",
     "città\ncitta\nitaliana\nstudente\nscuole\nbella", "macchina"},
    {"nl", "De huizen van de stad zijn oud en het water is niet diep, maar de mensen lopen er graag.",
     "huizen\nmensen\nstad\nlopen", "paard"},
    {"sv", "Barnen och hundarna är i skogen för att det är en vacker dag med sol på himlen.",
     "barn\nhund\nskog\nvacker\nhimlen", "katt"},
    {"ru", "Вечером дети читали книги о зелёных деревьях, и ёлка стояла в новом саду.",
     "книга\nкниги\nКНИГАМИ\nзеленых\nзелёный\nелка\nёлки\nсад\nновый\nчитать", "собака\nмашина"},
    {"tr", "İstanbul çok büyük bir şehir ve kitapları IŞIK gibi olan bir kütüphane için daha güzel.",
     "istanbul\nISTANBUL\nİSTANBUL\nşehir\nsehir\nkitap\nkitaplar\nışık\nisik\nbüyük\nbuyuk", "araba"},
    {"pl", "Książki są w bibliotece i to jest bardzo dobre miejsce, które nie ma dla nas końca.",
     "książki\nksiazki\nbibliotece\nkońca\nkonca", "samochod"},
    {"el", "Τα βιβλία είναι στη βιβλιοθήκη και οι μαθητές διαβάζουν.", "βιβλία\nβιβλια\nΒΙΒΛΙΑ\nβιβλιοθήκη\nμαθητες",
     "σκύλος"},
    {"ar", "الكتاب الجديد في المكتبة الكبيرة للطلاب", "كتاب\nالكتاب\nالكِتَابُ\nالمكتبة\nمكتبة\nجديد", "سيارة"},
    {"he", "הספר החדש נמצא בספרייה הגדולה", "הספר\nהַסֵּפֶר\nבספרייה", "מכונית"},
    {"hi", "यह किताबें पुस्तकालय में बहुत ज़रूरी हैं और लड़कों के लिए", "किताबें\nकिताब\nजरूरी\nज़रूरी\nलड़का", "गाड़ी"},
    {"zh", "北京大学是中国最好的大学之一，图书馆有很多书。使用Python3编程。",
     "北京\n大学\n图书馆\n书\npython\nPython3\n编程", "上海\n银行"},
    {"ja", "東京タワーは高いです。図書館で本を読みました。", "東京\nタワー\nﾀﾜｰ\n図書館\n本\n読み", "大阪"},
    {"ko", "학생들은 학교에서 한국어를 공부합니다.", "학교\n학생\n한국어\n공부", "자동차"},
    {"th", "ภาษาไทยเป็นภาษาที่สวยงาม", "ภาษา\nภาษาไทย\nสวยงาม\nไทย", "รถยนต์"},
    {"und", "int getHTTPResponse2(struct http_client *c); // see config.yaml, README.md and node.js",
     "getHTTPResponse2\ngethttpresponse2\nhttp\nresponse\nclient\nhttp_client\nhttpClient\nHTTP-client\nconfig\n"
     "config.yaml\nyaml\nreadme\nREADME.md\nnodejs\nNodeJS",
     "getter\npackage.json\nclientele"},
    {"und",
     "Mail jo.doe@example.org, +49 30 1234567, v1.2.3 of 2024-05-01, 1,234.56 EUR, https://example.org/docs/a.html",
     "jo.doe@example.org\nJo.Doe@Example.org\ndoe\nexample.org\n1234567\n1.2.3\n2024-05-01\n2024\n1234.56\n1,234.56\n"
     "https://example.org/docs/a.html\nhttp://www.example.org/docs/a.html/\na.html\ndocs",
     "4321\n9.8\nanna"},
    {"en", "C++ and C# and .NET code: e-mail, re-use, COVID-19, IL-6, RNAs, U.S.A., AT&T, x²",
     "C++\nc#\n.net\nemail\ne-mails\nreuse\ncovid19\ncovid\nIL6\nRNA\nUSA\nAT&T\nx2", "F#\ncobol"},
};

static void check_queries(struct index *index, const char *queries, bool must_find, struct qr_buf *wrong)
{
    qr_str left = qr_str_of(queries);
    while (left.len) {
        const qr_str query = qr_str_split(&left, '\n');
        for (int i = 0; i < 2; i++) {
            const struct lookup lookup = ask(index, query, i ? ALL_LANGUAGES : 0);
            /* the whole and its parts are each a word of their own: one of them must be there, or none */
            if (lookup.groups == 0 || (lookup.found > 0) != must_find) {
                qr_buf_printf(wrong, " %.*s (%zu of %zu)", QR_STR_ARG(query), lookup.found, lookup.groups);
            }
        }
    }
}

QR_TEST(each_query_of_the_table_finds_what_it_must_and_nothing_else)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf wrong = {0};
    for (size_t i = 0; i < QR_COUNT(TABLE); i++) {
        struct index index;
        index_init(&index, qr_str_of(TABLE[i].document));
        check_queries(&index, TABLE[i].found, true, &wrong);
        check_queries(&index, TABLE[i].not_found, false, &wrong);
        index_done(&index);
    }
    QR_CHECK_STR("", qr_buf_str(&wrong));
}

QR_TEST(the_language_of_a_text_is_told_and_that_of_a_short_one_is_not)
{
    for (size_t i = 0; i < QR_COUNT(TABLE); i++) {
        QR_CHECK_TEXT(TABLE[i].code, qr_language_code(qr_language_detect(qr_str_of(TABLE[i].document))));
        QR_CHECK_INT(qr_language_find(qr_str_of(TABLE[i].code)), qr_language_detect(qr_str_of(TABLE[i].document)));
    }
    QR_CHECK_INT(QR_LANGUAGE_UNKNOWN, qr_language_detect(QR_STR("")));
    QR_CHECK_INT(QR_LANGUAGE_UNKNOWN, qr_language_detect(QR_STR("Annual report")));
    QR_CHECK_INT(QR_LANGUAGE_UNKNOWN, qr_language_detect(QR_STR("\xff\xfe\x80")));
    QR_CHECK_INT(QR_LANGUAGE_UKRAINIAN, qr_language_detect(QR_STR("Київ є столицею України, і її люблять")));
}

/* ---- what holds of any text ---- */

struct seen {
    qr_str text;
    size_t last_start, count;
};

static bool is_boundary(qr_str text, size_t at)
{
    return at == text.len || ((unsigned char)text.ptr[at] & 0xC0) != 0x80;
}

static qr_rc check_token(void *arg, const struct qr_token *token, qr_err *err QR_UNUSED)
{
    struct seen *seen = arg;
    QR_CHECK(token->text.len > 0 && token->text.len <= QR_TOKEN_BYTES_MAX);
    QR_CHECK(qr_utf8_valid(token->text));
    QR_CHECK(!memchr(token->text.ptr, ' ', token->text.len) && !memchr(token->text.ptr, '|', token->text.len));
    QR_CHECK(!memchr(token->text.ptr, '"', token->text.len) && !memchr(token->text.ptr, '\0', token->text.len));
    QR_CHECK(token->start < token->end && token->end <= seen->text.len);
    QR_CHECK(token->start >= seen->last_start);
    QR_CHECK(is_boundary(seen->text, token->start) && is_boundary(seen->text, token->end));
    QR_CHECK(seen->count > 0 || token->kind == QR_TOKEN_NEW);
    seen->last_start = token->start;
    seen->count++;
    return QR_OK;
}

/* Any mixture of the table's texts and of signs, cut between characters. */
static qr_str random_text(struct qr_rand *rand, struct qr_buf *out)
{
    static const char *const SIGNS[] = {" ",  "-", ".",      "_",      "'", "’", "@", "//",
                                        "\n", "é", "\u0301", "\u200d", "İ", "ﬁ", "½"};
    qr_buf_clear(out);
    const uint64_t pieces = 1 + qr_rand_u64(rand) % 12;
    for (uint64_t i = 0; i < pieces; i++) {
        const qr_str document = qr_str_of(TABLE[qr_rand_u64(rand) % QR_COUNT(TABLE)].document);
        size_t start = qr_rand_u64(rand) % document.len;
        while (!is_boundary(document, start)) {
            start++;
        }
        qr_buf_add(out, qr_utf8_prefix((qr_str){document.ptr + start, document.len - start}, qr_rand_u64(rand) % 40));
        qr_buf_add_text(out, SIGNS[qr_rand_u64(rand) % QR_COUNT(SIGNS)]);
    }
    return qr_buf_str(out);
}

QR_TEST(tokens_of_any_text_are_in_order_inside_it_and_of_limited_length)
{
    QR_CLEANUP(qr_tokenizer_free_ptr) struct qr_tokenizer *tokenizer = make_tokenizer();
    QR_CLEANUP(qr_buf_done) struct qr_buf buf = {0};
    struct qr_rand_seeded seeded;
    qr_rand_seeded_init(&seeded, 7);
    struct qr_rand *rand = &seeded.rand;
    qr_err err;
    for (int i = 0; i < 3000; i++) {
        struct seen seen = {.text = random_text(rand, &buf)};
        const enum qr_token_use use = i % 2 ? QR_TOKENS_OF_DOCUMENT : QR_TOKENS_OF_QUERY;
        const qr_languages languages =
            use == QR_TOKENS_OF_QUERY ? (qr_languages)qr_rand_u64(rand) : QR_BIT(qr_rand_u64(rand) % QR_LANGUAGE_COUNT);
        QR_CHECK_RC(QR_OK, qr_tokenize(tokenizer, seen.text, use, languages, check_token, &seen, &err));
    }
}

/* From a word's beginning to a word's end, by white space. */
static qr_str random_words(struct qr_rand *rand, qr_str text)
{
    size_t start = qr_rand_u64(rand) % text.len, end = start + qr_rand_u64(rand) % (text.len - start);
    while (start > 0 && text.ptr[start - 1] != ' ' && text.ptr[start - 1] != '\n') {
        start--;
    }
    while (end < text.len && text.ptr[end] != ' ' && text.ptr[end] != '\n') {
        end++;
    }
    return (qr_str){text.ptr + start, end - start};
}

QR_TEST(every_word_of_a_document_is_found_by_itself_whatever_the_languages)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf buf = {0};
    struct qr_rand_seeded seeded;
    qr_rand_seeded_init(&seeded, 7);
    struct qr_rand *rand = &seeded.rand;
    for (int i = 0; i < 1000; i++) {
        const qr_str text = random_text(rand, &buf);
        struct index index;
        index_init(&index, text);
        const qr_str words = random_words(rand, text);
        const struct lookup lookup = ask(&index, words, (qr_languages)qr_rand_u64(rand) & ALL_LANGUAGES);
        if (lookup.found != lookup.groups) {
            QR_FAIL("%zu of %zu words of \"%.*s\" found in \"%.*s\"", lookup.found, lookup.groups, QR_STR_ARG(words),
                    QR_STR_ARG(text));
        }
        index_done(&index);
    }
}

static qr_rc count_token(void *arg, const struct qr_token *token, qr_err *err QR_UNUSED)
{
    struct qr_buf *last = arg;
    QR_CHECK(token->text.len <= QR_TOKEN_BYTES_MAX);
    qr_buf_clear(last);
    qr_buf_add(last, token->text);
    return QR_OK;
}

QR_TEST(a_long_text_without_a_space_is_one_token_that_tells_it_from_others)
{
    enum { LEN = 1 << 20 };
    QR_CLEANUP(qr_tokenizer_free_ptr) struct qr_tokenizer *tokenizer = make_tokenizer();
    QR_CLEANUP(qr_buf_done) struct qr_buf first = {0}, second = {0};
    char *text = malloc(LEN);
    qr_err err;
    memset(text, 'x', LEN);
    const qr_str all = {text, LEN};
    QR_CHECK_RC(QR_OK, qr_tokenize(tokenizer, all, QR_TOKENS_OF_DOCUMENT, 0, count_token, &first, &err));
    text[LEN - 1] = 'y';
    QR_CHECK_RC(QR_OK, qr_tokenize(tokenizer, all, QR_TOKENS_OF_QUERY, 0, count_token, &second, &err));
    QR_CHECK(first.len == QR_TOKEN_BYTES_MAX && !qr_str_equal(qr_buf_str(&first), qr_buf_str(&second)));
    for (size_t i = 0; i + 2 <= LEN; i += 2) { /* a letter with half a million marks */
        memcpy(text + i, i ? "\u0301" : "ab", 2);
    }
    QR_CHECK_RC(QR_OK, qr_tokenize(tokenizer, all, QR_TOKENS_OF_DOCUMENT, 0, count_token, &second, &err));
    for (size_t i = 0; i + 3 <= LEN; i += 3) { /* the same in Thai */
        memcpy(text + i, i ? "\u0E48" : "\u0E01", 3);
    }
    QR_CHECK_RC(QR_OK, qr_tokenize(tokenizer, all, QR_TOKENS_OF_DOCUMENT, 0, count_token, &second, &err));
    free(text);
}

static qr_rc refuse(void *arg, const struct qr_token *token QR_UNUSED, qr_err *err)
{
    int *left = arg;
    return --*left > 0 ? QR_OK : qr_fail(err, QR_CODE_UNAVAILABLE, "enough");
}

QR_TEST(the_receiver_ends_it_with_its_own_error)
{
    QR_CLEANUP(qr_tokenizer_free_ptr) struct qr_tokenizer *tokenizer = make_tokenizer();
    int left = 2;
    qr_err err;
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE,
                  qr_tokenize(tokenizer, QR_STR("one two three four"), QR_TOKENS_OF_DOCUMENT, 0, refuse, &left, &err));
    QR_CHECK_INT(0, left);
}

static void tokenize_once(void *arg QR_UNUSED)
{
    struct qr_tokenizer *tokenizer;
    struct seen seen = {.text = qr_str_of(TABLE[0].document)};
    qr_err err;
    qr_rc rc = qr_tokenizer_create(&tokenizer, &err);
    if (rc == QR_OK) {
        rc = qr_tokenize(tokenizer, seen.text, QR_TOKENS_OF_DOCUMENT, 0, check_token, &seen, &err);
        qr_tokenizer_free(tokenizer);
    }
    QR_CHECK(rc == (qr_fault_fired() ? QR_NOMEM : QR_OK));
    qr_fault_disarm();
}

QR_TEST(running_out_of_memory_is_said)
{
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, tokenize_once, NULL);
}
