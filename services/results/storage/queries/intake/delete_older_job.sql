-- The newest event of a job wins, whatever order events arrive in. Ids grow by length, then by text, so that both
-- padded and plain numbers order rightly. Deleted and inserted, not updated: an update would make every checkpoint write
-- the serialised jobs of a whole row group again, a second's work.
DELETE FROM jobs
WHERE job_id = $job_id AND (length($event_id), $event_id) > (length(event_id), event_id)
