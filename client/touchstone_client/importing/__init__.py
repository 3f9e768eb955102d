"""Sample logs of other tools, read as they lie: lm_eval's `--log_samples` files and Inspect's `.eval` and JSON logs;
and files of answers whose tool is not told.

Neither tool is needed. Files are read piece by piece, so that a large log costs no memory; what is wrong with one is
said with its name and line.
"""
