/* Folders of generated text. */
#pragma once

#include <stddef.h>

/* Makes `count` files of 300 to 1,500 bytes of words below `dir`, which it makes too, a hundred in a folder. The same `seed`
 * makes the same files. Gives their bytes. */
size_t files_make(const char *dir, int count, unsigned seed);
