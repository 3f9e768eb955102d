"""Webhooks from the command line."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import Fakes
from touchstone.v1 import scheduler_service_pb2, webhook_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


def test_a_webhooks_secret_is_shown_once(told: Fakes, capsys: Captured) -> None:
    made = webhook_pb2.Webhook(webhook_id="w1")
    told.answers["CreateWebhook"] = scheduler_service_pb2.CreateWebhookResponse(webhook=made, secret="whsec")
    told.answers["RedeliverWebhook"] = scheduler_service_pb2.RedeliverWebhookResponse()
    assert main(["webhooks", "create", "https://ci.example/hook", "--event", "job.failed", "--project-id", "7"]) == 0
    assert capsys.readouterr().out == "w1\nwhsec\n"
    (request,) = told.requests("CreateWebhook")
    assert (request.url, list(request.events), request.project_id) == ("https://ci.example/hook", ["job.failed"], 7)
    assert main(["webhooks", "redeliver", "d1"]) == 0
