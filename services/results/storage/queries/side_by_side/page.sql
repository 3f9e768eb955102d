-- One page of the rows chosen by a filter, after the key of the page before (NULL on the first page), beside the figures
-- of all rows. One row without a key when the page is empty.
WITH figures AS (
    SELECT
        count(*) AS count_all,
        count(*) FILTER (all_final) AS count_final,
        count(*) FILTER (agree) AS count_agree,
        count(*) FILTER ({all_right}) AS count_all_right,
        count(*) FILTER ({all_wrong}) AS count_all_wrong,
        count(*) FILTER ({chosen}) AS count_chosen,
        {figures}
    FROM matched
    WHERE fits
),
page AS (
    SELECT task, item, repeat, name, agree, {places}
    FROM matched
    WHERE fits
      AND {chosen}
      AND ($after_item::BIGINT IS NULL
           OR (task, item, repeat, name)
               > ($after_task::VARCHAR, $after_item::BIGINT, $after_repeat::BIGINT, $after_name::VARCHAR))
    ORDER BY task, item, repeat, name
    LIMIT $size
)
SELECT page.*, figures.*
FROM figures
LEFT JOIN page ON true
ORDER BY task, item, repeat, name
