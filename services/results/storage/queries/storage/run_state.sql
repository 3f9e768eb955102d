-- Whether a sealed job counts by the rule of add_run_scores.sql, and when it was completed.
SELECT
    j.state NOT IN (STATE_FAILED, STATE_CANCELLED)
        AND j.attempt <= s.attempt
        AND s.job_id NOT IN (SELECT job_id FROM uncounted_runs),
    coalesce(j.finished_at, s.sealed_at)
FROM seals s
JOIN jobs j ON j.job_id = s.job_id
WHERE s.job_id = $job_id AND j.job_id = $job_id
