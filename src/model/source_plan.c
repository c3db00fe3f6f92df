/* Owns the table of file name extensions, and with it the way of every source. Pure.
 *
 * Whoever lists an extension in the base's `file_processor` means it: that goes before the table. A name that the table
 * does not know is read ourselves: the reader looks at the content and refuses what is not text. */
#include "model/source_plan.h"

static const char UNREADABLE[] = "Quire does not read this format itself, and the base has no file processor for it";
static const char ARCHIVE[] = "archives are not read yet: unpack it and add the folder";
static const char NOT_TEXT[] = "programs, audio and video have no text to read";

static const struct {
    enum qr_source_way way;
    const char *mime;
    const char *message;    /* of invalid ones */
    const char *extensions; /* between single spaces */
} formats[] = {
    /* text: read directly */
    {QR_WAY_DIRECT, "text/markdown", NULL, "md markdown mdown mkd mdx"},
    {QR_WAY_DIRECT, "text/plain", NULL, "txt text log rst org adoc asciidoc textile tex bib srt vtt diff patch"},
    {QR_WAY_DIRECT, "text/html", NULL, "html htm xhtml"},
    {QR_WAY_DIRECT, "text/csv", NULL, "csv"},
    {QR_WAY_DIRECT, "text/tab-separated-values", NULL, "tsv"},
    {QR_WAY_DIRECT, "application/json", NULL, "json jsonl ndjson json5 ipynb geojson"},
    {QR_WAY_DIRECT, "application/yaml", NULL, "yaml yml"},
    {QR_WAY_DIRECT, "application/toml", NULL, "toml"},
    {QR_WAY_DIRECT, "application/xml", NULL, "xml xsd xsl xslt rss atom svg"},
    {QR_WAY_DIRECT, "text/plain", NULL, "ini cfg conf properties env desktop service"},

    /* source code: read directly */
    {QR_WAY_DIRECT, "text/x-c", NULL, "c h cc cpp cxx hh hpp hxx inc m mm cu"},
    {QR_WAY_DIRECT, "text/x-python", NULL, "py pyi pyx"},
    {QR_WAY_DIRECT, "text/javascript", NULL, "js mjs cjs jsx"},
    {QR_WAY_DIRECT, "text/typescript", NULL, "ts mts cts tsx"},
    {QR_WAY_DIRECT, "text/x-go", NULL, "go"},
    {QR_WAY_DIRECT, "text/x-rust", NULL, "rs"},
    {QR_WAY_DIRECT, "text/x-java", NULL, "java kt kts scala groovy gradle"},
    {QR_WAY_DIRECT, "text/x-shellscript", NULL, "sh bash zsh fish ksh ps1 bat cmd"},
    {QR_WAY_DIRECT, "text/css", NULL, "css scss sass less"},
    {QR_WAY_DIRECT, "application/sql", NULL, "sql"},
    {QR_WAY_DIRECT, "text/plain", NULL,
     "rb php pl pm lua r jl cs fs vb swift dart hs ml mli clj cljs erl ex exs elm nim zig d pas f90 asm s v sv vhd "
     "proto thrift graphql gql cmake mk make tf hcl nix vue svelte el lisp scm tcl awk sed vim"},

    /* documents and pictures: only by a processor of the base */
    {QR_WAY_PROCESSOR, "application/pdf", NULL, "pdf"},
    {QR_WAY_PROCESSOR, "application/vnd.openxmlformats-officedocument.wordprocessingml.document", NULL, "docx"},
    {QR_WAY_PROCESSOR, "application/vnd.openxmlformats-officedocument.presentationml.presentation", NULL, "pptx"},
    {QR_WAY_PROCESSOR, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", NULL, "xlsx"},
    {QR_WAY_PROCESSOR, "application/msword", NULL, "doc dot"},
    {QR_WAY_PROCESSOR, "application/vnd.ms-powerpoint", NULL, "ppt pps"},
    {QR_WAY_PROCESSOR, "application/vnd.ms-excel", NULL, "xls"},
    {QR_WAY_PROCESSOR, "application/vnd.oasis.opendocument.text", NULL, "odt"},
    {QR_WAY_PROCESSOR, "application/vnd.oasis.opendocument.spreadsheet", NULL, "ods"},
    {QR_WAY_PROCESSOR, "application/vnd.oasis.opendocument.presentation", NULL, "odp"},
    {QR_WAY_PROCESSOR, "application/rtf", NULL, "rtf"},
    {QR_WAY_PROCESSOR, "application/epub+zip", NULL, "epub"},
    {QR_WAY_PROCESSOR, "application/x-mobipocket-ebook", NULL, "mobi azw azw3"},
    {QR_WAY_PROCESSOR, "application/vnd.ms-outlook", NULL, "msg"},
    {QR_WAY_PROCESSOR, "image/png", NULL, "png"},
    {QR_WAY_PROCESSOR, "image/jpeg", NULL, "jpg jpeg"},
    {QR_WAY_PROCESSOR, "image/gif", NULL, "gif"},
    {QR_WAY_PROCESSOR, "image/webp", NULL, "webp"},
    {QR_WAY_PROCESSOR, "image/tiff", NULL, "tif tiff"},
    {QR_WAY_PROCESSOR, "image/bmp", NULL, "bmp"},
    {QR_WAY_PROCESSOR, "image/heic", NULL, "heic heif avif"},

    /* what is not read */
    {QR_WAY_INVALID, "application/zip", ARCHIVE, "zip"},
    {QR_WAY_INVALID, "application/x-tar", ARCHIVE, "tar tgz tbz2 txz tzst"},
    {QR_WAY_INVALID, "application/x-7z-compressed", ARCHIVE, "7z"},
    {QR_WAY_INVALID, "application/octet-stream", ARCHIVE, "gz bz2 xz zst lz4 rar cab iso jar war deb rpm"},
    {QR_WAY_INVALID, "application/mbox", ARCHIVE, "mbox"},
    {QR_WAY_INVALID, "message/rfc822", ARCHIVE, "eml"},
    {QR_WAY_INVALID, "", NOT_TEXT, "mp3 wav ogg flac m4a aac opus"},
    {QR_WAY_INVALID, "", NOT_TEXT, "mp4 mkv mov avi webm mpg mpeg wmv flv"},
    {QR_WAY_INVALID, "application/octet-stream", NOT_TEXT, "exe dll so dylib o a lib obj class pyc wasm bin"},
};

static bool has_word(const char *words, qr_str word)
{
    qr_str rest = qr_str_of(words);
    while (rest.len) {
        if (qr_str_equal(qr_str_split(&rest, ' '), word)) {
            return true;
        }
    }
    return false;
}

void qr_source_extension(qr_str name, char ret_extension[static QR_EXTENSION_SIZE])
{
    size_t dot = name.len;
    while (dot > 0 && name.ptr[dot - 1] != '.' && name.ptr[dot - 1] != '/') {
        dot--;
    }
    /* what begins with its only dot is hidden, not extended */
    const bool has_one = dot > 1 && name.ptr[dot - 1] == '.' && name.ptr[dot - 2] != '/';
    const size_t len = has_one && name.len - dot < QR_EXTENSION_SIZE ? name.len - dot : 0;
    for (size_t i = 0; i < len; i++) {
        const char c = name.ptr[dot + i];
        ret_extension[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    ret_extension[len] = '\0';
}

static struct qr_source_plan invalid(const char *mime, qr_code code, const char *message)
{
    return (struct qr_source_plan){QR_WAY_INVALID, mime, code, message};
}

static struct qr_source_plan plan_file(const struct qr_source_facts *facts)
{
    char extension[QR_EXTENSION_SIZE];
    qr_source_extension(facts->name, extension);
    size_t i = 0;
    while (i < QR_COUNT(formats) && !(extension[0] && has_word(formats[i].extensions, qr_str_of(extension)))) {
        i++;
    }
    const bool is_known = i < QR_COUNT(formats);
    const char *mime = is_known ? formats[i].mime : "";
    if (facts->has_processor) {
        return (struct qr_source_plan){.way = QR_WAY_PROCESSOR, .mime = mime, .message = ""};
    }
    if (!is_known || formats[i].way == QR_WAY_DIRECT) {
        return (struct qr_source_plan){.way = QR_WAY_DIRECT, .mime = mime, .message = ""};
    }
    return invalid(mime, QR_CODE_UNSUPPORTED_TYPE,
                   formats[i].way == QR_WAY_PROCESSOR ? UNREADABLE : formats[i].message);
}

struct qr_source_plan qr_source_plan(const struct qr_source_facts *facts)
{
    if (facts->type == QR_ITEM_DIRECTORY) {
        return (struct qr_source_plan){.way = QR_WAY_CONTAINER, .mime = "", .message = ""};
    }
    if (facts->size_bytes_max > 0 && facts->size_bytes > facts->size_bytes_max) {
        return invalid("", QR_CODE_TOO_LARGE, "it is larger than the base's limit limits.file_bytes_max");
    }
    switch (facts->type) {
    case QR_ITEM_NOTE:
        return (struct qr_source_plan){.way = QR_WAY_DIRECT, .mime = "text/markdown", .message = ""};
    case QR_ITEM_URL:
        return invalid("", QR_CODE_UNSUPPORTED_TYPE, "addresses of the web are not read yet: save the page as a file");
    case QR_ITEM_FILE:
    case QR_ITEM_DIRECTORY:
        break;
    }
    return plan_file(facts);
}
