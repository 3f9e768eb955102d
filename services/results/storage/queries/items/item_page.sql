-- One page of the chosen items by key, after the key of the page before (NULL on the first page), each row with how many
-- items every choice would list. One row without an item when the page is empty.
, page AS (
    SELECT place, baseline_place, place_value, task, item, repeat
    FROM chosen
    WHERE $after_item::BIGINT IS NULL
       OR (place_value, task, item, repeat) > ($after_value::BIGINT, $after_task::VARCHAR, $after_item::BIGINT, $after_repeat::BIGINT)
    ORDER BY place_value, task, item, repeat
    LIMIT $size
),
counts AS (
    SELECT
        count(*) AS count_all,
        count(*) FILTER (is_failure),
        count(*) FILTER (outcome IN (OUTCOME_UNPARSED, OUTCOME_OUTPUT_TRUNCATED, OUTCOME_INPUT_TRUNCATED)),
        count(*) FILTER (outcome = OUTCOME_INFRASTRUCTURE_ERROR),
        count(*) FILTER (is_right),
        count(*) FILTER (differs),
        count(*) FILTER (gain = -1),
        count(*) FILTER (gain = 1),
        count(*) FILTER (outcome IN (OUTCOME_OUTPUT_TRUNCATED, OUTCOME_INPUT_TRUNCATED)),
        count(*) FILTER (outcome = OUTCOME_REFUSED),
        count(*) FILTER (outcome <> OUTCOME_INFRASTRUCTURE_ERROR)
    FROM judged
)
SELECT page.place, page.baseline_place, page.place_value, counts.*
FROM counts
LEFT JOIN page ON true
ORDER BY place_value, task, item, repeat
