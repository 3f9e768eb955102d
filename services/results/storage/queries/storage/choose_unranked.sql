-- The newest run of each configuration that cannot stand for it, where no newer one does: an incomplete one, or one that
-- was invalidated or has answers of one that was; on one item set or, without a key, on all. Of a superseded run another
-- stands in its place.
INSERT INTO current_scores
SELECT r.*, 0, 0
FROM run_scores r
JOIN (
    SELECT job_id
    FROM run_scores
    WHERE metric = 'score'
      AND (counts OR job_id IN (SELECT job_id FROM uncounted_runs GROUP BY job_id HAVING max(mark) = 2))
      AND {which}
    QUALIFY NOT (counts AND complete)
        AND row_number() OVER (
            PARTITION BY suite, mode, item_set, configuration ORDER BY sealed_at DESC, job_id
        ) = 1
) chosen USING (job_id)
WHERE {which}
