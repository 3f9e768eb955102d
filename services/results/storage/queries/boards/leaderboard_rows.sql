-- The run that stands for each configuration on an item set, with the metric asked for, beside the run before; and those
-- that cannot stand for theirs, as they are incomplete or invalid (`newest` 0). `average` is the metric by the rule asked
-- for; of a run that was sealed before there were any, the row has the metric by its suite's own.
WITH runs AS ({runs}),
counted AS (
    SELECT configuration, sum(runs)::INTEGER AS run_count
    FROM runs
    WHERE metric = 'score' AND newest = 1
    GROUP BY configuration
)
SELECT
    c.job_id,
    c.configuration,
    c.model,
    c.endpoint,
    c.baseline,
    c.completed_at,
    c.not_ranked_reason,
    c.newest,
    coalesce(counted.run_count, 0),
    c.tasks,
    p.job_id,
    p.mean,
    coalesce(name, ''),
    coalesce(alias, ''),
    {metric}
FROM runs c
LEFT JOIN counted USING (configuration)
LEFT JOIN runs p ON c.newest = 1 AND p.newest = 2 AND p.item_set = c.item_set AND p.configuration = c.configuration AND p.metric = c.metric
LEFT JOIN configuration_names names ON names.configuration = c.configuration
WHERE c.newest <= 1
  AND c.item_set = $item_set
  AND c.metric = CASE WHEN c.job_id IN (SELECT job_id FROM runs WHERE metric = $average) THEN $average ELSE $metric END
  AND ($endpoint = '' OR c.endpoint = $endpoint)
