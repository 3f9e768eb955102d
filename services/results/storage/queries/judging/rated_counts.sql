-- Answers of a job that a person has rated under a rubric, and those not.
SELECT count(r.number), count(*) - count(r.number)
FROM items i
LEFT JOIN (
    SELECT task, item, repeat, number
    FROM present_ratings
    WHERE job_id = $job_id AND rubric = $rubric AND rater = $rater
) r USING (task, item, repeat)
WHERE job_id = $job_id AND outcome <> $error
