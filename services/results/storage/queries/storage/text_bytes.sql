-- Bytes of the texts of some jobs' answers. A continuation's numbers are counted with its text.
SELECT
    job_id,
    sum(
        strlen(prompt) + strlen(messages) + strlen(response) + strlen(reasoning)
        + coalesce(strlen(tool_calls), 0) + coalesce(strlen(logprobs), 0)
        + coalesce(list_sum(list_transform(continuations, lambda c: strlen(c."text") + 16)), 0)
    )::BIGINT
FROM items
WHERE job_id IN (SELECT unnest($job_ids::VARCHAR[]))
GROUP BY job_id
