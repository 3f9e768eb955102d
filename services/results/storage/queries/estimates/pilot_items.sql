-- What items with a final outcome took, an answer on average, and the characters of their messages: of the prompt without
-- the role before it where there is one message, 0 where the text is gone.
SELECT
    task,
    item,
    CASE WHEN count(input_tokens) = count(*) THEN avg(input_tokens) END AS input_tokens,
    CASE WHEN count(output_tokens) = count(*) THEN avg(output_tokens) END AS output_tokens,
    CASE WHEN count(known_usd(cost_usd)) = count(*) THEN avg(known_usd(cost_usd)) END AS cost_usd,
    avg(latency_ms) / 1000 AS seconds,
    avg(calls) AS calls,
    CASE
        WHEN NOT $with_characters THEN 0
        WHEN any_value(messages) <> ''
            THEN list_sum(list_transform(json_extract_string(any_value(messages), '$[*].content'), lambda t: length(t)))
        ELSE length(any_value(prompt)) - strpos(any_value(prompt), chr(10))
    END::DOUBLE AS characters
FROM items
WHERE job_id = $job_id AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR
GROUP BY task, item
ORDER BY task, item
