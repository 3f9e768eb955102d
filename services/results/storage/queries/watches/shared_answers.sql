-- Whether one of two jobs has answers of the other one, or both have some of a third.
WITH RECURSIVE origins AS (
    SELECT unnest([$one, $other]) AS job_id, unnest([$one, $other]) AS origin
    UNION
    SELECT origins.job_id, s.source
    FROM origins
    JOIN run_sources s ON s.job_id = origins.origin
)
SELECT 1
FROM origins a
JOIN origins b ON b.origin = a.origin
WHERE a.job_id = $one AND b.job_id = $other
LIMIT 1
