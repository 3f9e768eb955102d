-- A duplicate changes nothing. Only an infrastructure error (6) gives way: to a final outcome or to a later attempt.
INSERT INTO items
SELECT * FROM batch
ON CONFLICT (job_id, task, item, repeat) DO UPDATE SET
    attempt = excluded.attempt,
    unit = excluded.unit,
    position = excluded.position,
    outcome = excluded.outcome,
    prediction = excluded.prediction,
    reference = excluded.reference,
    "group" = excluded."group",
    custom_id = excluded.custom_id,
    item_hash = excluded.item_hash,
    prompt_hash = excluded.prompt_hash,
    prompt = excluded.prompt,
    response = excluded.response,
    reasoning = excluded.reasoning,
    scorer_version = excluded.scorer_version,
    correct = excluded.correct,
    value = excluded.value,
    target = excluded.target,
    other_statistics = excluded.other_statistics,
    latency_ms = excluded.latency_ms,
    input_tokens = excluded.input_tokens,
    output_tokens = excluded.output_tokens,
    finish_reason = excluded.finish_reason,
    calls = excluded.calls,
    error = excluded.error,
    extraction = excluded.extraction,
    served_model = excluded.served_model,
    evaluator = excluded.evaluator
WHERE items.outcome = 6 AND (excluded.outcome <> 6 OR excluded.attempt > items.attempt)
