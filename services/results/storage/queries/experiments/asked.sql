-- What became of the rows of some jobs; `place` is a job's place among them. Repeats of a cell are rows of their own.
SELECT
    place,
    item,
    outcome,
    attempt,
    latency_ms / 1000 AS latency_s,
    coalesce(output_tokens, 0) AS output_tokens,
    reused,
    known_usd(cost_usd) AS cost_usd
FROM items
JOIN (SELECT unnest($jobs::VARCHAR[]) AS job_id, generate_subscripts($jobs::VARCHAR[], 1) - 1 AS place) USING (job_id)
WHERE repeat = 0 AND item BETWEEN $first AND $last
