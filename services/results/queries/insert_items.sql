-- Items that were never stored; an item that was fails the whole statement. An identity that is none is kept as NULL.
INSERT INTO items
SELECT * REPLACE (try_cast(identity AS UUID) AS identity) FROM batch
