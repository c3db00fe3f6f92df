/* Owns the table of text formats, and the marks of what is no text. Pure. Beside it, model/source_plan.c says which way
 * a name goes before anything is read; here stands what is done with those that we read ourselves. */
#include "convert/formats.h"

#include "convert/html.h"
#include "convert/title.h"
#include "model/markdown.h"
#include "model/source_plan.h"

#include <strings.h>

enum { NAME_BYTES_MAX = 64, LOOK_BYTES_MAX = 4096 };

/* clang-format off */
#define CODE(language, source_mime, extensions, names, interpreters)                                                   \
    {"text/x-code;language=" language, source_mime, extensions, names, interpreters, NULL, NULL}

static const struct qr_format MARKDOWN = {"text/markdown", "text/markdown", "md markdown mdown mkd mkdn mdx rmd qmd", "", "", qr_title_markdown, NULL};
static const struct qr_format PLAIN = {"text/plain", "text/plain", "", "", "", qr_title_plain, NULL};
static const struct qr_format HTML = {"text/markdown", "text/html", "html htm xhtml xht shtml", "", "", NULL, qr_convert_html};
static const struct qr_format JSON = {"application/json", "application/json", "json json5 jsonc ipynb geojson webmanifest har", ".babelrc .eslintrc composer.lock", "", qr_title_json, NULL};
static const struct qr_format JSONL = {"application/jsonl", "application/jsonl", "jsonl ndjson", "", "", NULL, NULL};
static const struct qr_format XML = CODE("xml", "application/xml", "xml xsd xsl xslt rss atom svg plist rdf kml gpx opml wsdl", "", "");

static const struct qr_format *const special[] = {&MARKDOWN, &HTML, &JSON, &JSONL, &XML};

static const struct qr_format others[] = {
    {"text/x-rst", "text/x-rst", "rst rest", "", "", qr_title_rst, NULL},
    {"text/org", "text/org", "org", "", "", qr_title_org, NULL},
    {"text/asciidoc", "text/asciidoc", "adoc asciidoc", "", "", qr_title_asciidoc, NULL},
    {"text/x-tex", "text/x-tex", "tex ltx sty cls", "", "", qr_title_tex, NULL},
    {"text/csv", "text/csv", "csv", "", "", NULL, NULL},
    {"text/tab-separated-values", "text/tab-separated-values", "tsv tab", "", "", NULL, NULL},
    {"text/x-log", "text/x-log", "log", "syslog dmesg", "", NULL, NULL},
    {"text/plain", "text/plain", "srt vtt", "", "", NULL, NULL},
    CODE("bibtex", "text/x-bibtex", "bib", "", ""),
    CODE("diff", "text/x-diff", "diff patch", "", ""),
    CODE("yaml", "application/yaml", "yaml yml", ".clang-format .clang-tidy", ""),
    CODE("toml", "application/toml", "toml", "cargo.lock poetry.lock pipfile", ""),
    CODE("ini", "text/plain", "ini cfg conf properties env desktop service", ".editorconfig .gitconfig .npmrc", ""),
    CODE("c", "text/x-c", "c h inc", "", "tcc"),
    CODE("cpp", "text/x-c++", "cc cpp cxx hh hpp hxx ipp cu", "", ""),
    CODE("objectivec", "text/x-objectivec", "m mm", "", ""),
    CODE("python", "text/x-python", "py pyi pyx pyw", "sconstruct wscript", "python python2 python3 pypy"),
    CODE("javascript", "text/javascript", "js mjs cjs jsx", "", "node nodejs"),
    CODE("typescript", "text/typescript", "ts mts cts tsx", "", "deno ts-node bun"),
    CODE("go", "text/x-go", "go", "go.mod", ""),
    CODE("rust", "text/x-rust", "rs", "", ""),
    CODE("java", "text/x-java", "java", "", ""),
    CODE("kotlin", "text/x-kotlin", "kt kts", "", ""),
    CODE("scala", "text/x-scala", "scala sc", "", "scala"),
    CODE("groovy", "text/x-groovy", "groovy gradle", "jenkinsfile", "groovy"),
    CODE("sh", "text/x-shellscript", "sh bash zsh fish ksh", ".bashrc .profile .zshrc .bash_profile pkgbuild", "sh bash dash zsh fish ksh ash"),
    CODE("powershell", "text/x-powershell", "ps1 psm1", "", "pwsh"),
    CODE("bat", "text/x-bat", "bat cmd", "", ""),
    CODE("css", "text/css", "css scss sass less", "", ""),
    CODE("sql", "application/sql", "sql", "", ""),
    CODE("ruby", "text/x-ruby", "rb rake gemspec", "rakefile gemfile vagrantfile podfile", "ruby"),
    CODE("php", "text/x-php", "php phtml", "", "php"),
    CODE("perl", "text/x-perl", "pl pm", "", "perl"),
    CODE("lua", "text/x-lua", "lua", "", "lua luajit"),
    CODE("r", "text/x-r", "r", ".rprofile", "rscript"),
    CODE("julia", "text/x-julia", "jl", "", "julia"),
    CODE("csharp", "text/x-csharp", "cs", "", ""),
    CODE("fsharp", "text/x-fsharp", "fs fsx", "", ""),
    CODE("vb", "text/x-vb", "vb bas", "", ""),
    CODE("swift", "text/x-swift", "swift", "", "swift"),
    CODE("dart", "text/x-dart", "dart", "", ""),
    CODE("haskell", "text/x-haskell", "hs lhs", "", "runhaskell"),
    CODE("ocaml", "text/x-ocaml", "ml mli", "", "ocaml"),
    CODE("clojure", "text/x-clojure", "clj cljs cljc edn", "", ""),
    CODE("erlang", "text/x-erlang", "erl hrl", "", "escript"),
    CODE("elixir", "text/x-elixir", "ex exs", "", "elixir"),
    CODE("elm", "text/x-elm", "elm", "", ""),
    CODE("nim", "text/x-nim", "nim", "", ""),
    CODE("zig", "text/x-zig", "zig", "", ""),
    CODE("d", "text/x-d", "d", "", ""),
    CODE("pascal", "text/x-pascal", "pas", "", ""),
    CODE("fortran", "text/x-fortran", "f90 f95 f03 for", "", ""),
    CODE("asm", "text/x-asm", "asm s", "", ""),
    CODE("verilog", "text/x-verilog", "v sv svh", "", ""),
    CODE("vhdl", "text/x-vhdl", "vhd vhdl", "", ""),
    CODE("protobuf", "text/x-protobuf", "proto", "", ""),
    CODE("thrift", "text/x-thrift", "thrift", "", ""),
    CODE("graphql", "application/graphql", "graphql gql", "", ""),
    CODE("cmake", "text/x-cmake", "cmake", "cmakelists.txt", ""),
    CODE("make", "text/x-makefile", "mk mak make", "makefile gnumakefile kbuild", "make"),
    CODE("dockerfile", "text/x-dockerfile", "dockerfile", "dockerfile containerfile", ""),
    CODE("hcl", "text/x-hcl", "tf hcl tfvars", "", ""),
    CODE("nix", "text/x-nix", "nix", "", ""),
    CODE("vue", "text/x-vue", "vue", "", ""),
    CODE("svelte", "text/x-svelte", "svelte", "", ""),
    CODE("lisp", "text/x-lisp", "el lisp lsp scm rkt", ".emacs", "sbcl guile emacs"),
    CODE("tcl", "text/x-tcl", "tcl", "", "tclsh wish expect"),
    CODE("awk", "text/x-awk", "awk", "", "awk gawk mawk"),
    CODE("sed", "text/x-sed", "sed", "", "sed"),
    CODE("vim", "text/x-vim", "vim", ".vimrc", ""),
    CODE("ignore", "text/plain", "", ".gitignore .dockerignore .gitattributes codeowners", ""),
};

static const struct {
    qr_str mark;
    const char *what;
} binaries[] = {
    {{"\x7F" "ELF", 4}, "a program (ELF)"},
    {{"\x89PNG\r\n", 6}, "a PNG picture"},
    {{"\xFF\xD8\xFF", 3}, "a JPEG picture"},
    {{"GIF87a", 6}, "a GIF picture"},
    {{"GIF89a", 6}, "a GIF picture"},
    {{"RIFF", 4}, "audio, video or a picture (RIFF)"},
    {{"OggS", 4}, "audio or video (Ogg)"},
    {{"fLaC", 4}, "audio (FLAC)"},
    {{"ID3\x02", 4}, "audio (MP3)"},
    {{"ID3\x03", 4}, "audio (MP3)"},
    {{"ID3\x04", 4}, "audio (MP3)"},
    {{"PK\x03\x04", 4}, "a ZIP archive or an office document"},
    {{"PK\x05\x06", 4}, "an empty ZIP archive"},
    {{"\x1F\x8B", 2}, "compressed (gzip)"},
    {{"BZh91AY&SY", 10}, "compressed (bzip2)"},
    {{"\xFD" "7zXZ", 5}, "compressed (xz)"},
    {{"\x28\xB5\x2F\xFD", 4}, "compressed (zstd)"},
    {{"\x04\x22\x4D\x18", 4}, "compressed (lz4)"},
    {{"7z\xBC\xAF\x27\x1C", 6}, "a 7-Zip archive"},
    {{"Rar!\x1A\x07", 6}, "a RAR archive"},
    {{"!<arch>\n", 8}, "an archive (ar)"},
    {{"%PDF-", 5}, "a PDF document"},
    {{"%!PS-Adobe", 10}, "a PostScript document"},
    {{"{\\rtf", 5}, "an RTF document"},
    {{"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", 8}, "an office document (OLE)"},
    {{"SQLite format 3\0", 16}, "a SQLite database"},
    {{"\xCA\xFE\xBA\xBE", 4}, "a program (Java or Mach-O)"},
    {{"\xCF\xFA\xED\xFE", 4}, "a program (Mach-O)"},
    {{"\0asm", 4}, "a program (WebAssembly)"},
    {{"wOFF", 4}, "a font"},
    {{"wOF2", 4}, "a font"},
};
/* clang-format on */

const char *qr_format_binary(qr_str bytes)
{
    for (size_t i = 0; i < QR_COUNT(binaries); i++) {
        if (qr_str_starts_with(bytes, binaries[i].mark)) {
            /* "RIFF" may begin a text; the size behind it does not look like one */
            const bool is_certain = binaries[i].mark.len > 4 || (unsigned char)binaries[i].mark.ptr[0] >= 0x7F ||
                                    (bytes.len > 8 && memchr(bytes.ptr, '\0', QR_MIN(bytes.len, (size_t)64))) ||
                                    binaries[i].mark.len < 4;
            return is_certain ? binaries[i].what : NULL;
        }
    }
    return NULL;
}

qr_str qr_file_name(qr_str path)
{
    size_t start = path.len;
    while (start > 0 && path.ptr[start - 1] != '/') {
        start--;
    }
    return (qr_str){path.ptr + start, path.len - start};
}

static bool has_word(const char *words, qr_str word)
{
    qr_str rest = qr_str_of(words);
    while (rest.len) {
        const qr_str one = qr_str_split(&rest, ' ');
        if (qr_str_equal_any_case(one, word)) {
            return true;
        }
    }
    return false;
}

static const struct qr_format *format_at(size_t i)
{
    return i < QR_COUNT(special) ? special[i] : &others[i - QR_COUNT(special)];
}

enum { FORMAT_COUNT = QR_COUNT(special) + QR_COUNT(others) };

const struct qr_format *qr_format_by_name(qr_str path)
{
    const qr_str name = qr_file_name(path);
    char extension[QR_EXTENSION_SIZE];
    qr_source_extension(name, extension);
    if (name.len == 0) {
        return NULL;
    }
    for (size_t i = 0; i < FORMAT_COUNT && name.len <= NAME_BYTES_MAX; i++) {
        if (has_word(format_at(i)->names, name)) {
            return format_at(i);
        }
    }
    for (size_t i = 0; i < FORMAT_COUNT && extension[0]; i++) {
        if (has_word(format_at(i)->extensions, qr_str_of(extension))) {
            return format_at(i);
        }
    }
    return NULL;
}

/* ---- by content ---- */

/* "#!/usr/bin/env -S python3.11 -u" → "python3.11" */
static qr_str interpreter_of(qr_str text)
{
    qr_str line = qr_str_split(&text, '\n');
    line = (qr_str){line.ptr + 2, line.len - 2};
    while (line.len) {
        line = qr_str_trim(line);
        const qr_str word = qr_file_name(qr_str_split(&line, ' '));
        if (word.len && word.ptr[0] != '-' && !qr_str_equal(word, QR_STR("env"))) {
            return word;
        }
    }
    return (qr_str){0};
}

static const struct qr_format *by_interpreter(qr_str name)
{
    for (int round = 0; round < 2 && name.len; round++) {
        for (size_t i = 0; i < QR_COUNT(others); i++) {
            if (has_word(others[i].interpreters, name)) {
                return &others[i];
            }
        }
        while (name.len &&
               (name.ptr[name.len - 1] == '.' || (name.ptr[name.len - 1] >= '0' && name.ptr[name.len - 1] <= '9'))) {
            name.len--; /* "python3.11" */
        }
    }
    return &PLAIN;
}

static bool starts_with(qr_str text, const char *word)
{
    const size_t len = strlen(word);
    return text.len >= len && strncasecmp(text.ptr, word, len) == 0;
}

/* {"… or [{ … : the beginning of JSON; a list in brackets of a letter is not. */
static const struct qr_format *json_or_null(qr_str head)
{
    const qr_str inner = qr_str_trim((qr_str){head.ptr + 1, head.len - 1});
    const char next = inner.len ? inner.ptr[0] : '\0';
    if (head.ptr[0] == '[') {
        return next == '{' ? &JSON : NULL;
    }
    if (next != '"' || !memchr(inner.ptr, ':', inner.len)) {
        return NULL;
    }
    qr_str rest = head;
    const qr_str line = qr_str_trim(qr_str_split(&rest, '\n'));
    rest = qr_str_trim(rest);
    return line.ptr[line.len - 1] == '}' && rest.len && rest.ptr[0] == '{' ? &JSONL : &JSON;
}

const struct qr_format *qr_format_by_content(qr_str text)
{
    const qr_str head = qr_str_trim(qr_utf8_prefix(text, LOOK_BYTES_MAX));
    if (starts_with(text, "#!")) {
        return by_interpreter(interpreter_of(head));
    }
    if (starts_with(head, "<!doctype html") || starts_with(head, "<html") || starts_with(head, "<head>")) {
        return &HTML;
    }
    if (starts_with(head, "<?xml")) {
        return memmem(head.ptr, head.len, "<html", 5) ? &HTML : &XML;
    }
    const struct qr_format *json = head.len && (head.ptr[0] == '{' || head.ptr[0] == '[') ? json_or_null(head) : NULL;
    if (json) {
        return json;
    }
    return qr_convert_title(text).len ? &MARKDOWN : &PLAIN;
}
