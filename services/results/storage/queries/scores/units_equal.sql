-- Groups of items, with whether all predictions are equal and none is missing; with several answers per item, the share
-- of the repeats. A group of one item, as a sample may leave it, has nothing to be equal to.
SELECT task, min(cluster) AS cluster, avg(score) AS score, avg(score) AS low, avg(high) AS high, avg(told) AS told
FROM (
    SELECT
        task,
        part,
        min(cluster) AS cluster,
        (bool_and(answered) AND count(DISTINCT prediction) = 1)::DOUBLE AS score,
        (count(DISTINCT prediction) FILTER (answered) <= 1)::DOUBLE AS high,
        CASE WHEN bool_and(answered) THEN (count(DISTINCT prediction) = 1)::DOUBLE END AS told
    FROM answers
    WHERE part IS NOT NULL
    GROUP BY task, part, repeat
    HAVING count(*) > 1
)
GROUP BY task, part
