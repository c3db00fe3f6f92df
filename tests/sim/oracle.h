/* Knows what must be true, by what it saw before and what was acknowledged; looks after every commit, on a connection of its
 * own and without the product's code. */
#pragma once

#include "sim/world.h"

enum { ORACLE_JOBS_MAX = 400 };

void oracle_begin(void);
void oracle_end(void);

/* A number for a job that may be added; the job carries it as its generation. 0 = enough for this run. */
int oracle_new_job(int subject);
int oracle_subject_of(int number);
/* A job that was acknowledged; 0 = none yet. */
int oracle_pick(qr_uuid *ret_id);
/* The add was answered: a new job, or an open one of the same key that existed. */
void oracle_acknowledge(int number, qr_uuid id, bool existed);
void oracle_acknowledge_part(int number);

/* After a commit. */
void oracle_check(void);
bool oracle_is_open(int number);
int oracle_open_count(void);
/* At the end of a run. */
void oracle_check_drained(void);
