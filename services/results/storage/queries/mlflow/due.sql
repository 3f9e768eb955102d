-- Completed jobs of which MLflow got less than is known now: those of experiments, and others that do not judge
-- with $everything. The signature changes with what is sent: the attempt, its judges, people's ratings.
WITH completed AS (
    SELECT
        j.job_id,
        j.created_at,
        s.attempt,
        d.experiment
    FROM jobs AS j
    JOIN seals AS s ON s.job_id = j.job_id AND s.attempt = j.attempt
    LEFT JOIN datasets AS d ON d.id = j.suite
    WHERE j.state = STATE_COMPLETED AND (d.experiment <> '' OR ($everything AND coalesce(d.judged_job, '') = ''))
),
judged AS (
    SELECT d.judged_job AS job_id, string_agg(concat(j.job_id, '.', s.attempt), ' ' ORDER BY j.job_id) AS judges
    FROM datasets AS d
    JOIN jobs AS j ON j.suite = d.id
    JOIN seals AS s ON s.job_id = j.job_id AND s.attempt = j.attempt
    WHERE d.judged_job IN (SELECT job_id FROM completed WHERE experiment <> '')
    GROUP BY d.judged_job
),
rated AS (SELECT job_id, max(number) AS last FROM ratings GROUP BY job_id)
SELECT job_id, concat_ws(';', attempt, coalesce(judges, ''), coalesce(last, 0)) AS now_known
FROM completed
LEFT JOIN judged USING (job_id)
LEFT JOIN rated USING (job_id)
LEFT JOIN mlflow_jobs AS sent USING (job_id)
WHERE sent.signature IS DISTINCT FROM concat_ws(';', attempt, coalesce(judges, ''), coalesce(last, 0))
ORDER BY created_at DESC, job_id DESC
