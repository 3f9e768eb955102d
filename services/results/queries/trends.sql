-- Runs that rank, with one metric, by series: the newest points of the series with the newest runs.
WITH runs AS (
    FROM run_scores
    WHERE suite = $suite
        AND mode = $mode
        AND metric = $metric
        AND complete
        AND counts
        AND not_ranked_reason = ''
        AND created_at >= $created_after
        AND ($model = '' OR model = $model)
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
)
SELECT
    series_place,
    configuration,
    item_set,
    runs.model,
    runs.endpoint,
    subset,
    baseline,
    coalesce(name, ''),
    job_id,
    completed_at,
    {metric}
FROM runs
JOIN series USING (configuration, item_set)
LEFT JOIN configuration_names USING (configuration)
QUALIFY row_number() OVER (PARTITION BY series_place ORDER BY completed_at DESC, job_id DESC) <= $points
ORDER BY series_place, completed_at, job_id
