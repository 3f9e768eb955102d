-- The answers in matched rows that all jobs have with a final outcome, under the name of the table that they come from:
-- whatever this connection reads of `items` from here on, until that is dropped, is of those alone.
CREATE TEMP TABLE items AS
-- By job first: by their numbers alone the scan would not skip other jobs' rows.
WITH mine AS MATERIALIZED (
    SELECT
        rowid AS place, job_id, task, item, repeat, outcome, prediction, reference, "group", item_hash, correct, value,
        target, other_statistics, input_tokens, output_tokens, reasoning_tokens, reused, cost_usd
    FROM items
    JOIN (SELECT DISTINCT unnest($jobs::VARCHAR[]) AS job_id) USING (job_id)
)
SELECT mine.* EXCLUDE (place)
FROM mine
WHERE place IN (SELECT unnest([{places}]) FROM matched WHERE fits AND all_final)
