"""Addresses that a webhook may have."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.scheduler.webhooks.address import AddressRule


@pytest.mark.parametrize(
    "url",
    [
        "", "x", "ftp://a.example/", "file:///etc/passwd", "javascript:alert(1)", "http://", "http:///a",
        "//a.example/",
        "https://user:pass@a.example/", "https://a.example@b.example/", "https://a.example/#x", "https://a.example:0/",
        "https://a.example:99999/", "https://a.example:x/", "https://[::1/", "https://a b/", "https://a.example/\n",
        "https://ä.example/", "https://a.example/" + "x" * 2000,
        "http://127.0.0.1/", "http://10.1.2.3:8080/", "http://192.168.0.1/", "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/", "http://[fe80::1%25eth0]/", "http://[fd00:ec2::254]/", "http://0.0.0.0/", "http://[::]/",
        "http://224.0.0.1/", "http://[ff02::1]/", "http://168.63.129.16/", "http://100.100.100.200/",
        "http://[::ffff:127.0.0.1]/", "http://[::ffff:a9fe:a9fe]/", "http://[2002:7f00:1::]/", "http://[64:ff9b::a9fe:a9fe]/",
        "http://255.255.255.255/", "http://240.0.0.1/",
    ],
)  # fmt: skip
def test_urls_that_lead_inside_or_nowhere_are_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be called") as refused:
        AddressRule().check_url(url, "spec.webhook_url")
    assert refused.value.field == "spec.webhook_url"


@pytest.mark.parametrize(
    "url", ["https://hooks.example.com/x?y=1", "http://8.8.8.8:8080/", "http://[2606:4700::1111]/"]
)
def test_public_urls_are_taken(url: str) -> None:
    AddressRule().check_url(url, "url")


def test_an_operator_may_permit_this_machine_or_all_networks() -> None:
    AddressRule(loopback=True).check_url("http://127.0.0.1:8080/", "url")
    with pytest.raises(InvalidRequestError):
        AddressRule(loopback=True).check_url("http://10.0.0.1/", "url")
    AddressRule(private=True).check_url("http://10.0.0.1/", "url")
    assert not AddressRule(loopback=True).permits("169.254.169.254")
