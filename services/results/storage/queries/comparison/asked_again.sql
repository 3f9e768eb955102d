-- What each answer of some runs scores, by the numbers of runs and tasks. NULL without a score, and where a run took the
-- answer from another one instead of asking.
SELECT run, place AS task, item, repeat, CASE WHEN NOT (takes AND reused) THEN {score} END AS score
FROM items
JOIN (
    SELECT unnest($jobs::VARCHAR[]) AS job_id, unnest($runs::INTEGER[]) AS run, unnest($takes::BOOLEAN[]) AS takes
) USING (job_id)
JOIN (SELECT unnest($tasks::VARCHAR[]) AS task, unnest($places::INTEGER[]) AS place) USING (task)
