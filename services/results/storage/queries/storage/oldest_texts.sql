-- Finished jobs whose texts may go, oldest first; those that came back from the archive count from then. Never one that
-- runs again, the newest, or one that is `$needed`; those are few, so that enough of the oldest thousand are left. Nor jobs
-- of the schedules `$watches`.
SELECT t.job_id, t.attempt, t.bytes
FROM (
    SELECT job_id, attempt, bytes, greatest(ended_at, coalesce(returned_at, ended_at)) AS since
    FROM answer_texts
    LEFT JOIN archived_items USING (job_id)
    WHERE bytes > 0
        AND (ended_at, job_id) < (SELECT max((ended_at, job_id)) FROM answer_texts)
        AND job_id NOT IN (SELECT job_id FROM jobs WHERE list_contains($watches::VARCHAR[], schedule_id))
    ORDER BY since, job_id
    LIMIT 1000
) t
JOIN jobs j ON j.job_id = t.job_id AND j.attempt = t.attempt
WHERE j.state >= STATE_COMPLETED AND t.job_id NOT IN (SELECT unnest($needed::VARCHAR[]))
ORDER BY t.since, t.job_id
LIMIT $most
