-- One page of decisions, each by its baseline's job, newest first, after the key of the page before (NULL on the first).
SELECT job
FROM jobs
WHERE decides
    AND ($schedule_id = '' OR schedule_id = $schedule_id)
    AND ($visible_owner = '' OR owner = $visible_owner)
    AND ($after_at::TIMESTAMP IS NULL OR created_at <= $after_at::TIMESTAMP)
    AND ($after_at::TIMESTAMP IS NULL OR (created_at, job_id) < ($after_at::TIMESTAMP, $after_job::VARCHAR))
ORDER BY created_at DESC, job_id DESC
LIMIT $size
