"""Addresses that are not on the public internet, and some that are."""

from __future__ import annotations

import pytest

from nlp_retrieval.systems.evidence.web_research.connections import not_public


@pytest.mark.parametrize(
    "address",
    """
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.0 100.127.255.255 100.100.100.200 127.0.0.1 127.255.255.254 168.63.129.16
    169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.9 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255
    198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
    :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:7f00:1 64:ff9b::808:808 64:ff9b:1::1 100::1 2001::1
    2001:0:808:808::
    2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:808:808::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0
    fec0::1 ff02::1 4000::1 2606:4700::1%1
    localhost 127.1 0x7f.1 127.0.0.1.example 1e3 ""
    """.split(),
)
def test_it_is_not_public(address: str) -> None:
    assert not_public(address)


@pytest.mark.parametrize(
    "address",
    """
    1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.255.255
    172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 198.17.255.255 198.20.0.0 223.255.255.255
    2001:4860:4860::8888 2606:4700:4700::1111 2a00:1450:4001::1 2003::1
    """.split(),
)
def test_it_is_public(address: str) -> None:
    assert not_public(address) is None
