-- What rows of jobs may be matched by, and whether answers can be compared by what was read from them.
SELECT
    job_id,
    min(custom_id) <> '' AND count(DISTINCT custom_id) = count(*) AS by_custom_id,
    bool_or(prediction = '' AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR) AS unread
FROM items
WHERE job_id IN (SELECT unnest($jobs::VARCHAR[]))
GROUP BY job_id
