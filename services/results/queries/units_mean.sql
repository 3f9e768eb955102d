-- Items, with the mean over their answers.
SELECT
    task,
    cluster,
    avg(score) AS score,
    avg(CASE WHEN answered THEN score ELSE 0 END) AS low,
    avg(CASE WHEN answered THEN score ELSE 1 END) AS high
FROM answers
GROUP BY task, item, cluster
