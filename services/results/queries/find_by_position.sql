-- Rows of a job's stored answers at these places.
SELECT rowid
FROM items
WHERE job_id = $job_id
  AND task = $task
  AND position IN (SELECT unnest($positions::INTEGER[]))
  AND outcome <> 6
ORDER BY rowid
