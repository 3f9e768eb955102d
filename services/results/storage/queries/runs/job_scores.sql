-- Averages of sealed jobs in the order shown.
SELECT job_id, attempt, not_ranked_reason, caution, {metric}
FROM run_scores
WHERE job_id IN (SELECT unnest($job_ids::VARCHAR[])) AND created_at BETWEEN $first AND $last
ORDER BY job_id, place
