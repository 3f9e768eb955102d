-- Predicted and right numbers of a correlation task, in item order, with the passage's first item or the item itself.
-- `at_best`: what was not answered is right.
SELECT if($at_best AND outcome <> OUTCOME_ANSWERED, target, value) AS value, target, outcome = OUTCOME_ANSWERED AS answered, item, coalesce(first_item, item) AS cluster
FROM items i
LEFT JOIN (
    SELECT "group", min(item) AS first_item
    FROM items
    WHERE job_id = $job_id AND task = $task AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND "group" <> ''
    GROUP BY "group"
) p ON i."group" <> '' AND p."group" = i."group"
WHERE job_id = $job_id AND task = $task AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND isfinite(value) AND isfinite(target)
ORDER BY item, repeat
