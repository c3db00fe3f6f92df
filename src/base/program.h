/* Finding the programs that belong to Quire and are started by it. */
#pragma once

#include "base/err.h"

/* Where a program is: `name` itself when it has a '/'; else beside the program that runs, else in the folder that Quire is
 * installed for: ../libexec/quire from there, then the one that was given to the build. The path is the caller's
 * (qr_free). `unavailable`, with the places that were looked at, when there is none that may be run. */
qr_rc qr_program_find(const char *name, char **ret_path, qr_err *err);
