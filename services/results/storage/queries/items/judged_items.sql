-- A job's items of one task or all, that satisfy a condition, each with the whole number that orders it. The places in
-- braces take that condition, that number, and items_beside.sql or items_alone.sql.
-- `gain` is 1 where an item is right here and not in the baseline, −1 the other way round, else 0; NULL where either is
-- missing or has no final outcome. `differs` also tells apart the predictions of a task that knows no right and wrong.
-- To be followed by what selects from `judged` or `chosen`.
WITH here AS (
    SELECT rowid AS place, task, item, repeat, item_hash, outcome, prediction, correct, {order} AS place_value
    FROM items
    WHERE job_id = $job_id
      AND ($task = '' OR task = $task)
      AND {condition}
),
{beside},
judged AS MATERIALIZED (
    SELECT
        place,
        baseline_place,
        task,
        item,
        repeat,
        place_value,
        outcome,
        is_right,
        outcome BETWEEN OUTCOME_UNPARSED AND OUTCOME_INPUT_TRUNCATED OR (outcome = OUTCOME_ANSWERED AND correct < 0.5) AS is_failure,
        CASE WHEN both_final THEN is_right::INTEGER - was_right::INTEGER END AS gain,
        coalesce(both_final AND CASE WHEN ungraded THEN says_else ELSE is_right <> was_right END, false) AS differs
    FROM beside
),
chosen AS (
    SELECT *
    FROM judged
    WHERE CASE $choice
        WHEN 'failures' THEN is_failure
        WHEN 'unparsed' THEN outcome IN (OUTCOME_UNPARSED, OUTCOME_OUTPUT_TRUNCATED, OUTCOME_INPUT_TRUNCATED)
        WHEN 'errors' THEN outcome = OUTCOME_INFRASTRUCTURE_ERROR
        WHEN 'correct' THEN is_right
        WHEN 'different' THEN differs
        WHEN 'regressed' THEN gain = -1
        WHEN 'improved' THEN gain = 1
        WHEN 'truncated' THEN outcome IN (OUTCOME_OUTPUT_TRUNCATED, OUTCOME_INPUT_TRUNCATED)
        WHEN 'refused' THEN outcome = OUTCOME_REFUSED
        WHEN 'final' THEN outcome <> OUTCOME_INFRASTRUCTURE_ERROR
        ELSE true
    END
)
