-- Items of a task by reference and what was read, where the references are few texts that occur often enough to be
-- classes. `said` is NULL for texts that no item has as its reference.
WITH counted AS (
    SELECT reference, prediction, count(*) AS items
    FROM items
    WHERE job_id = $job_id
      AND task = $task
      AND reference <> ''
    GROUP BY ALL
),
known AS (SELECT DISTINCT reference FROM counted)
SELECT
    reference,
    CASE WHEN prediction = '' OR prediction IN (FROM known) THEN prediction END AS said,
    sum(items)
FROM counted
WHERE (SELECT count(*) BETWEEN 2 AND $most AND max(length(reference)) <= $longest FROM known)
  AND (SELECT sum(items) FROM counted) >= 2 * (SELECT count(*) FROM known)
GROUP BY ALL
ORDER BY ALL
