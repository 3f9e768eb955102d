-- How many answers have each field that their scorer judges, and how many of them have it right. Its statistics begin
-- with “field:” ($prefix).
SELECT
    task,
    substr(each.key, length($prefix::VARCHAR) + 1) AS field,
    count(*) AS answers,
    fsum(each.value::DOUBLE) AS right_answers
FROM items, json_each(other_statistics) AS each
WHERE job_id = $job_id
  AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
  AND contains(other_statistics, $prefix::VARCHAR)
  AND starts_with(each.key, $prefix::VARCHAR)
GROUP BY task, field
ORDER BY answers DESC, task, field
LIMIT $most
