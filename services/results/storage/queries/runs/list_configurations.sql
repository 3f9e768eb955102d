-- Configurations by their newest run, newest first, after the key of the page before (NULL on the first page).
SELECT configuration, model, endpoint, coalesce(name, ''), coalesce(alias, ''), job_id, suite, run_count, last_run_at
FROM (
    SELECT
        configuration,
        arg_max(model, (completed_at, job_id)) AS model,
        arg_max(endpoint, (completed_at, job_id)) AS endpoint,
        arg_max(job_id, (completed_at, job_id)) AS job_id,
        arg_max(suite, (completed_at, job_id)) AS suite,
        sum(runs)::INTEGER AS run_count,
        max(completed_at) AS last_run_at
    FROM ({runs})
    WHERE metric = 'score'
        AND ($model = '' OR model = $model)
        AND ($configuration = '' OR configuration = $configuration)
        AND ($prefix = '' OR starts_with(configuration, $prefix))
    GROUP BY configuration
)
LEFT JOIN configuration_names USING (configuration)
WHERE (NOT $named OR name <> '' OR alias <> '')
    AND ($after_at::TIMESTAMP IS NULL
         OR (last_run_at, configuration) < ($after_at::TIMESTAMP, $after_configuration::VARCHAR))
ORDER BY last_run_at DESC, configuration DESC
LIMIT $size
