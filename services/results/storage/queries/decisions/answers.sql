-- What became of a decision's items in a job, each with the score that its task's statistic gives ('' for answered and
-- right), NULL where it is not scored. A later attempt does not change what the first one said: `again` are its answers,
-- to items to which the first one has none.
SELECT
    place,
    position,
    outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND attempt = 1 AS answered,
    attempt > 1 AS again,
    CASE
        WHEN coalesce(correct, value, target) IS NULL AND other_statistics IS NULL THEN NULL
        WHEN statistic = '' THEN (outcome = OUTCOME_ANSWERED AND coalesce(correct, 0) >= 0.5)::DOUBLE
        WHEN statistic = 'correct' THEN correct
        WHEN statistic = 'value' THEN value
        WHEN statistic = 'target' THEN target
        ELSE (other_statistics ->> ('$."' || statistic || '"'))::DOUBLE
    END AS score
FROM items
JOIN (
    SELECT unnest($tasks::VARCHAR[]) AS task, unnest($places::INTEGER[]) AS place, unnest($statistics::VARCHAR[]) AS statistic
) USING (task)
WHERE job_id = $job_id AND repeat = 0
