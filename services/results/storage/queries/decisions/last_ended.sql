-- Of the first ends of a decision's jobs, the one that came last. NULL while a job has none. Ids of events grow by length,
-- then by text.
SELECT CASE WHEN count(*) = len($jobs::VARCHAR[]) THEN last(job_id ORDER BY length(first_end), first_end) END
FROM (
    SELECT job_id, first(event_id ORDER BY length(event_id), event_id) AS first_end
    FROM events
    WHERE job_id IN (SELECT unnest($jobs::VARCHAR[])) AND action IN ('completed', 'failed', 'cancelled')
    GROUP BY job_id
)
