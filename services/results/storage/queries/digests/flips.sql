-- Of the items that two jobs answered: how many there are, and how many are right in one alone.
SELECT
    count(*),
    count(*) FILTER (b.right_now AND NOT a.right_now),
    count(*) FILTER (a.right_now AND NOT b.right_now)
FROM (
    SELECT task, item, item_hash, outcome = OUTCOME_ANSWERED AND coalesce(correct, 0) >= 0.5 AS right_now
    FROM items
    WHERE job_id = $before AND repeat = 0 AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
) a
JOIN (
    SELECT task, item, item_hash, outcome = OUTCOME_ANSWERED AND coalesce(correct, 0) >= 0.5 AS right_now
    FROM items
    WHERE job_id = $after AND repeat = 0 AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
) b USING (task, item, item_hash)
