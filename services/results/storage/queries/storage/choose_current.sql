-- The two newest complete runs that count, of one configuration on one item set or, without a key, of all.
INSERT INTO current_scores
SELECT r.*, chosen.newest, chosen.runs
FROM run_scores r
JOIN (
    SELECT
        job_id,
        row_number() OVER (of_key ORDER BY sealed_at DESC, job_id) AS newest,
        count(*) OVER of_key AS runs
    FROM run_scores
    WHERE metric = 'score' AND complete AND counts AND {which}
    WINDOW of_key AS (PARTITION BY suite, mode, item_set, configuration)
    QUALIFY newest <= 2
) chosen USING (job_id)
WHERE {which}
