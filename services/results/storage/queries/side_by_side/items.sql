-- One job's items, to be matched with other jobs'. An unscored answer is neither right nor wrong.
SELECT
    rowid AS place,
    task,
    item,
    repeat,
    {key},
    "group" AS passage,
    outcome <> OUTCOME_INFRASTRUCTURE_ERROR AS final,
    coalesce(outcome = OUTCOME_ANSWERED AND correct >= 0.5, false) AS is_right,
    outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND correct IS NOT NULL AND NOT (outcome = OUTCOME_ANSWERED AND correct >= 0.5) AS is_wrong,
    {score} AS score,
    latency_ms,
    input_tokens,
    output_tokens,
    known_usd(cost_usd) AS cost_usd,
    prediction,
    {response} AS response,
    {condition} AS fits
FROM items
WHERE job_id = ${job} AND ($task = '' OR task = $task)
