-- Items, with the score of their most frequent prediction; of tied ones the mean. An answer that could not be read has
-- no vote; in the bounds all of an item's are the same wrong, or the same right prediction.
SELECT
    task,
    cluster,
    coalesce(won, 0) AS score,
    CASE WHEN silent = 0 THEN coalesce(won, 0) ELSE (coalesce(most_right, 0) > coalesce(most_wrong, 0) + silent)::DOUBLE END
        AS low,
    CASE WHEN silent = 0 THEN coalesce(won, 0) ELSE (coalesce(most_right, 0) + silent >= coalesce(most_wrong, 0))::DOUBLE END
        AS high,
    won AS told
FROM (SELECT task, item, cluster, count(*) FILTER (NOT answered) AS silent FROM answers GROUP BY task, item, cluster)
LEFT JOIN (
    SELECT
        task,
        item,
        avg(is_right) FILTER (votes = most) AS won,
        max(votes) FILTER (is_right >= 0.5) AS most_right,
        max(votes) FILTER (is_right < 0.5) AS most_wrong
    FROM (
        SELECT *, max(votes) OVER (PARTITION BY task, item) AS most
        FROM (
            SELECT task, item, prediction, count(*) AS votes, avg((score >= 1)::DOUBLE) AS is_right
            FROM answers
            WHERE answered
            GROUP BY task, item, prediction
        )
    )
    GROUP BY task, item
) USING (task, item)
