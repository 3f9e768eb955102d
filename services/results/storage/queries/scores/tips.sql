-- Answers of a job, in the order of its rows.
SELECT custom_id, response, tool_calls
FROM items
WHERE job_id = $job_id AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
ORDER BY item, repeat
