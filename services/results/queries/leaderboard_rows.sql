-- The run that stands for each configuration, with the metric asked for.
SELECT
    s.job,
    j.job,
    s.sealed_at,
    s.result,
    (SELECT count(*) FROM seals r JOIN jobs rj USING (job_id)
     WHERE r.suite = s.suite AND r.configuration = s.configuration AND r.complete AND rj.state NOT IN (6, 7)),
    m.tasks, m.n, m.mean, m.stderr, m.ci95_low, m.ci95_high, m.bound_low, m.bound_high, m.method, m.undefined_reason
FROM current_scores c
JOIN seals s USING (job_id)
JOIN jobs j USING (job_id)
JOIN metrics m ON m.job_id = c.job_id AND m.task = '' AND m.metric = $metric
WHERE c.suite = $suite
  AND c.mode = $mode
  AND c.item_set = $item_set
  AND ($endpoint = '' OR j.endpoint = $endpoint)
