-- Items, with the mean over their answers; `told` is that over those that could be read, NULL without any.
SELECT
    task,
    cluster,
    avg(score) AS score,
    avg(CASE WHEN answered THEN score ELSE 0 END) AS low,
    avg(CASE WHEN answered THEN score ELSE 1 END) AS high,
    avg(score) FILTER (answered) AS told
FROM answers
GROUP BY task, item, cluster
