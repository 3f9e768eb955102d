"""Splits from the Hugging Face Hub, through `datasets` and its cache."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa

PROBE_S = 8.0
"""Longest wait for the Hub's first answer. `datasets` itself retries for 23 s before it gives up."""


class HubError(Exception):
    """The Hub does not give the split; the message is a clause that says why."""


def load(dataset: str, config: str, split: str, revision: str, probe_s: float = PROBE_S) -> tuple[pa.Table, str]:
    """The split and the commit that it was read at: `revision`, or the current one if that is empty.

    Blocking; the Hub must answer first within `probe_s` seconds. Raises HubError.
    """
    # Imported here: 2.5 s that an installation with a mirror, or with demo data alone, need not spend.
    import datasets
    from huggingface_hub.constants import is_offline_mode

    datasets.disable_progress_bars()
    wanted = revision if is_offline_mode() else _probe(dataset, revision, probe_s)
    try:
        found = datasets.load_dataset(dataset, config or None, split=split, revision=wanted or None)
    except Exception as error:  # `datasets` raises what its file systems and parsers raise
        raise HubError(f"the Hugging Face Hub did not provide it ({_first_line(error)})") from error
    # `datasets` names its cache folder by commit; offline it takes the newest one, whatever revision was asked for.
    commit = Path(found.cache_files[0]["filename"]).parent.name
    if wanted and commit != wanted:
        raise HubError(f"the local cache holds revision {commit}, not {wanted}")
    return found.data.table, commit


def _probe(dataset: str, revision: str, probe_s: float) -> str:
    """The commit that the Hub has for the revision, a branch's newest; asked in a thread, because a name lookup has no
    time limit."""
    from huggingface_hub import HfApi

    outcome: list[Exception | str] = []

    def ask() -> None:
        try:
            info = HfApi().dataset_info(dataset, revision=revision or None, timeout=probe_s)
            outcome.append(info.sha or revision)
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=ask, name="hub-probe", daemon=True)
    thread.start()
    thread.join(probe_s)
    if not outcome:
        raise HubError(f"the Hugging Face Hub did not answer within {probe_s:g} s")
    if isinstance(found := outcome[0], Exception):
        raise HubError(f"the Hugging Face Hub did not provide it ({_first_line(found)})") from found
    return found


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
