-- Sealed runs with the names of their configurations.
SELECT j.job, s.result, coalesce(j.finished_at, s.sealed_at), coalesce(c.name, '')
FROM seals s
JOIN jobs j USING (job_id)
LEFT JOIN configuration_names c USING (configuration)
WHERE s.job_id IN (SELECT unnest($job_ids::VARCHAR[]))
ORDER BY s.job_id
