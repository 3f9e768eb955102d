-- Items by task and outcome, with what they used.
SELECT task, outcome, count(*), sum(input_tokens), sum(output_tokens)
FROM items
WHERE job_id = $job_id
GROUP BY task, outcome
