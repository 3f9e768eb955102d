-- Items, with whether any answer has the statistic.
SELECT
    task,
    cluster,
    bool_or(score >= 1)::DOUBLE AS score,
    bool_or(answered AND score >= 1)::DOUBLE AS low,
    bool_or(NOT answered OR score >= 1)::DOUBLE AS high,
    (bool_or(score >= 1) FILTER (answered))::DOUBLE AS told
FROM answers
GROUP BY task, item, cluster
