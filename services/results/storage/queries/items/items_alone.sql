-- Items without a baseline.
beside AS (
    SELECT
        *,
        NULL::BIGINT AS baseline_place,
        false AS both_final,
        false AS ungraded,
        false AS says_else,
        coalesce(outcome = OUTCOME_ANSWERED AND correct >= 0.5, false) AS is_right,
        false AS was_right
    FROM here
)
