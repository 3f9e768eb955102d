-- After delete_older_job.sql: a job whose newest state is stored stays as it is.
INSERT INTO jobs VALUES (
    $job_id, $event_id, $owner, $project_id, $suite, $endpoint, $model, $state, $attempt, $created_at, $job,
    $baseline, $incomplete, $finished_at, $planned, $started_at, $decides, $schedule_id
)
ON CONFLICT (job_id) DO NOTHING
