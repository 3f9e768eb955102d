-- The first model versions by name that providers say answered.
SELECT DISTINCT served_model
FROM items
WHERE job_id = $job_id AND served_model <> ''
ORDER BY served_model
LIMIT $most
