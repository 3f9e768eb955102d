SELECT call
FROM calls
WHERE ($owner = '' OR owner = $owner)
    AND ($endpoint = '' OR endpoint = $endpoint)
    AND ($model = '' OR model = $model)
    AND ($started_after IS NULL OR started_at >= $started_after)
    AND ($visible_owner = '' OR owner = $visible_owner)
    AND ($after_at IS NULL OR (started_at, call_id) < ($after_at, $after_id))
ORDER BY started_at DESC, call_id DESC
LIMIT $size
