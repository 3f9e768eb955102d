-- Pairs that a judge could be read of in both orders: the pair, and what its preference counts for the answer that stands
-- first, by criterion, with the judged answer first (one) and with the other one (other). Odd numbers have the judged
-- answer first. What a word counts is that of `rubrics.comparing`.
WITH said AS (
    SELECT
        "group" AS place,
        coalesce(try_cast(substr(custom_id, length("group") + 2) AS INTEGER), 1) AS number,
        list_transform(
            json_extract_string(prediction, $paths::VARCHAR[]),
            lambda word: (CASE word WHEN 'first' THEN 1 WHEN 'tie' THEN 0.5 ELSE 0 END)::DOUBLE
        ) AS preferred
    FROM items
    WHERE job_id = $job_id AND outcome = OUTCOME_ANSWERED AND "group" <> ''
)
SELECT one.place{columns}
FROM said AS one
JOIN said AS other ON one.place = other.place AND other.number = one.number + 1
WHERE one.number % 2 = 1
ORDER BY one.place, one.number
