-- The averages of sealed jobs. A sealed job is as good as COMPLETED, so that it ranks before its last event arrives;
-- FAILED (6) and CANCELLED (7) take it away again, and so do a later attempt and what is in `uncounted`, as marks do.
INSERT INTO run_scores BY NAME
SELECT
    s.job_id,
    s.attempt,
    s.suite,
    s.mode,
    s.item_set,
    s.subset,
    s.configuration,
    j.owner,
    j.project_id,
    j.model,
    j.endpoint,
    j.baseline,
    j.created_at,
    s.sealed_at,
    coalesce(j.finished_at, s.sealed_at) AS completed_at,
    s.complete,
    j.state NOT IN (STATE_FAILED, STATE_CANCELLED)
        AND j.attempt <= s.attempt
        AND s.job_id NOT IN ({uncounted}) AS counts,
    s.not_ranked_reason,
    m.metric,
    m.place,
    m.tasks,
    m.n,
    m.mean,
    m.stderr,
    m.ci95_low,
    m.ci95_high,
    m.bound_low,
    m.bound_high,
    m.method,
    m.undefined_reason
    {later}
FROM seals s
JOIN jobs j ON j.job_id = s.job_id
JOIN metrics m ON m.job_id = s.job_id AND m.task = ''
WHERE {which}
ORDER BY j.created_at, s.job_id, m.place
