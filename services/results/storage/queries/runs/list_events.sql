-- One page of the audit trail, oldest first, after an event's id ('' on the first page). Ids grow by length, then by text.
SELECT event
FROM events
WHERE ($job_id = '' OR job_id = $job_id)
  AND ($visible_owner = '' OR job_id IN (
      SELECT job_id FROM jobs WHERE owner = $visible_owner
      UNION ALL SELECT job_id FROM deleted_jobs WHERE owner = $visible_owner
  ))
  AND (length(event_id), event_id) > (length($after), $after)
ORDER BY length(event_id), event_id
LIMIT $size
