-- One job's items among the matched rows that all jobs have with a final outcome: the mean over their answers, and their
-- cluster, as queries/answers.sql has it: the passage's first item, or the item itself.
SELECT
    task,
    CASE WHEN passage <> '' THEN min(item) OVER (PARTITION BY task, passage) ELSE item END AS cluster,
    score,
    score AS low,
    score AS high
FROM (
    SELECT task, item, any_value({passage}) AS passage, avg({score}) AS score
    FROM matched
    WHERE fits AND all_final AND {score} IS NOT NULL
    GROUP BY task, item
)
