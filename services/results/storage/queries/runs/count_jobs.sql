SELECT
    count(*),
    count(*) FILTER (state = STATE_COMPLETED),
    count(*) FILTER (state IN (STATE_COMPLETED, STATE_FAILED, STATE_CANCELLED))
FROM jobs
WHERE
{where}
