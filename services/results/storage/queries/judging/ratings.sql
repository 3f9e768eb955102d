-- Ratings of a job's answers that apply, after one of them, by answer, rubric, rater and judge outside.
SELECT task, item, repeat, rubric, rater, judge, scores, note, rated_at
FROM present_ratings
WHERE job_id = $job_id
    AND ($rubric = '' OR rubric = $rubric)
    AND ($rater = '' OR rater = $rater)
    AND (task, item, repeat, rubric, rater, judge)
        > ($task, $item::INTEGER, $repeat::INTEGER, $after_rubric, $after_rater, $after_judge)
ORDER BY task, item, repeat, rubric, rater, judge
LIMIT $most
