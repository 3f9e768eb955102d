-- What each answer of some runs scores, by the numbers of runs and tasks. NULL without a score, and where a run took the
-- answer from another one instead of asking. Items that share a passage have the number of its first item as `cluster`.
SELECT
    run,
    place AS task,
    item,
    repeat,
    CASE WHEN "group" <> '' THEN min(item) OVER (PARTITION BY place, "group") ELSE item END AS cluster,
    CASE WHEN NOT (takes AND reused) THEN {score} END AS score
FROM items
JOIN (
    SELECT unnest($jobs::VARCHAR[]) AS job_id, unnest($runs::INTEGER[]) AS run, unnest($takes::BOOLEAN[]) AS takes
) USING (job_id)
JOIN (SELECT unnest($tasks::VARCHAR[]) AS task, unnest($places::INTEGER[]) AS place) USING (task)
