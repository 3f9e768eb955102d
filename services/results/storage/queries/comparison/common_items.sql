-- The items that compared runs have in common. A cohort is a set of runs that compare with each other on a task; an item is
-- common when each of them has every answer to it, scored. Items are the same by their row where all read one revision of
-- the data, else by what is in them; equal rows are told apart by their order. All take the number of the cohort's first
-- run.
CREATE TEMP TABLE common_items AS
WITH members AS (
    SELECT
        unnest($tasks::VARCHAR[]) AS task,
        unnest($jobs::VARCHAR[]) AS job_id,
        unnest($places::INTEGER[]) AS place,
        unnest($cohorts::INTEGER[]) AS cohort,
        unnest($answers::INTEGER[]) AS answers,
        unnest($by_row::BOOLEAN[]) AS by_row
),
-- By job first: on two columns at once the scan would not skip other jobs' rows.
mine AS MATERIALIZED (
    SELECT
        job_id, task, item, repeat, outcome, prediction, reference, "group", item_hash, correct, value, target,
        other_statistics, input_tokens, output_tokens, reasoning_tokens, reused, cost_usd
    FROM items
    JOIN (SELECT DISTINCT unnest($jobs::VARCHAR[]) AS job_id) USING (job_id)
    WHERE outcome <> OUTCOME_INFRASTRUCTURE_ERROR
),
known AS (
    SELECT
        mine.*,
        place,
        cohort,
        answers,
        CASE
            WHEN by_row OR item_hash = '' THEN item::VARCHAR
            ELSE item_hash || '/' || dense_rank() OVER (PARTITION BY job_id, task, item_hash ORDER BY item)
        END AS content
    FROM mine
    JOIN members USING (task, job_id)
),
common AS (
    SELECT task, cohort, content, arg_min(item, place) AS first_item
    FROM known
    GROUP BY task, cohort, content
    HAVING count(*) = any_value(answers)
)
SELECT known.* EXCLUDE (place, cohort, answers, content) REPLACE (first_item AS item)
FROM known
JOIN common USING (task, cohort, content)
