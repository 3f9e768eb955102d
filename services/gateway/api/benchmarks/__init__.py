"""`/admin/benchmarks`: models over uploaded rows. Each is a job, and can be read as one, too."""

from __future__ import annotations

from services.gateway.api.benchmarks.again import CANCEL_BENCHMARK, RESCORE_BENCHMARK, RETRY_BENCHMARK
from services.gateway.api.benchmarks.estimates import ESTIMATE, PILOT
from services.gateway.api.benchmarks.listing import BENCHMARKS, SHOW_BENCHMARK
from services.gateway.api.benchmarks.rows import BENCHMARK_RESULTS
from services.gateway.api.benchmarks.run import RUN_BENCHMARK

ENDPOINTS = (
    RUN_BENCHMARK,
    BENCHMARKS,
    SHOW_BENCHMARK,
    BENCHMARK_RESULTS,
    RESCORE_BENCHMARK,
    CANCEL_BENCHMARK,
    RETRY_BENCHMARK,
    PILOT,
    ESTIMATE,
)
