"""The REST API: `/api/v1/benchmarking`, and `/admin` for datasets and the runs over them."""
