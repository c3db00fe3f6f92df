/* Secrets of keys: how they are made, hashed, compared, read from a header, and kept out of what is shown. */
#include "base/secret.h"

#include "support/test.h"

static struct qr_secret made(uint64_t seed)
{
    struct qr_rand_seeded seeded;
    struct qr_secret secret;
    qr_rand_seeded_init(&seeded, seed);
    qr_secret_make(&seeded.rand, &secret);
    return secret;
}

QR_TEST(a_secret_is_qk_and_32_bytes_in_base64url) /* KEY-1 */
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (uint64_t seed = 0; seed < 200; seed++) {
        const struct qr_secret secret = made(seed), other = made(seed + 1);
        QR_CHECK_INT(46, strlen(secret.text));
        QR_CHECK(strncmp(secret.text, "qk_", 3) == 0);
        QR_CHECK_INT(43, strspn(secret.text + 3, digits));
        QR_CHECK(strcmp(secret.text, other.text) != 0);
        QR_CHECK_INT(11, qr_secret_prefix(qr_str_of(secret.text)).len);
    }
}

/* What 32 zeros and 32 ones become: no bit is lost at the end. */
static void fill_with_ones(struct qr_rand *rand QR_UNUSED, void *bytes, size_t size_bytes)
{
    memset(bytes, 0xff, size_bytes);
}

QR_TEST(all_bits_of_the_random_bytes_are_in_the_secret) /* KEY-1 */
{
    struct qr_rand ones = {fill_with_ones};
    struct qr_secret secret;
    qr_secret_make(&ones, &secret);
    QR_CHECK_TEXT("qk_"
                  "__________________________________________8",
                  secret.text);
    qr_secret_wipe(&secret);
    QR_CHECK_TEXT("", secret.text);
}

QR_TEST(the_hash_is_blake2b_of_256_bits) /* KEY-1 */
{
    /* BLAKE2b-256 of "abc" */
    static const unsigned char known[QR_SECRET_HASH_BYTES] = {
        0xbd, 0xdd, 0x81, 0x3c, 0x63, 0x42, 0x39, 0x72, 0x31, 0x71, 0xef, 0x3f, 0xee, 0x98, 0x57, 0x9b,
        0x94, 0x96, 0x4e, 0x3b, 0xb1, 0xcb, 0x3e, 0x42, 0x72, 0x62, 0xc8, 0xc0, 0x68, 0xd5, 0x23, 0x19};
    unsigned char hash[QR_SECRET_HASH_BYTES];
    qr_secret_hash(QR_STR("abc"), hash);
    QR_CHECK(memcmp(known, hash, sizeof hash) == 0);
}

QR_TEST(hashes_are_equal_only_where_every_byte_is) /* KEY-1 */
{
    unsigned char a[QR_SECRET_HASH_BYTES], b[QR_SECRET_HASH_BYTES];
    qr_secret_hash(QR_STR("one"), a);
    memcpy(b, a, sizeof b);
    QR_CHECK(qr_secret_hash_equal(a, b));
    for (size_t i = 0; i < sizeof b; i++) {
        b[i] ^= 1;
        QR_CHECK(!qr_secret_hash_equal(a, b));
        b[i] ^= 1;
    }
}

QR_TEST(a_header_holds_a_secret_or_none)
{
    const struct qr_secret secret = made(1);
    char header[128];
    qr_str found;
    snprintf(header, sizeof header, "Bearer %s", secret.text);
    QR_CHECK(qr_secret_of_header(header, &found));
    QR_CHECK_STR(secret.text, found);
    snprintf(header, sizeof header, "bearer   %s ", secret.text);
    QR_CHECK(qr_secret_of_header(header, &found));
    QR_CHECK_STR(secret.text, found);
    static const char *const formats[] = {"Basic %s", "%s", "Bearer %sA", "Bearer x%s", "Bearer", "Bearer ", ""};
    for (size_t i = 0; i < QR_COUNT(formats); i++) {
        strcpy(header, formats[i]);
        char *place = strstr(header, "%s");
        if (place) {
            memmove(place + strlen(secret.text), place + 2, strlen(place + 2) + 1);
            memcpy(place, secret.text, strlen(secret.text));
        }
        QR_CHECK(!qr_secret_of_header(header, &found));
    }
    snprintf(header, sizeof header, "Bearer %s", secret.text);
    header[20] = '+'; /* no digit of base64url */
    QR_CHECK(!qr_secret_of_header(header, &found));
    QR_CHECK(!qr_secret_of_header(NULL, &found));
}

QR_TEST(what_may_be_a_secret_is_hidden) /* KEY-9 */
{
    char text[] = "/keys/qk_abcdefgh-IJKL_MNO/x?qk_ and qk_notes; qk_qk_0123456789012345";
    qr_secret_hide(text);
    QR_CHECK_TEXT("/keys/qk_*****************/x?qk_ and qk_notes; qk_*******************", text);
}
