-- Jobs by how they ended: 5 completed, 6 failed, 7 cancelled.
SELECT
    count(*),
    count(*) FILTER (state = 5),
    count(*) FILTER (state = 6),
    count(*) FILTER (state = 7),
    count(*) FILTER (state = 5 AND NOT incomplete),
    count(DISTINCT model) FILTER (state = 5 AND NOT baseline),
    max(finished_at) FILTER (state = 5)
FROM jobs
WHERE
{where}
