-- The answered items of a reference run, and how much the scores of others' answers to them differ: NULL unless at least
-- two of the given jobs have answered the item. The reference's own scores have no say: items that are chosen for
-- theirs would score otherwise when they are asked again, whatever the model.
SELECT r.task, r.item, var_pop(o.score) AS spread, any_value(r."group") AS "group"
FROM items r
LEFT JOIN (
    SELECT
        task,
        item,
        item_hash,
        CASE WHEN correct IS NOT NULL THEN (outcome = OUTCOME_ANSWERED)::INTEGER * correct ELSE value END AS score
    FROM items
    WHERE job_id IN (SELECT unnest($others::VARCHAR[])) AND repeat = 0 AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
) o ON o.task = r.task AND o.item = r.item AND o.item_hash = r.item_hash
WHERE r.job_id = $reference
    AND r.repeat = 0
    AND r.outcome <> OUTCOME_INFRASTRUCTURE_ERROR
    AND list_contains($tasks::VARCHAR[], r.task)
GROUP BY r.task, r.item
