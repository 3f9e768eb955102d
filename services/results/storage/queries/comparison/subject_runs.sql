-- Of every configuration that one of the subjects may mean, the complete run that stands for it, of those that count: the
-- newest whole one, else the newest of those on the most items; and the newest of all.
WITH meant AS (
    SELECT configuration, name, alias
    FROM configuration_names
    WHERE (name <> '' AND list_contains($subjects::VARCHAR[], name))
       OR (alias <> '' AND list_contains($subjects::VARCHAR[], alias))
),
found AS (
    SELECT
        job_id,
        configuration,
        model,
        endpoint,
        sealed_at,
        subset,
        n,
        row_number() OVER (
            PARTITION BY configuration ORDER BY subset, CASE WHEN subset THEN n END DESC, sealed_at DESC, job_id
        ) AS choice,
        first_value(job_id) OVER by_time AS newest,
        first_value(n) OVER by_time AS newest_items
    FROM run_scores
    WHERE suite = $suite
      AND mode = $mode
      AND complete
      AND counts
      -- One row a run.
      AND place = 0
      AND ($project_id = 0 OR project_id = $project_id)
      AND ($visible_owner = '' OR owner = $visible_owner)
      AND (list_contains($subjects::VARCHAR[], configuration)
           OR list_contains($subjects::VARCHAR[], model)
           OR list_contains($subjects::VARCHAR[], model || '@' || endpoint)
           OR configuration IN (SELECT configuration FROM meant)
           OR ($prefixes <> '' AND regexp_matches(configuration, $prefixes)))
    WINDOW by_time AS (PARTITION BY configuration ORDER BY sealed_at DESC, job_id)
)
SELECT
    job_id, configuration, model, endpoint, sealed_at, subset, n, newest, newest_items, coalesce(name, ''),
    coalesce(alias, '')
FROM found
LEFT JOIN configuration_names USING (configuration)
WHERE choice = 1
ORDER BY sealed_at DESC, job_id
