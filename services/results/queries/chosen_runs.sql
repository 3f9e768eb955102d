-- The same as current_scores, of some runs only.
SELECT r.*, chosen.newest, chosen.runs
FROM run_scores r
JOIN (
    SELECT
        job_id,
        row_number() OVER (of_key ORDER BY sealed_at DESC, job_id) AS newest,
        count(*) OVER of_key AS runs
    FROM run_scores
    WHERE suite = $suite
      AND mode = $mode
      AND metric = 'score'
      AND complete
      AND counts
      AND ($project_id = 0 OR project_id = $project_id)
      AND ($visible_owner = '' OR owner = $visible_owner)
    WINDOW of_key AS (PARTITION BY item_set, configuration)
    QUALIFY newest <= 2
) chosen USING (job_id)
WHERE suite = $suite AND mode = $mode
