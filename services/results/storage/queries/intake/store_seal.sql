INSERT INTO seals VALUES (
    $job_id, $attempt, $sealed_at, $missing, $infrastructure_errors, $complete,
    $suite, $mode, $item_set, $subset, $configuration, $result, $not_ranked_reason, $caution, $rules
)
ON CONFLICT (job_id) DO UPDATE SET
    attempt = excluded.attempt,
    sealed_at = excluded.sealed_at,
    missing = excluded.missing,
    infrastructure_errors = excluded.infrastructure_errors,
    complete = excluded.complete,
    suite = excluded.suite,
    mode = excluded.mode,
    item_set = excluded.item_set,
    subset = excluded.subset,
    configuration = excluded.configuration,
    result = excluded.result,
    not_ranked_reason = excluded.not_ranked_reason,
    caution = excluded.caution,
    rules = excluded.rules
