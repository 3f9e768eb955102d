-- The mean of a metric over the runs of models that rank, and how many have it, for each suite and mode: over whole runs,
-- and where there are none over those on the most items.
WITH means AS (
    SELECT suite, mode, subset, CASE WHEN subset THEN n END AS items, avg(mean) AS mean, count(*) AS runs
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
    GROUP BY suite, mode, subset, items
)
SELECT suite, mode, mean, runs
FROM means
QUALIFY row_number() OVER (PARTITION BY suite, mode ORDER BY subset, items DESC) = 1
ORDER BY runs DESC, suite, mode
LIMIT $most
