-- What jobs answered to the canaries of some runs: for each its score, by its task's statistic ('' for answered and
-- right), what it says, and a digest of its text, NULL where that is not stored. Failed calls are no answers.
SELECT
    job_id,
    task,
    item,
    item_hash,
    prompt_hash,
    CASE
        WHEN coalesce(correct, value, target) IS NULL AND other_statistics IS NULL THEN NULL
        WHEN statistic = '' THEN (outcome = OUTCOME_ANSWERED AND coalesce(correct, 0) >= 0.5)::DOUBLE
        WHEN statistic = 'correct' THEN correct
        WHEN statistic = 'value' THEN value
        WHEN statistic = 'target' THEN target
        ELSE (other_statistics ->> ('$."' || statistic || '"'))::DOUBLE
    END AS score,
    outcome,
    left(prediction, 500) AS prediction,
    md5(prediction) AS said,
    CASE WHEN response <> '' THEN md5(response) END AS text,
    served_model
FROM items
JOIN (SELECT unnest($tasks::VARCHAR[]) AS task, unnest($statistics::VARCHAR[]) AS statistic) USING (task)
WHERE job_id IN (SELECT unnest($jobs::VARCHAR[]))
    AND repeat = $repeat
    AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
    AND (task, item) IN (SELECT (task, item) FROM items WHERE job_id IN (SELECT unnest($runs::VARCHAR[])))
