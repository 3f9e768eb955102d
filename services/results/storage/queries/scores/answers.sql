-- Scored answers of some tasks, those with statistics, each with the statistic that a metric reads ('' for accuracy: answered and right), with
-- the part by which items are gathered, and with its cluster: the passage's first item, or the item itself.
WITH passages AS (
    SELECT task, "group", min(item) AS first_item
    FROM items
    WHERE job_id = $job_id AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND "group" <> '' AND list_contains($tasks, task)
    GROUP BY task, "group"
),
named AS (
    SELECT
        task,
        item,
        repeat,
        "group",
        outcome = OUTCOME_ANSWERED AS answered,
        prediction,
        CASE $statistic
            WHEN '' THEN (outcome = OUTCOME_ANSWERED AND coalesce(correct, 0) >= 0.5)::DOUBLE
            WHEN 'correct' THEN correct
            WHEN 'value' THEN value
            WHEN 'target' THEN target
            ELSE (other_statistics ->> $statistic_path)::DOUBLE
        END AS number,
        (other_statistics ->> $over_path)::DOUBLE AS part
    FROM items
    WHERE job_id = $job_id
      AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
      AND list_contains($tasks, task)
      AND (coalesce(correct, value, target) IS NOT NULL OR other_statistics IS NOT NULL)
),
answers AS (
    SELECT
        named.task,
        item,
        repeat,
        answered,
        prediction,
        CASE WHEN isfinite(number) THEN number ELSE 0 END AS score,
        part,
        coalesce(first_item, item) AS cluster
    FROM named
    LEFT JOIN passages ON named."group" <> '' AND passages.task = named.task AND passages."group" = named."group"
)
