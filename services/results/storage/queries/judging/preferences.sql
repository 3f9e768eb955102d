-- What people prefer of two jobs' answers: the pair as it is called in rows that ask a judge, and 1 for the answer of
-- $job_id, -1 for the other one, 0 for a tie. That both are bad is no preference. A preference names its row by the place
-- in one of the jobs.
SELECT
    concat(i.task, '/', i.item, '/', i."repeat") AS place,
    CASE WHEN p.choice <> $better THEN 0 WHEN p.preferred = $job_id THEN 1 ELSE -1 END AS preferred
FROM present_preferences p
JOIN items i ON i.job_id = $job_id AND CASE
    WHEN p.custom_id <> '' THEN i.custom_id = p.custom_id
    ELSE i.task = p.task AND i.item = p.item AND i."repeat" = p."repeat"
END
WHERE p.jobs = $jobs AND p.choice IN ($better, $tie)
