-- Groups of items, with whether every item has the statistic; with several answers per item, the share of the repeats.
SELECT task, min(cluster) AS cluster, avg(score) AS score, avg(low) AS low, avg(high) AS high, avg(told) AS told
FROM (
    SELECT
        task,
        part,
        min(cluster) AS cluster,
        bool_and(score >= 1)::DOUBLE AS score,
        bool_and(answered AND score >= 1)::DOUBLE AS low,
        bool_and(NOT answered OR score >= 1)::DOUBLE AS high,
        CASE WHEN bool_and(answered) THEN bool_and(score >= 1)::DOUBLE END AS told
    FROM answers
    WHERE part IS NOT NULL
    GROUP BY task, part, repeat
)
GROUP BY task, part
