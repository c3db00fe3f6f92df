/* What a line of source code declares, by what it looks like. Pure. */
#pragma once

#include "base/str.h"

/* Which rules hold for a language; several. */
enum qr_language_family {
    QR_LANG_C = 1,       /* a function is a name before a bracket, and a body in braces */
    QR_LANG_SCRIPT = 2,  /* JavaScript, TypeScript */
    QR_LANG_PYTHON = 4,  /* indentation closes */
    QR_LANG_KEYWORD = 8, /* a word says what it is: Go, Rust, PHP, Ruby, Lua, Swift, Kotlin … */
    QR_LANG_SHELL = 16,
    QR_LANG_SQL = 32,
    QR_LANG_KEYS = 64,     /* YAML */
    QR_LANG_GROUPS = 128,  /* TOML, INI */
    QR_LANG_CLASSES = 256, /* what a struct or a class holds may be functions */
    QR_LANG_HASHES = 512,  /* # is a comment */
    QR_LANG_DASHES = 1024, /* -- is one */
};

struct qr_code_found {
    qr_str name;       /* part of the line */
    bool is_container; /* functions may be in it */
};

/* Of text/x-code;language=NAME; 0 = not known. */
unsigned qr_language_family(const char *mime);

/* Whether the line, without white space around it, begins a symbol. `below` is the next one; is_inside: it is in a class. */
bool qr_code_find_symbol(unsigned family, bool is_inside, qr_str inner, qr_str below, struct qr_code_found *ret);

/* "static const int name[] = {", "const name = {": of a value over several lines; empty when it has none. */
qr_str qr_code_value_name(qr_str inner);

/* A word between spaces in a list that begins and ends with one. */
bool qr_code_is_word_of(qr_str word, const char *list);
bool qr_code_is_name_char(char c);
/* The name that the text begins with; may be empty. */
qr_str qr_code_name_at(qr_str text);
