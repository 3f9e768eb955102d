SELECT quantile_cont(latency_ms, 0.5), quantile_cont(latency_ms, 0.95)
FROM items
WHERE job_id = $job_id AND outcome <> 6
