/* NO_COLOR and CLICOLOR_FORCE as they are agreed on among programs: set and not empty. */
#include "cli/paint.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && value[0];
}

/* ---- terminals ---- */

bool cli_has_terminal(FILE *stream)
{
    const char *term = getenv("TERM");
    return isatty(fileno(stream)) && term && term[0] && strcmp(term, "dumb") != 0;
}

/* Of its own, so that the library below goes on in the locale C. */
bool cli_has_unicode(void)
{
    const locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!locale) {
        return false;
    }
    const bool is_utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return is_utf8;
}

int cli_columns(FILE *stream)
{
    enum { COLUMNS_MIN = 20, COLUMNS_MAX = 1000, COLUMNS_DEFAULT = 80 };
    const char *wanted = getenv("COLUMNS");
    int64_t columns = 0;
    struct winsize size;
    if (wanted && qr_str_to_i64(qr_str_of(wanted), &columns) && columns >= COLUMNS_MIN && columns <= COLUMNS_MAX) {
        return (int)columns;
    }
    return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col ? QR_MAX((int)size.ws_col, (int)COLUMNS_MIN)
                                                                        : (int)COLUMNS_DEFAULT;
}

/* ---- colours ---- */

static bool wants_colours(FILE *stream)
{
    return !is_set("NO_COLOR") && (is_set("CLICOLOR_FORCE") || cli_has_terminal(stream));
}

const char *cli_style_code(FILE *stream, enum cli_style style)
{
    static const char *const codes[] = {
        [CLI_PLAIN] = "\033[0m", [CLI_STRONG] = "\033[1m", [CLI_FAINT] = "\033[2m",  [CLI_GOOD] = "\033[32m",
        [CLI_BAD] = "\033[31m",  [CLI_BUSY] = "\033[33m",  [CLI_PLACE] = "\033[36m",
    };
    return wants_colours(stream) ? codes[style] : "";
}

void cli_paint(const struct cli *cli, enum cli_style style)
{
    if (!cli->json) {
        fputs(cli_style_code(stdout, style), stdout);
    }
}

static enum cli_style style_of_status(const char *status)
{
    static const struct {
        const char *status;
        enum cli_style style;
    } styles[] = {{"completed", CLI_GOOD}, {"ready", CLI_GOOD},    {"failed", CLI_BAD},
                  {"idle", CLI_FAINT},     {"skipped", CLI_FAINT}, {"cancelled", CLI_FAINT}};
    for (size_t i = 0; i < QR_COUNT(styles); i++) {
        if (strcmp(status, styles[i].status) == 0) {
            return styles[i].style;
        }
    }
    return CLI_BUSY;
}

void cli_print_status(const char *status, int width)
{
    printf("%s%s%s%*s", cli_style_code(stdout, style_of_status(status)), status, cli_style_code(stdout, CLI_PLAIN),
           QR_MAX(width - (int)strlen(status), 0), "");
}

/* ---- foreign text ---- */

/* C0, C1 and DEL move cursors; the characters that turn the direction of text let one thing look like another. */
static bool is_safe_to_print(qr_str character)
{
    static const char *const turning[] = {"\u202A", "\u202B", "\u202C", "\u202D", "\u202E",
                                          "\u2066", "\u2067", "\u2068", "\u2069"};
    const unsigned char first = (unsigned char)character.ptr[0];
    bool is_safe = first >= ' ' && first != 0x7f && !(first == 0xC2 && (unsigned char)character.ptr[1] < 0xA0);
    for (size_t i = 0; i < QR_COUNT(turning); i++) {
        is_safe = is_safe && !qr_str_equal(character, qr_str_of(turning[i]));
    }
    return is_safe;
}

qr_str cli_next_safe(qr_str *rest)
{
    const qr_str character = {rest->ptr, qr_utf8_char_len(*rest)}; /* of none: not UTF-8 */
    const bool is_safe = character.len > 0 && is_safe_to_print(character);
    const size_t used = QR_MAX(character.len, (size_t)1);
    *rest = (qr_str){rest->ptr + used, rest->len - used};
    return is_safe ? character : QR_STR("?");
}

void cli_add_safe(struct qr_buf *out, const char *text, int columns)
{
    for (qr_str rest = qr_str_of(text); rest.len > 0 && columns > 0; columns--) {
        const qr_str character = cli_next_safe(&rest);
        if (columns == 1 && rest.len > 0) {
            qr_buf_add_text(out, cli_has_unicode() ? "…" : ">");
        } else {
            qr_buf_add(out, character);
        }
    }
}
