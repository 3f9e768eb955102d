-- Items of class tasks by what was right and what was said; an item that was not answered (outcome other than 1) said
-- nothing and is wrong. Infrastructure errors (6) are not scored, nor is what has no statistics: a row without a
-- reference. References and predictions are told apart only where a metric needs it.
SELECT
    task,
    CASE WHEN list_contains($detailed, task) THEN reference ELSE '' END AS reference,
    CASE WHEN outcome <> OUTCOME_ANSWERED THEN NULL WHEN list_contains($detailed, task) THEN prediction ELSE '' END AS prediction,
    outcome = OUTCOME_ANSWERED AND coalesce(correct, 0) >= 0.5 AS correct,
    count(*)
FROM items
WHERE job_id = $job_id
  AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
  AND list_contains($tasks, task)
  AND (coalesce(correct, value, target) IS NOT NULL OR other_statistics IS NOT NULL)
GROUP BY ALL
ORDER BY ALL
