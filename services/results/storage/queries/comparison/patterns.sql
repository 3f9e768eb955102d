-- Items of class tasks that runs have in common, counted by what was right and what was said: bit p of `right_in` is the run
-- in place p, `said_p` is its prediction, NULL without an answer. References and predictions are told apart only in the
-- tasks `detailed`, single items only in those `apart`. In a place `at_best` what was not answered is right.
SELECT task, item, reference, right_in, count(*) AS items {said_names}
FROM (
    SELECT
        task,
        CASE WHEN list_contains($apart::VARCHAR[], task) THEN item END AS item,
        CASE WHEN list_contains($detailed::VARCHAR[], task) THEN any_value(reference) ELSE '' END AS reference,
        bit_or(CASE WHEN if(outcome = OUTCOME_ANSWERED, correct >= 0.5, at_best) THEN 1::BIGINT << place ELSE 0 END) AS right_in
        {said}
    FROM items
    JOIN (SELECT unnest($jobs::VARCHAR[]) AS job_id, unnest($places::INTEGER[]) AS place, unnest($at_best::BOOLEAN[]) AS at_best)
        USING (job_id)
    WHERE outcome <> OUTCOME_INFRASTRUCTURE_ERROR
      AND list_contains($tasks::VARCHAR[], task)
      AND (coalesce(correct, value, target) IS NOT NULL OR other_statistics IS NOT NULL)
    GROUP BY task, items.item
    HAVING count(*) = len($jobs::VARCHAR[])
)
GROUP BY ALL
ORDER BY ALL
