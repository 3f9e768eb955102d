-- Pairs that a judge could be read of in both orders: the pair, and what it prefers of the answers as they stand, by
-- criterion, with the judged answer first and with the other one. Odd numbers have the judged answer first.
WITH said AS (
    SELECT
        "group" AS place,
        coalesce(try_cast(substr(custom_id, length("group") + 2) AS INTEGER), 1) AS number,
        json_extract_string(prediction, $paths::VARCHAR[]) AS preferred
    FROM items
    WHERE job_id = $job_id AND outcome = OUTCOME_ANSWERED AND "group" <> ''
)
SELECT one.place, one.preferred, other.preferred
FROM said AS one
JOIN said AS other ON one.place = other.place AND other.number = one.number + 1
WHERE one.number % 2 = 1
ORDER BY one.place, one.number
