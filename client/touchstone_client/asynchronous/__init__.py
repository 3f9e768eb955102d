"""The methods of `AsyncClient`, which are awaited. `make blocking` makes those of `Client` from them."""

from touchstone_client.asynchronous.datasets import Datasets
from touchstone_client.asynchronous.results import Results

__all__ = ["Datasets", "Results"]
