-- One page of a job's items by key, after the key of the page before (NULL on the first page).
SELECT {columns}
FROM items
WHERE job_id = $job_id
  AND ($task = '' OR task = $task)
  AND CASE $choice
        WHEN 'failures' THEN outcome BETWEEN 2 AND 5 OR (outcome = 1 AND correct < 0.5)
        WHEN 'unparsed' THEN outcome IN (2, 3, 5)
        WHEN 'errors' THEN outcome = 6
        WHEN 'correct' THEN outcome = 1 AND correct >= 0.5
        ELSE true
      END
  AND ($text = ''
       OR contains(lower(prompt), lower($text))
       OR contains(lower(response), lower($text))
       OR contains(lower(prediction), lower($text))
       OR contains(lower(reference), lower($text)))
  AND ($after_item::INTEGER IS NULL
       OR (task, item, repeat) > ($after_task::VARCHAR, $after_item::INTEGER, $after_repeat::INTEGER))
ORDER BY task, item, repeat
LIMIT $size
