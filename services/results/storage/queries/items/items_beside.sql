-- Beside each item the baseline's of the same task, number and repeat, if that has the same input and reference.
there AS (
    SELECT rowid AS place, task, item, repeat, item_hash, outcome, prediction, correct
    FROM items
    WHERE job_id = $baseline AND ($task = '' OR task = $task)
),
beside AS (
    SELECT
        here.*,
        there.place AS baseline_place,
        here.outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND there.outcome <> OUTCOME_INFRASTRUCTURE_ERROR AS both_final,
        here.correct IS NULL AND there.correct IS NULL AS ungraded,
        here.prediction <> there.prediction AS says_else,
        coalesce(here.outcome = OUTCOME_ANSWERED AND here.correct >= 0.5, false) AS is_right,
        coalesce(there.outcome = OUTCOME_ANSWERED AND there.correct >= 0.5, false) AS was_right
    FROM here
    LEFT JOIN there
        ON there.task = here.task
       AND there.item = here.item
       AND there.repeat = here.repeat
       AND there.item_hash = here.item_hash
)
