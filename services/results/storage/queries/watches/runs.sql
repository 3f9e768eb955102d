-- The completed runs of a watch, in the order in which they ended.
SELECT job
FROM jobs
WHERE schedule_id = $schedule_id AND state = STATE_COMPLETED
ORDER BY finished_at, job_id
