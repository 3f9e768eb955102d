-- One page of jobs, newest first, after the key of the page before (NULL on the first page). The first condition on the
-- key says no more than the second, but in a form that zone maps understand.
SELECT job
FROM jobs
WHERE
{where}
    AND ($after_at::TIMESTAMP IS NULL OR created_at <= $after_at::TIMESTAMP)
    AND ($after_at::TIMESTAMP IS NULL OR (created_at, job_id) < ($after_at::TIMESTAMP, $after_job::VARCHAR))
ORDER BY created_at DESC, job_id DESC
LIMIT $size
