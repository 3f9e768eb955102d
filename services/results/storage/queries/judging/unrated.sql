-- Answers of a job after a place that a person has not rated under a rubric, in order.
SELECT task, item, repeat, custom_id, prompt, reference, response, tool_calls
FROM items
ANTI JOIN (
    SELECT task, item, repeat
    FROM present_ratings
    WHERE job_id = $job_id AND rubric = $rubric AND rater = $rater
) USING (task, item, repeat)
WHERE job_id = $job_id
    AND outcome <> $error
    AND (task, item, repeat) > ($task, $item::INTEGER, $repeat::INTEGER)
ORDER BY task, item, repeat
LIMIT $most
