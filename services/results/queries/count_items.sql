-- How many items each of the filter's choices would list, over the same task and text.
SELECT
    count(*),
    count(*) FILTER (outcome BETWEEN 2 AND 5 OR (outcome = 1 AND correct < 0.5)),
    count(*) FILTER (outcome IN (2, 3, 5)),
    count(*) FILTER (outcome = 6),
    count(*) FILTER (outcome = 1 AND correct >= 0.5)
FROM items
WHERE job_id = $job_id
  AND ($task = '' OR task = $task)
  AND ($text = ''
       OR contains(lower(prompt), lower($text))
       OR contains(lower(response), lower($text))
       OR contains(lower(prediction), lower($text))
       OR contains(lower(reference), lower($text)))
