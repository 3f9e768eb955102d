-- Of answers with these identities that are in the archive alone, the jobs that have the newest. What the database has an
-- answer to is not looked for, and neither are answers of an invalidated run.
WITH asked AS (
    SELECT identity, job_id
    FROM archived_identities
    WHERE identity IN (SELECT unnest($identities::UUID[]))
)
SELECT DISTINCT arg_max(job_id, (created_at, job_id)) AS job_id
FROM asked
JOIN jobs USING (job_id)
WHERE
    ($visible_owner = '' OR owner = $visible_owner)
    AND job_id NOT IN (SELECT job_id FROM uncounted_runs WHERE mark = RUN_MARK_INVALIDATED)
    AND identity NOT IN (
        SELECT identity
        FROM items
        WHERE identity IN (SELECT identity FROM asked) AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
    )
GROUP BY identity
ORDER BY job_id
