-- Item sets that some configuration has a complete run on: whole runs first, then the set with the most items, so that a
-- trial on a few does not take the board over, then the one with the newest run.
SELECT s.item_set, arg_max(s.job, s.sealed_at), bool_or(s.subset)
FROM current_scores c
JOIN seals s USING (job_id)
JOIN jobs j USING (job_id)
LEFT JOIN metrics m ON m.job_id = s.job_id AND m.task = '' AND m.metric = 'score'
WHERE c.suite = $suite
  AND c.mode = $mode
  AND ($endpoint = '' OR j.endpoint = $endpoint)
  AND ($item_set = '' OR c.item_set = $item_set)
GROUP BY s.item_set
ORDER BY bool_or(s.subset), max(m.n) DESC NULLS LAST, max(s.sealed_at) DESC, s.item_set
LIMIT 1
