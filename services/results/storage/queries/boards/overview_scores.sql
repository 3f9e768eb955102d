-- The mean of a metric over the runs of models that rank, and how many have it, for each suite and mode: over whole runs,
-- and where there are none over those on the most items.
WITH runs AS (
    SELECT suite, mode, mean
    FROM run_scores
    WHERE metric = $metric
        AND counts
        AND not_ranked_reason = ''
        AND NOT baseline
        AND mean IS NOT NULL
        AND ($suite = '' OR suite = $suite)
        AND ($visible_owner = '' OR owner = $visible_owner)
        AND ($project_id = 0 OR project_id = $project_id)
        AND ($created_after::TIMESTAMP IS NULL OR created_at >= $created_after::TIMESTAMP)
    QUALIFY rank() OVER (PARTITION BY suite, mode ORDER BY subset, CASE WHEN subset THEN n END DESC) = 1
)
SELECT suite, mode, avg(mean), count(*)
FROM runs
GROUP BY suite, mode
ORDER BY count(*) DESC, suite, mode
LIMIT $most
