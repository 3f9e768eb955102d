-- Rows of one page: those chosen by a filter, numbered in order, with the preference of one judge, beside the figures of
-- all rows. One row without a number when the page is empty.
WITH seen AS MATERIALIZED (
    SELECT matched.*, {first} AS first_job, choice, preferred, blind, author, judged_at, {value} AS value
    FROM matched
    LEFT JOIN (FROM present_preferences WHERE jobs = $jobs AND author = $judge) AS mine ON all_final AND {same_row}
    {values}
    WHERE fits
),
figures AS (
    SELECT
        count(*) AS count_all,
        count(*) FILTER (all_final) AS count_final,
        count(*) FILTER (agree) AS count_agree,
        count(*) FILTER ({all_right}) AS count_all_right,
        count(*) FILTER ({all_wrong}) AS count_all_wrong,
        count(*) FILTER ({judged}) AS count_judged,
        count(*) FILTER ({not_judged}) AS count_not_judged,
        count(*) FILTER ({chosen}) AS count_chosen,
        {figures}
    FROM seen
),
numbered AS (
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
