"""`python -m tests.chart_schema` writes the names of settings into deploy/chart/values.schema.json, so that Helm
refuses a misspelt one."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.chart.rendered import CHART, environ, processes, render, values_files
from tests.chart.settings import READERS, service_of, variables_of

SCHEMA = CHART / "values.schema.json"
SECRETS = {
    "TOUCHSTONE_AIRFLOW_PASSWORD",
    "TOUCHSTONE_AIRFLOW_TOKEN",
    "TOUCHSTONE_MLFLOW_TOKEN",
    "TOUCHSTONE_MLFLOW_URL",
    "TOUCHSTONE_OIDC_CLIENT_SECRET",
}
"""Come from secrets alone. The URL may have a password."""
FURTHER = {"gateway": ["FORWARDED_ALLOW_IPS"], "all": ["OTEL_RESOURCE_ATTRIBUTES"]}
"""Variables that libraries of the services read, and the documentation names."""
_MOUNTED = re.compile(r"_TLS_|_(CA|FILE|DIR)$")
"""Name files and folders, which a pod has only where the chart mounts them."""


def settable() -> dict[str, list[str]]:
    """By service, and `all` for what every service reads: the variables that the chart does not set itself."""
    names = {service: set(variables_of(service)) for service in READERS}
    for values in values_files().values():
        for one in processes(render(values)):
            if service_of(one) in names:
                names[service_of(one)] -= environ(one).keys()
    for service in names:
        names[service] -= {one for one in names[service] if _MOUNTED.search(one)}
    every = set.intersection(*names.values())
    found = {"all": sorted(every), **{service: sorted(own - every) for service, own in names.items()}}
    return {service: own + FURTHER.get(service, []) for service, own in found.items()}


def written(schema: dict[str, Any]) -> str:
    """The schema with these names."""
    defined = schema["$defs"]
    for service, names in settable().items():
        defined[f"{service}Settings"]["propertyNames"]["enum"] = [one for one in names if one not in SECRETS]
        if service != "all":
            known = defined[f"{service}Secrets"]["items"]["properties"]["variable"]["anyOf"]
            known[0]["enum"] = names
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(written(json.loads(SCHEMA.read_text())))
