/* Giving up rights, for good. */
#pragma once

#include "convert/reader.h"

struct reader_rights {
    unsigned protections; /* bits of enum qr_protection: what is in force */
    unsigned landlock_abi;
};

/* Afterwards this process can compute, use memory, and read and write its standard files; where the kernel lacks a part,
 * the others hold, and the answer says so. All that is needed from files must have been loaded before. */
struct reader_rights reader_give_up_rights(void);
