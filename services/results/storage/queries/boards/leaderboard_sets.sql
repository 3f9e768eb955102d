-- Item sets that some configuration has a run on: those with a complete and valid one first, then whole runs, then those
-- of a suite that were read by the usual layers, then the set with the most items, so that a trial on a few does not take the board over, then the one with the newest run.
WITH runs AS ({runs})
SELECT
    item_set,
    any_value(i.items),
    any_value(i.published_items),
    bool_or(r.subset),
    count(*) FILTER (newest = 1 AND not_ranked_reason = '' AND NOT baseline) AS models,
    count(*) FILTER (newest = 1 AND not_ranked_reason = '' AND baseline) AS floors,
    any_value(i.tasks),
    any_value(i.scoring),
    any_value(i.weighting),
    max(sealed_at) AS newest_at
FROM runs r
LEFT JOIN item_sets i USING (suite, item_set)
WHERE metric = 'score' AND newest <= 1 AND ($endpoint = '' OR endpoint = $endpoint)
GROUP BY item_set
ORDER BY bool_or(newest = 1) DESC, bool_or(r.subset), coalesce(any_value(i.scoring), '') <> '', max(n) DESC NULLS LAST, newest_at DESC, item_set
