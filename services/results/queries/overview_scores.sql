-- The mean of a metric over the runs of models that count, and how many have it, for each suite and mode.
SELECT suite, mode, avg(mean), count(mean)
FROM run_scores
WHERE metric = $metric
    AND counts
    AND NOT baseline
    AND mean IS NOT NULL
    AND ($suite = '' OR suite = $suite)
    AND ($visible_owner = '' OR owner = $visible_owner)
    AND ($project_id = 0 OR project_id = $project_id)
    AND ($created_after::TIMESTAMP IS NULL OR created_at >= $created_after::TIMESTAMP)
GROUP BY suite, mode
ORDER BY count(mean) DESC, suite, mode
LIMIT $most
