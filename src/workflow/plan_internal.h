/* What the files of the plan share. */
#pragma once

#include "job/handler.h"
#include "model/stage_result.h"
#include "workflow/guard.h"
#include "workflow/schedule.h"

/* plan_expand.c */
qr_rc qr_plan_expand_part(struct qr_change *change, const struct qr_job *job, struct qr_expand_part *part, qr_err *err);
qr_rc qr_plan_expand_ended(struct qr_change *change, struct qr_item *item, const struct qr_ended *ended, qr_err *err);

/* plan_stage.c: a leaf whose stage was completed */
qr_rc qr_plan_stage_completed(struct qr_change *change, struct qr_item *item, const struct qr_stage_result *result,
                              qr_err *err);
/* JSON of warnings for the item's row; NULL when out of memory. */
const char *qr_warnings_as_json(const struct qr_warning *warnings, size_t count, struct qr_arena *arena);
/* The item's warnings without those of the code, and with this one; NULL = only without. */
qr_rc qr_plan_replace_warning(struct qr_change *change, struct qr_item *item, const char *code,
                              const struct qr_warning *warning, qr_err *err);

/* plan_side.c */
qr_rc qr_plan_raise_part(struct qr_change *change, const struct qr_job *job, const struct qr_raise_part *part,
                         qr_err *err);
qr_rc qr_plan_refresh_ended(struct qr_change *change, const struct qr_ended *ended, qr_err *err);
qr_rc qr_plan_asset_ended(struct qr_change *change, const struct qr_ended *ended, qr_err *err);
qr_rc qr_plan_after_assets(struct qr_change *change, struct qr_item *item, qr_err *err);
qr_rc qr_plan_restore_ended(struct qr_change *change, const struct qr_ended *ended, qr_err *err);
