-- Median and 95th percentile, in milliseconds, over the answers that were called for in this job.
SELECT
    quantile_cont(latency_ms, 0.5),
    quantile_cont(latency_ms, 0.95),
    quantile_cont(ttft_ms, 0.5) FILTER (ttft_ms > 0),
    quantile_cont(ttft_ms, 0.95) FILTER (ttft_ms > 0)
FROM items
WHERE job_id = $job_id AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND NOT reused
