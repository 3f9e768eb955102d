-- The newest complete run of each other model on the reference's suite, newest first: not of its model, and no baseline.
-- What may not be read does not count, nor what does not count on leaderboards, nor runs whose items left the database.
SELECT job_id
FROM run_scores
WHERE suite = $suite
    AND mode = $mode
    AND metric = 'score'
    AND complete
    AND counts
    AND NOT baseline
    AND model <> $model
    AND job_id NOT IN (SELECT job_id FROM archived_items WHERE returned_at IS NULL)
    AND ($visible_owner = '' OR owner = $visible_owner)
QUALIFY row_number() OVER (PARTITION BY model ORDER BY sealed_at DESC, job_id) = 1
ORDER BY sealed_at DESC, job_id
LIMIT $most
