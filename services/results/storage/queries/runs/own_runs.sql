-- Of each configuration the newest complete run that counts, of one user or all and of one project or all, with how many
-- there are.
SELECT r.*, newest.runs
FROM run_scores r
JOIN (
    SELECT arg_max(rowid, (completed_at, rowid)) AS number, count(*) AS runs
    FROM run_scores
    WHERE metric = 'score'
        AND complete
        AND counts
        AND ($visible_owner = '' OR owner = $visible_owner)
        AND ($project_id = 0 OR project_id = $project_id)
        -- Few of a user's configurations have a name: the runs of the others are not grouped.
        AND (NOT $named
             OR configuration IN (SELECT configuration FROM configuration_names WHERE name <> '' OR alias <> ''))
    GROUP BY configuration
) newest ON r.rowid = number
