-- Those of these places of a job that have an answer.
SELECT {columns}
FROM items
JOIN (
    SELECT
        unnest($tasks::VARCHAR[]) AS task,
        unnest($items::INTEGER[]) AS item,
        unnest($repeats::INTEGER[]) AS repeat
) USING (task, item, repeat)
WHERE job_id = $job_id AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
