-- The same as current_scores, of some runs only. Rows are chosen by their numbers: a run's id is in the file's widest
-- column of all that this reads, and few runs' ids are needed. Rows of a run have its time, which tells where they lie.
WITH asked AS (
    SELECT rowid AS number, job_id, item_set, configuration, sealed_at, counts, complete
    FROM run_scores
    WHERE suite = $suite
      AND mode = $mode
      AND metric = 'score'
      AND ($project_id = 0 OR project_id = $project_id)
      AND ($visible_owner = '' OR owner = $visible_owner)
),
best AS (
    SELECT
        item_set,
        configuration,
        arg_min(number, (-epoch_us(sealed_at), number), 2) AS numbers,
        count(*) AS runs,
        max(sealed_at) AS newest_at
    FROM asked
    WHERE counts AND complete
    GROUP BY item_set, configuration
),
unranked AS (
    SELECT item_set, configuration, arg_max(number, (sealed_at, number)) AS number, max(sealed_at) AS newest_at
    FROM asked
    WHERE NOT (counts AND complete)
      AND (counts OR job_id IN (SELECT job_id FROM uncounted_runs GROUP BY job_id HAVING max(mark) = 2))
    GROUP BY item_set, configuration
),
numbered AS MATERIALIZED (
    SELECT unnest(numbers) AS number, unnest(range(1, len(numbers) + 1)) AS newest, runs
    FROM best
    UNION ALL
    SELECT unranked.number, 0, 0
    FROM unranked
    LEFT JOIN best USING (item_set, configuration)
    WHERE best.newest_at IS NULL OR best.newest_at < unranked.newest_at
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
