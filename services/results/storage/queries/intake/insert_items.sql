-- Items that were never stored; an item that was fails the whole statement. An identity that is none is kept as NULL,
-- metadata and messages that are no JSON as ''.
INSERT INTO items
SELECT * REPLACE (
    try_cast(identity AS UUID) AS identity,
    CASE WHEN try(json_type(metadata)) = 'OBJECT' THEN metadata ELSE '' END AS metadata,
    CASE WHEN json_valid(messages) THEN messages ELSE '' END AS messages
) FROM batch
