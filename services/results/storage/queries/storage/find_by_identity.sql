-- Rows of stored answers with these identities, of each the newest: that of the job that was created last, as rows may come
-- back from the archive. Reads two narrow columns and no text. With its text an answer loses its identity; those of an
-- invalidated run (2) are no answers.
SELECT arg_max(i.rowid, (coalesce(j.created_at, TIMESTAMP 'infinity'), i.rowid)) AS newest, false AS dropped
FROM items AS i
LEFT JOIN jobs AS j USING (job_id)
WHERE i.identity IN (SELECT unnest($identities::UUID[]))
  AND i.outcome <> OUTCOME_INFRASTRUCTURE_ERROR
  AND i.job_id NOT IN (SELECT job_id FROM uncounted_runs WHERE mark = RUN_MARK_INVALIDATED)
  AND ($visible_owner = '' OR j.owner = $visible_owner)
GROUP BY i.identity
ORDER BY newest
