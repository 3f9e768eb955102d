-- What people and judges outside say of some jobs' answers under a rubric; `place` is a job's place among them.
SELECT place, item, scores, rater, judge
FROM present_ratings
JOIN (SELECT unnest($jobs::VARCHAR[]) AS job_id, generate_subscripts($jobs::VARCHAR[], 1) - 1 AS place) USING (job_id)
-- A list of constants reaches the view before it looks for each rater's newest ratings; a join does not.
WHERE list_contains($jobs::VARCHAR[], job_id) AND rubric = $rubric AND repeat = 0 AND item BETWEEN $first AND $last
