SELECT count(*)
FROM jobs
WHERE
{where}
