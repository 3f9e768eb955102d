-- Finished jobs, as CTEs: when they ended, and the signature of what is known of them. It changes with the job, its result,
-- what people say of it and its configuration's name. Jobs that end or are spoken of just now come later.
said AS (
    SELECT job_id, count(*) AS entries, max(said_at) AS last_at
    FROM (
        SELECT job_id, marked_at AS said_at FROM marks
        UNION ALL
        SELECT job_id, annotated_at FROM annotations
        UNION ALL
        SELECT job_id, rated_at FROM ratings
        UNION ALL
        SELECT unnest(string_split(jobs, ',')), judged_at FROM preferences
    )
    GROUP BY job_id
),
finished AS (
    SELECT
        j.job_id,
        t.ended_at,
        concat_ws(';', j.event_id, s.sealed_at, s.rules, coalesce(said.entries, 0), n.named_at) AS signature
    FROM jobs AS j
    JOIN answer_texts AS t ON t.job_id = j.job_id
    LEFT JOIN seals AS s ON s.job_id = j.job_id
    LEFT JOIN said ON said.job_id = j.job_id
    LEFT JOIN configuration_names AS n ON n.configuration = s.configuration
    WHERE
        j.state IN (STATE_COMPLETED, STATE_FAILED, STATE_CANCELLED)
        AND greatest(t.ended_at, coalesce(said.last_at, t.ended_at), coalesce(n.named_at, t.ended_at)) <= $before
)
