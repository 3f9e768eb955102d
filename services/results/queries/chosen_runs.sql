-- The same as current_scores, of some runs only. Rows are chosen by their numbers: a run's id is in the file's widest
-- column of all that this reads, and few runs' ids are needed. Rows of a run have its time, which tells where they lie.
WITH best AS (
    SELECT arg_min(rowid, (-epoch_us(sealed_at), rowid), 2) AS numbers, count(*) AS runs
    FROM run_scores
    WHERE suite = $suite
      AND mode = $mode
      AND metric = 'score'
      AND complete
      AND counts
      AND ($project_id = 0 OR project_id = $project_id)
      AND ($visible_owner = '' OR owner = $visible_owner)
    GROUP BY item_set, configuration
),
numbered AS MATERIALIZED (
    SELECT unnest(numbers) AS number, unnest(range(1, len(numbers) + 1)) AS newest, runs
    FROM best
),
chosen AS MATERIALIZED (
    SELECT created_at, job_id, newest, numbered.runs
    FROM run_scores r
    JOIN numbered ON r.rowid = number
)
SELECT r.*, chosen.newest, chosen.runs
FROM run_scores r
JOIN chosen USING (created_at, job_id)
WHERE suite = $suite AND mode = $mode
