-- What each item of runs that know their prices cost, all its answers together. Of runs that called for every one.
SELECT task, item, job_id, fsum(known_usd(cost_usd)) AS cost_usd
FROM items
WHERE list_contains($jobs::VARCHAR[], job_id)
  AND job_id NOT IN (
      SELECT job_id
      FROM items
      WHERE list_contains($jobs::VARCHAR[], job_id)
        AND list_contains($tasks::VARCHAR[], task)
        AND (reused OR coalesce(known_usd(cost_usd), 0) <= 0)
  )
  AND list_contains($tasks::VARCHAR[], task)
GROUP BY task, item, job_id
ORDER BY job_id, task, item
