-- Units added up: by cluster for tasks that need it, else in one row. `told_n` and `told` are of those with an answer.
SELECT
    task,
    CASE WHEN list_contains($by_cluster, task) THEN cluster END AS cluster,
    count(*) AS n,
    sum(score) AS total,
    sum(low) AS low,
    sum(high) AS high,
    count(told) AS told_n,
    coalesce(sum(told), 0) AS told,
    min(score) AS least,
    max(score) AS most,
    var_samp(score) AS variance,
    bool_and(score IN (0, 1)) AS is_binary
FROM units
GROUP BY ALL
ORDER BY ALL
