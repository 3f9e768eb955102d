-- Rows of one page: those chosen by a filter, numbered in order, beside the figures of all rows. One row without a number
-- when the page is empty.
, numbered AS (
    SELECT *, row_number() OVER (ORDER BY {order} task, item, repeat, name) AS number
    FROM seen
    WHERE {chosen}
),
opened AS (
    SELECT coalesce(min(number), 1) AS number, (coalesce(min(number), 1) - 1) // $size * $size AS before_page
    FROM numbered
    WHERE first_job = $open_job AND task = $open_task AND item = $open_item AND repeat = $open_repeat
),
page AS (
    SELECT
        task, item, repeat, name, numbered.number, opened.number AS opened, opened.before_page, first_job, agree,
        choice, preferred, blind, author, judged_at, {places}
    FROM numbered
    CROSS JOIN opened
    WHERE {page}
    ORDER BY numbered.number
    LIMIT $most
)
SELECT page.*, figures.*
FROM figures
LEFT JOIN page ON true
ORDER BY number
