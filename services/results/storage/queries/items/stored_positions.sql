-- Positions with a final outcome, by task. With several repeats a position counts when each stored repeat is final.
SELECT task, list(position ORDER BY position)
FROM (
    SELECT task, position
    FROM items
    WHERE job_id = $job_id
    GROUP BY task, position
    HAVING bool_and(outcome <> OUTCOME_INFRASTRUCTURE_ERROR)
)
GROUP BY task
ORDER BY task
