-- Finished jobs of which the archive has less than is known now, the newest first.
WITH
{finished}
SELECT job_id, finished.signature
FROM finished
LEFT JOIN archived_jobs AS a USING (job_id)
WHERE
    (a.signature IS DISTINCT FROM finished.signature OR a.place IS DISTINCT FROM $place)
    AND NOT list_contains($refused::VARCHAR[], job_id)
ORDER BY ended_at DESC, job_id DESC
LIMIT $most
