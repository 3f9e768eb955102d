-- The event with which a job's second attempt began: it has the counts of the first one.
SELECT event
FROM events
WHERE job_id = $job_id AND action = 'retried'
ORDER BY length(event_id), event_id
LIMIT 1
