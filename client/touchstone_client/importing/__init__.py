"""Sample logs of other tools, read as they are: lm_eval's `--log_samples` files and Inspect's `.eval` and JSON logs;
and files of answers from any tool.

Neither tool is needed. Files are read piece by piece, so that a large log needs little memory; errors give the file's
name and line.
"""
