-- What jobs have measured, as far as their present attempt is sealed.
SELECT s.job_id, s.result
FROM seals s
JOIN jobs j ON j.job_id = s.job_id AND s.attempt >= j.attempt
WHERE s.job_id IN (SELECT unnest($job_ids::VARCHAR[])) AND j.job_id IN (SELECT unnest($job_ids::VARCHAR[]))
