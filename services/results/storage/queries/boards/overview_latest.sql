-- The completed job of that end: a question to a few rows once overview_jobs.sql has told the time.
SELECT job
FROM jobs
WHERE state = STATE_COMPLETED AND finished_at = $finished_at::TIMESTAMP AND
{where}
ORDER BY job_id DESC
LIMIT 1
