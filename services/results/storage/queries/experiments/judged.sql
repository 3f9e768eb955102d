-- Judgements of some judges' jobs, {shares} being their scores, some of which are `told` as {form} says; `place` is a
-- judge's job's place among them. The name of a row is "task/item/repeat" of the answer, with "#" and a number where the
-- answer is judged several times.
SELECT
    place,
    split_part(custom_id, '/', -2)::INTEGER AS item,
    outcome = OUTCOME_ANSWERED AS valid,
    {shares}
FROM (SELECT *, from_json(other_statistics, {form}) AS told FROM items)
JOIN (SELECT unnest($jobs::VARCHAR[]) AS job_id, generate_subscripts($jobs::VARCHAR[], 1) - 1 AS place) USING (job_id)
WHERE split_part(split_part(custom_id, '/', -1), '#', 1) = '0'
    AND split_part(custom_id, '/', -2)::INTEGER BETWEEN $first AND $last
