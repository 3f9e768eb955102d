-- The newest completed run of each series in the time, how many there are, and the run to compare it with: the newest one
-- before that time, else the first one in it. Runs of a part of the items are a series of their own, or a pilot would
-- pass for a change. What does not count on leaderboards, such as runs of watches, is left out.
WITH runs AS (
    SELECT
        j.job_id, j.model, j.endpoint, j.suite, j.schedule_id, s.mode,
        CASE WHEN s.subset THEN s.item_set ELSE '' END AS part,
        j.finished_at, j.finished_at >= $begin AS inside
    FROM jobs j
    -- One row a run.
    JOIN run_scores s ON s.job_id = j.job_id AND s.counts AND s.place = 0
    WHERE j.state = STATE_COMPLETED
        AND j.finished_at < $end
        AND ($schedule_id = '' OR j.schedule_id = $schedule_id)
        AND ($project_id = 0 OR j.project_id = $project_id)
        AND ($visible_owner = '' OR j.owner = $visible_owner)
)
SELECT
    any_value(model),
    any_value(endpoint),
    any_value(suite),
    any_value(schedule_id),
    any_value(concat_ws(' ', suite, mode, part)),
    any_value(mode),
    any_value(part <> ''),
    count(*) FILTER (inside),
    arg_max(job_id, finished_at) FILTER (inside),
    coalesce(arg_max(job_id, finished_at) FILTER (NOT inside), arg_min(job_id, finished_at) FILTER (inside))
FROM runs
GROUP BY model, endpoint, suite, schedule_id, mode, part
HAVING bool_or(inside)
ORDER BY max(finished_at) FILTER (inside) DESC, model, endpoint, suite, schedule_id, mode, part
