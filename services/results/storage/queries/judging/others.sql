-- A job's answers to rows that another job has, by their custom ids or by their places.
SELECT task, item, "repeat", custom_id, item_hash, response, tool_calls
FROM items
WHERE job_id = $job_id
    AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
    AND CASE
        WHEN $by_custom_id THEN custom_id IN (SELECT unnest($custom_ids::VARCHAR[]))
        ELSE (task, item, "repeat") IN (
            SELECT (place.task, place.item, place."repeat")
            FROM (SELECT unnest($places::STRUCT(task VARCHAR, item INTEGER, "repeat" INTEGER)[]) AS place)
        )
    END
