-- The figures of all rows, with the preference of one judge. To be continued with a SELECT.
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
)
