/* How the simulations run: seed after seed, step after step.
 *
 *     SEED=n              repeats one run, step by step the same
 *     SIM_TRACE=1         and prints what became of things
 *     SIM_RUNS=n SIM_FIRST=m   runs n seeds from m on */
#pragma once

#include "sim/world.h"

/* Runs the seed of the environment, or `runs` of them: ten times as many in long tests. */
void seeds_run(int runs, void (*run)(uint64_t seed));
/* One step of the run; after a commit the oracle looks. */
void seeds_step(uint64_t seed, int number, void (*check)(void));
/* Kills, freezes or shuts down one of the processes that are up, in these shares of 100; true when it was killed. */
bool seeds_disturb(int kills, int freezes);
/* What happened in all runs, as a line to be continued by what is the simulation's own. */
void seeds_print_totals(void);
