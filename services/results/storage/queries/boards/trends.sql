-- Runs that rank, with one metric, by series: the newest points of the series with the newest runs. Points are chosen by
-- the numbers of their rows; only those are read whole.
WITH runs AS (
    SELECT rowid AS number, configuration, item_set, completed_at
    FROM run_scores
    WHERE suite = $suite
        AND mode = $mode
        AND metric = $metric
        AND complete
        AND counts
        AND not_ranked_reason = ''
        AND created_at >= $created_after
        AND ($completed_after::TIMESTAMP IS NULL OR completed_at >= $completed_after::TIMESTAMP)
        AND ($model = '' OR model = $model)
        AND ($item_set = '' OR item_set = $item_set)
        AND (len($configurations::VARCHAR[]) = 0 OR configuration IN (SELECT unnest($configurations::VARCHAR[])))
        AND ($project_id = 0 OR project_id = $project_id)
        AND ($visible_owner = '' OR owner = $visible_owner)
),
series AS (
    SELECT
        configuration,
        item_set,
        row_number() OVER (ORDER BY max(completed_at) DESC, configuration, item_set) AS series_place
    FROM runs
    GROUP BY configuration, item_set
    QUALIFY series_place <= $series
),
points AS (
    SELECT series_place, number
    FROM runs
    JOIN series USING (configuration, item_set)
    QUALIFY row_number() OVER (PARTITION BY series_place ORDER BY completed_at DESC, number DESC) <= $points
)
SELECT
    series_place,
    configuration,
    item_set,
    r.model,
    r.endpoint,
    subset,
    baseline,
    coalesce(name, ''),
    job_id,
    completed_at,
    {metric}
FROM run_scores r
JOIN points ON r.rowid = number
LEFT JOIN configuration_names USING (configuration)
ORDER BY series_place, completed_at, job_id
