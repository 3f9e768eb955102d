-- Items by task and outcome, with what they used. Answers taken from the store cost nothing here; `unpriced` counts
-- answers that were called and whose price is not known. `first_gain` is how many more would be right had the first
-- “answer: …” of each response counted and not the last; the statistic is stored only where that makes a difference.
-- `input_untold` and `output_untold` count answers whose provider does not tell such tokens.
-- `marked_would_read` and `lenient_would_read` count unparsed answers (2) that a layer would read which was not asked.
-- `scored` have statistics; rows without a reference have none, whatever became of them.
SELECT
    task,
    outcome,
    count(*) AS items,
    count(*) FILTER (outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND (coalesce(correct, value, target) IS NOT NULL OR other_statistics IS NOT NULL)) AS scored,
    count(*) FILTER (outcome = OUTCOME_INFRASTRUCTURE_ERROR AND reference = '') AS errors_without_reference,
    count(*) FILTER (outcome = OUTCOME_ANSWERED AND correct >= 0.5) AS correct,
    coalesce(sum(input_tokens), 0)::BIGINT AS input_tokens,
    coalesce(sum(output_tokens), 0)::BIGINT AS output_tokens,
    count(*) FILTER (outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND input_tokens IS NULL) AS input_untold,
    count(*) FILTER (outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND output_tokens IS NULL) AS output_untold,
    sum(reasoning_tokens)::BIGINT AS reasoning_tokens,
    count(*) FILTER (reused) AS reused,
    fsum(known_usd(cost_usd)) FILTER (NOT reused) AS cost_usd,
    count(*) FILTER (NOT reused AND known_usd(cost_usd) IS NULL AND outcome <> OUTCOME_INFRASTRUCTURE_ERROR) AS unpriced,
    bool_or("group" <> '') AS grouped,
    sum(json_extract(other_statistics, '$.correct_first')::DOUBLE - correct)
        FILTER (contains(other_statistics, 'correct_first')) AS first_gain,
    count(*) FILTER (outcome = OUTCOME_UNPARSED AND contains(other_statistics, 'would_read')
        AND json_extract(other_statistics, '$.would_read')::DOUBLE = 2) AS marked_would_read,
    count(*) FILTER (outcome = OUTCOME_UNPARSED AND contains(other_statistics, 'would_read')
        AND json_extract(other_statistics, '$.would_read') IS NOT NULL) AS lenient_would_read
FROM items
WHERE job_id = $job_id
GROUP BY task, outcome
