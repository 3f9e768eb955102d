-- The chosen items in order, with the bytes of their texts.
SELECT
    place,
    (strlen(prompt) + strlen(response) + strlen(reasoning) + strlen(prediction) + strlen(error) + strlen(metadata)
     + strlen(messages)
     + coalesce(list_sum(list_transform(continuations, lambda c: strlen(c."text") + 64)), 0)) ::BIGINT AS bytes
FROM chosen
JOIN (SELECT rowid AS number, * FROM items WHERE job_id = $job_id) i ON i.number = place
ORDER BY chosen.task, chosen.item, chosen.repeat
