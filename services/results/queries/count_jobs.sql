SELECT count(*)
FROM jobs
WHERE ($model = '' OR model = $model)
  AND ($suite = '' OR suite = $suite)
  AND ($owner = '' OR owner = $owner)
  AND ($project_id = 0 OR project_id = $project_id)
  AND (len($states::UTINYINT[]) = 0 OR list_contains($states::UTINYINT[], state))
  AND ($created_after::TIMESTAMP IS NULL OR created_at >= $created_after::TIMESTAMP)
