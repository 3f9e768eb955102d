-- Finished jobs whose items may leave the database, the oldest first: the archive has them as they are known now. `$before`
-- bounds when a job ended, when somebody spoke of it, and when its items were last brought back. Never jobs that are
-- `$used`, runs of the schedules `$watches`, those of experiments and their judges, and runs that a leaderboard tests
-- against others.
WITH
{finished},
ranked AS (
    SELECT job_id
    FROM current_scores
    WHERE newest = 1 AND metric = 'score'
    QUALIFY count(*) OVER (PARTITION BY suite, mode, item_set) > 1
),
of_experiments AS (
    SELECT j.job_id
    FROM jobs AS j
    JOIN datasets AS d ON d.id = j.suite
    WHERE d.experiment <> ''
)
SELECT finished.job_id, finished.signature
FROM finished
JOIN jobs AS j USING (job_id)
JOIN archived_jobs AS a USING (job_id)
LEFT JOIN archived_items AS i USING (job_id)
LEFT JOIN datasets AS d ON d.id = j.suite
WHERE
    a.place = $place
    AND a.signature = finished.signature
    AND coalesce(j.finished_at, finished.ended_at) <= $before
    AND (i.job_id IS NULL OR i.returned_at <= $before)
    AND ($only = '' OR finished.job_id = $only)
    AND NOT list_contains($used::VARCHAR[], finished.job_id)
    AND NOT list_contains($watches::VARCHAR[], j.schedule_id)
    AND NOT list_contains($refused::VARCHAR[], finished.job_id)
    AND finished.job_id NOT IN (FROM ranked)
    AND finished.job_id NOT IN (FROM of_experiments)
    AND coalesce(d.judged_job, '') NOT IN (FROM of_experiments)
    AND finished.job_id IN (SELECT job_id FROM items WHERE $only = '' OR job_id = $only)
ORDER BY finished.ended_at, finished.job_id
LIMIT $most
