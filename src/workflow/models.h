/* The model of a base: choosing another one, and the switch to it when its vectors are built (MODEL). */
#pragma once

#include "model/stage_result.h"
#include "workflow/schedule.h"

/* After new settings were written over those of `before`: begins, changes or calls off the build that they ask for. */
qr_rc qr_model_choose(struct qr_change *change, const struct qr_base *before, const char *settings, qr_err *err);
/* Begins the build of a base that needs one, or whose last one has not come to its end, and that has no open job for it. */
qr_rc qr_ensure_build(struct qr_change *change, const struct qr_base *base, qr_err *err);

/* The same in any case where the base has had a build: to look through all of it, and to take away what nobody uses. */
qr_rc qr_begin_build(struct qr_change *change, const struct qr_base *base, qr_err *err);

/* A part of build-vectors: the switch, or that there is more to be built. */
qr_rc qr_plan_switch_part(struct qr_change *change, const struct qr_job *job, struct qr_switch_part *part, qr_err *err);
/* Of a generation that goes live: a build under way has not seen it. */
qr_rc qr_note_missed(struct qr_change *change, qr_uuid base_id, const struct qr_stage_result *result, qr_err *err);
