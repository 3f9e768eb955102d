-- The same by cluster (a passage, or an item with several answers). Every item counts as one, its answers in equal parts.
SELECT task, cluster, reference, prediction, correct, sum(share)
FROM (
    SELECT
        i.task,
        coalesce(first_item, item) AS cluster,
        reference,
        CASE WHEN outcome = OUTCOME_ANSWERED THEN prediction END AS prediction,
        outcome = OUTCOME_ANSWERED AND coalesce(correct, 0) >= 0.5 AS correct,
        1.0::DOUBLE / count(*) OVER (PARTITION BY i.task, item) AS share
    FROM items i
    LEFT JOIN (
        SELECT task, "group", min(item) AS first_item
        FROM items
        WHERE job_id = $job_id AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND "group" <> '' AND list_contains($tasks, task)
        GROUP BY task, "group"
    ) p ON i."group" <> '' AND p.task = i.task AND p."group" = i."group"
    WHERE job_id = $job_id
      AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
      AND list_contains($tasks, i.task)
      AND (coalesce(correct, value, target) IS NOT NULL OR other_statistics IS NOT NULL)
)
GROUP BY ALL
ORDER BY ALL
