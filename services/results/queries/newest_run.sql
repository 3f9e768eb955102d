-- The newest complete run of one configuration on one item set. A sealed job is as good as COMPLETED, so that it ranks
-- before its last event arrives; FAILED (6) and CANCELLED (7) take it away again, and so does a later attempt.
SELECT s.job_id
FROM seals s
JOIN jobs j USING (job_id)
WHERE s.suite = $suite
  AND s.mode = $mode
  AND s.item_set = $item_set
  AND s.configuration = $configuration
  AND s.complete
  AND j.state NOT IN (6, 7)
  AND j.attempt <= s.attempt
ORDER BY s.sealed_at DESC, s.job_id
LIMIT 1
