/* Terminals: whether there is one, how wide, and colours where they are wanted. */
#pragma once

#include "cli/cli.h"

enum cli_style { CLI_PLAIN, CLI_STRONG, CLI_FAINT, CLI_GOOD, CLI_BAD, CLI_BUSY, CLI_PLACE };

/* What makes what follows on the stream look like this, until CLI_PLAIN. "" where it is no terminal, or a dumb one, or
 * NO_COLOR is set; CLICOLOR_FORCE wants them anyway. */
const char *cli_style_code(FILE *stream, enum cli_style style);
/* Prints it on standard output; nothing with --json. */
void cli_paint(const struct cli *cli, enum cli_style style);
/* The status of an item or base, or the state of a job, painted, and filled up to the width; on standard output. */
void cli_print_status(const char *status, int width);
/* Whether lines that can be drawn over make sense there. */
bool cli_has_terminal(FILE *stream);
/* Whether the locale is one of UTF-8. */
bool cli_has_unicode(void);
/* Columns of the terminal, by COLUMNS first; 80 where that is not known. */
int cli_columns(FILE *stream);

/* The next character of a foreign text, which is not empty, and takes it off; '?' for what would move a cursor, begin a line or
 * turn text. */
qr_str cli_next_safe(qr_str *rest);
/* All of the text that way, cut to so many characters. */
void cli_add_safe(struct qr_buf *out, const char *text, int columns);
