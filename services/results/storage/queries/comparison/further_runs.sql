-- The newest complete runs of some configurations on some item sets, at most `most` of each. Without those whose items the
-- archive has lost.
SELECT configuration, item_set, job_id
FROM run_scores
WHERE suite = $suite
  AND mode = $mode
  AND complete
  AND counts
  -- One row a run.
  AND place = 0
  AND list_contains($configurations::VARCHAR[], configuration)
  AND list_contains($item_sets::VARCHAR[], item_set)
  AND job_id NOT IN (SELECT job_id FROM archived_items WHERE returned_at IS NULL AND lost)
  AND ($visible_owner = '' OR owner = $visible_owner)
QUALIFY row_number() OVER (PARTITION BY configuration, item_set ORDER BY sealed_at DESC, job_id) <= $most
ORDER BY ALL
