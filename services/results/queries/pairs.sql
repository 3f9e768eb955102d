-- Predicted and right numbers of a correlation task, in item order.
SELECT value, target, outcome = 1 AS answered
FROM items
WHERE job_id = $job_id AND task = $task AND outcome <> 6 AND isfinite(value) AND isfinite(target)
ORDER BY item, repeat
