-- Names of the metadata fields of the chosen items, as they first appear.
SELECT name
FROM (
    SELECT task, item, repeat, unnest(names) AS name, generate_subscripts(names, 1) AS number
    FROM (
        SELECT chosen.task, chosen.item, chosen.repeat, json_keys(nullif(metadata, '')) AS names
        FROM chosen
        JOIN (SELECT rowid AS place, metadata FROM items WHERE job_id = $job_id) USING (place)
    )
)
GROUP BY name
ORDER BY min((task, item, repeat, number))
LIMIT $most
