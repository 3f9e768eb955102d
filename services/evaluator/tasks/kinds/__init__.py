"""The kinds of task that suites are made of: loading, rendering, few-shot examples and scoring."""
