-- Rows of stored answers with these identities, of each the newest: rows of a later batch have higher numbers. Reads two
-- narrow columns and no text. With its text an answer loses its identity; those of an invalidated run (2) are no answers.
SELECT max(rowid) AS newest, false AS dropped
FROM items
WHERE identity IN (SELECT unnest($identities::UUID[]))
  AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
  AND job_id NOT IN (SELECT job_id FROM uncounted_runs WHERE mark = RUN_MARK_INVALIDATED)
  AND ($visible_owner = '' OR job_id IN (SELECT job_id FROM jobs WHERE owner = $visible_owner))
GROUP BY identity
ORDER BY newest
