-- Items of class tasks by what was right and what was said; an item that was not answered (outcome other than 1) said
-- nothing and is wrong. Infrastructure errors (6) are not scored.
SELECT
    task,
    reference,
    CASE WHEN outcome = 1 THEN prediction END AS prediction,
    outcome = 1 AND coalesce(correct, 0) >= 0.5 AS correct,
    count(*)
FROM items
WHERE job_id = $job_id AND outcome <> 6 AND list_contains($tasks, task)
GROUP BY ALL
ORDER BY ALL
