-- Some answers of a job, and calls that failed.
SELECT
    item,
    task,
    outcome,
    response,
    tool_calls,
    latency_ms / 1000,
    coalesce(input_tokens, 0),
    coalesce(output_tokens, 0)
FROM items
JOIN (SELECT unnest($items::INTEGER[]) AS item) USING (item)
WHERE job_id = $job_id AND repeat = 0
