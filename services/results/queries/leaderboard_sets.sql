-- Item sets that some configuration has a complete run on: whole runs first, then the set with the newest run.
SELECT s.item_set, arg_max(s.job, s.sealed_at), bool_or(s.subset)
FROM current_scores c
JOIN seals s USING (job_id)
JOIN jobs j USING (job_id)
WHERE c.suite = $suite
  AND c.mode = $mode
  AND ($endpoint = '' OR j.endpoint = $endpoint)
  AND ($item_set = '' OR c.item_set = $item_set)
GROUP BY s.item_set
ORDER BY bool_or(s.subset), max(s.sealed_at) DESC, s.item_set
LIMIT 1
