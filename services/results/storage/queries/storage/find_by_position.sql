-- Rows of a job's stored answers at these places, and whether their texts were dropped.
SELECT
    rowid,
    attempt <= coalesce((SELECT dropped_attempt FROM answer_texts WHERE answer_texts.job_id = $job_id), 0) AS dropped
FROM items
WHERE job_id = $job_id
  AND task = $task
  AND position IN (SELECT unnest($positions::INTEGER[]))
  AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
ORDER BY rowid
