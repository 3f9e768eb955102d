-- Finished jobs whose texts may go, oldest first. Never one that runs again, the newest, or one that a live job draws on;
-- those are few, so that enough of the oldest thousand are left.
SELECT t.job_id, t.attempt, t.bytes
FROM (
    SELECT job_id, attempt, bytes, ended_at
    FROM answer_texts
    WHERE bytes > 0 AND (ended_at, job_id) < (SELECT max((ended_at, job_id)) FROM answer_texts)
    ORDER BY ended_at, job_id
    LIMIT 1000
) t
JOIN jobs j ON j.job_id = t.job_id AND j.attempt = t.attempt
WHERE j.state >= STATE_COMPLETED AND t.job_id NOT IN (SELECT unnest($sources::VARCHAR[]))
ORDER BY t.ended_at, t.job_id
LIMIT $most
