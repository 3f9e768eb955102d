-- Share of the most frequent reference among the scored items of each task.
SELECT task, max(times) / sum(times)
FROM (
    SELECT task, count(*) AS times
    FROM items
    WHERE job_id = $job_id
      AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
      AND list_contains($tasks, task)
      AND (coalesce(correct, value, target) IS NOT NULL OR other_statistics IS NOT NULL)
    GROUP BY task, reference
)
GROUP BY task
