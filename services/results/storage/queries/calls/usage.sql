SELECT
    owner,
    endpoint,
    model,
    count(*),
    count(*) FILTER (outcome = $answered),
    coalesce(sum(input_tokens), 0)::BIGINT,
    coalesce(sum(output_tokens), 0)::BIGINT,
    coalesce(sum(cost_usd), 0.0),
    count(*) FILTER (cost_usd IS NULL AND outcome <> $refused),
    max(started_at)
FROM calls
WHERE ($owner = '' OR owner = $owner)
    AND ($started_after IS NULL OR started_at >= $started_after)
    AND ($visible_owner = '' OR owner = $visible_owner)
GROUP BY ALL
ORDER BY sum(cost_usd) DESC NULLS LAST, count(*) DESC, owner, endpoint, model
LIMIT 500
