-- Rows of stored answers with these identities, of each the newest: rows of a later batch have higher numbers. Reads two
-- narrow columns and no text.
SELECT max(rowid) AS newest
FROM items
WHERE identity IN (SELECT unnest($identities::UUID[]))
  AND outcome <> 6
GROUP BY identity
ORDER BY newest
