-- What a job's answers took. Answers from the store cost nothing here. Items were asked if they failed, too.
SELECT
    count(*) FILTER (outcome <> OUTCOME_INFRASTRUCTURE_ERROR OR calls > 0) AS asked,
    count(*) FILTER (outcome <> OUTCOME_INFRASTRUCTURE_ERROR) AS answered,
    count(input_tokens) AS counted,
    coalesce(sum(input_tokens), 0)::BIGINT + coalesce(sum(output_tokens), 0)::BIGINT AS tokens,
    count(known_usd(cost_usd)) FILTER (NOT reused) AS priced,
    coalesce(fsum(known_usd(cost_usd)) FILTER (NOT reused), 0) AS cost_usd
FROM items
WHERE job_id = $job_id
