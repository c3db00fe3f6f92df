/* A model of how a job changes hands: claim, lease, expiry, rescue, cancel, completion (docs/SEMANTICS.md FENCE-1 to -3).
 *
 * Each atomic block is one transaction of the product. Between two of them anything may happen: a worker may stand still
 * for so long that its lease ends (`pauses`) or die (`crashes`); both happen only so often, so that runs have an end. A
 * process that lost its lease may notice it, or go on as a zombie and try to complete.
 *
 * Checked, in every order of events:
 *   I9     whoever claims a job, no other worker with a valid lease holds it
 *   I2     a completion or a release by rescue under an old fence changes nothing
 *   once   the effect of a job is there at most once, and exactly once when it is completed
 *   ended  every job ends, once crashes and pauses are over (with weak fairness: whoever can go on does)
 *
 * tests/tools/model_test.py runs it. With -D NO_FENCE_ON_COMPLETE, RESCUE_BY_ID, LEASE_NOT_CHECKED or NO_RESCUE a rule is
 * broken, and the search must find that. */

#define WORKERS 2
#define JOBS    2
#define CRASHES 1
#define PAUSES  1
#define RETRIES 1

/* A worker that lost its lease, or died and was started again, goes on under a new id. */
#define IDS (WORKERS + CRASHES + PAUSES)

/* job states: the open ones first */
#define QUEUED    0
#define RUNNING   1
#define COMPLETED 2
#define CANCELLED 3

/* lease states; a lease that ran out is EXPIRED until somebody declares its worker dead */
#define UNUSED  0
#define LIVE    1
#define EXPIRED 2
#define DEAD    3

#define NOBODY 255

/* what the database holds */
byte state[JOBS];
byte fence[JOBS];
byte owner[JOBS];
byte effects[JOBS];
byte lease[IDS];

/* what happens in the world */
bool crashed[IDS];
byte next_id = 0;
byte crashes = CRASHES;
byte pauses = PAUSES;
byte retries = RETRIES;

/* what each process believes; only for the checks */
byte holds_job[WORKERS];
byte holds_as[WORKERS];

#define all_ended (state[0] >= COMPLETED && state[1] >= COMPLETED)

ltl every_job_ends { <> all_ended }

/* A running job under this very fence: what every write about a running job asks for. */
#define is_ours(job, its_fence) (state[job] == RUNNING && fence[job] == its_fence)

inline forget()
{
    holds_job[w] = NOBODY;
    job = NOBODY;
    my_fence = 0
}

inline claim(which)
{
    assert(holds_job[1 - w] != which || lease[holds_as[1 - w]] != LIVE); /* I9 */
    state[which] = RUNNING;
    owner[which] = id;
    fence[which]++;
    job = which;
    my_fence = fence[which];
    holds_job[w] = which;
    holds_as[w] = id
}

inline complete()
{
    if
#ifdef NO_FENCE_ON_COMPLETE
    :: true ->
#else
    :: is_ours(job, my_fence) ->
#endif
        effects[job]++;
        assert(effects[job] <= 1);      /* once */
        assert(fence[job] == my_fence); /* I2 */
        state[job] = COMPLETED
    :: else -> skip /* lost: the result is thrown away */
    fi
}

proctype worker(byte w)
{
    byte id, job, my_fence;

register:
    atomic {
        forget();
        id = next_id;
        next_id++;
        assert(id < IDS);
        lease[id] = LIVE
    }

end_idle:
    if
    :: atomic { lease[id] == LIVE && state[0] == QUEUED -> claim(0) }
    :: atomic { lease[id] == LIVE && state[1] == QUEUED -> claim(1) }
    :: lease[id] >= EXPIRED && !all_ended -> goto register
    fi;

    /* the handler runs; it takes as long as it takes */
    if
    :: atomic { complete(); forget() };
        goto end_idle
    :: atomic {
            retries > 0 && is_ours(job, my_fence) -> /* snoozed, retried or handed back */
            retries--;
            state[job] = QUEUED;
            fence[job]++;
            forget()
        };
        goto end_idle
    :: atomic {
            crashes > 0 ->
            crashes--;
            crashed[id] = true;
            forget()
        };
        goto register
    :: atomic { lease[id] >= EXPIRED -> forget() }; /* the heartbeat was told */
        goto register
    fi
}

#define EXPIRE(i)                                                                                                      \
    atomic {                                                                                                           \
        !all_ended && lease[i] == LIVE && (crashed[i] || pauses > 0) ->                                                \
        if                                                                                                             \
        :: crashed[i] -> skip                                                                                          \
        :: else -> pauses--                                                                                            \
        fi;                                                                                                            \
        lease[i] = EXPIRED                                                                                             \
    }

/* The lease of a dead process runs out for certain, that of one that stands still perhaps. The last id there is cannot end:
 * crashes and pauses are used up by then. */
proctype time()
{
end:
    do
    :: EXPIRE(0)
    :: EXPIRE(1)
    :: EXPIRE(2)
    :: pauses > 0 && !all_ended -> pauses--
    od
}

/* Finds and frees in two transactions, which is worse than the product does: the fence alone must make it safe. */
inline rescue(which)
{
    atomic {
#ifdef LEASE_NOT_CHECKED
        state[which] == RUNNING ->
#else
        state[which] == RUNNING && lease[owner[which]] == DEAD ->
#endif
        found = which;
        found_fence = fence[which]
    };
    atomic {
        if
#ifdef RESCUE_BY_ID
        :: true ->
#else
        :: is_ours(found, found_fence) ->
#endif
            assert(fence[found] == found_fence); /* I2 */
            assert(lease[owner[found]] == DEAD); /* I9 */
            assert(effects[found] == 0); /* once: it will run again */
            state[found] = QUEUED;
            fence[found]++
        :: else -> skip
        fi;
        found = 0;
        found_fence = 0
    }
}

#define DECLARE_DEAD(i)                                                                                                \
    atomic {                                                                                                           \
        !all_ended && lease[i] == EXPIRED -> lease[i] = DEAD                                                           \
    }

proctype rescuer()
{
    byte found, found_fence;
end:
    do
    :: DECLARE_DEAD(0)
    :: DECLARE_DEAD(1)
    :: DECLARE_DEAD(2)
#ifndef NO_RESCUE
    :: rescue(0)
    :: rescue(1)
#endif
    od
}

proctype canceller()
{
    if
    :: atomic {
            state[0] < COMPLETED ->
            state[0] = CANCELLED;
            fence[0]++
        }
    :: skip
    fi
}

/* Whatever is still under way when the jobs have ended changes nothing any more. */
proctype judge()
{
end:
    atomic {
        all_ended ->
        assert(effects[0] == (state[0] == COMPLETED));
        assert(effects[1] == (state[1] == COMPLETED))
    }
}

init
{
    atomic {
        holds_job[0] = NOBODY;
        holds_job[1] = NOBODY;
        run worker(0);
        run worker(1);
        run time();
        run rescuer();
        run canceller();
        run judge()
    }
}
