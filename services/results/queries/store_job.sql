-- The newest event of a job wins, whatever order events arrive in. Ids grow by length, then by text, so that both
-- padded and plain numbers order rightly.
INSERT INTO jobs VALUES (
    $job_id, $event_id, $owner, $project_id, $suite, $endpoint, $model, $state, $attempt, $created_at, $job
)
ON CONFLICT (job_id) DO UPDATE SET
    event_id = excluded.event_id,
    owner = excluded.owner,
    project_id = excluded.project_id,
    suite = excluded.suite,
    endpoint = excluded.endpoint,
    model = excluded.model,
    state = excluded.state,
    attempt = excluded.attempt,
    created_at = excluded.created_at,
    job = excluded.job
WHERE (length(excluded.event_id), excluded.event_id) > (length(jobs.event_id), jobs.event_id)
