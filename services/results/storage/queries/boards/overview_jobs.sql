-- Jobs by how they ended: 5 completed, 6 failed, 7 cancelled.
SELECT
    count(*),
    count(*) FILTER (state = STATE_COMPLETED),
    count(*) FILTER (state = STATE_FAILED),
    count(*) FILTER (state = STATE_CANCELLED),
    count(*) FILTER (state = STATE_COMPLETED AND NOT incomplete),
    count(DISTINCT model) FILTER (state = STATE_COMPLETED AND NOT baseline),
    max(finished_at) FILTER (state = STATE_COMPLETED)
FROM jobs
WHERE
{where}
