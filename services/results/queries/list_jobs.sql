-- One page of jobs, newest first, after the key of the page before (NULL on the first page).
SELECT job
FROM jobs
WHERE ($model = '' OR model = $model)
  AND ($suite = '' OR suite = $suite)
  AND ($owner = '' OR owner = $owner)
  AND ($project_id = 0 OR project_id = $project_id)
  AND (len($states::UTINYINT[]) = 0 OR list_contains($states::UTINYINT[], state))
  AND ($created_after::TIMESTAMP IS NULL OR created_at >= $created_after::TIMESTAMP)
  AND ($after_us::BIGINT IS NULL OR (epoch_us(created_at), job_id) < ($after_us::BIGINT, $after_job::VARCHAR))
ORDER BY created_at DESC, job_id DESC
LIMIT $size
