"""Check that IP addresses are on the public internet: all others are refused.

Sources: the IANA special-purpose address registries for IPv4 and IPv6. They are listed here, because Python's own
``is_global`` has changed between versions.
"""

from __future__ import annotations

import ipaddress

__all__ = ["not_public"]

_NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(network)
    for network in """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
    """.split()
)
"""This network, private use, carrier-grade NAT, loopback, a cloud's own services, link-local, documentation, relays of 6to4,
benchmarks, multicast, reserved."""

_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(ipaddress.IPv6Network(network) for network in "2001::/23 2001:db8::/32 2002::/16 3fff::/20".split())
"""Exceptions within the public range: protocols' own addresses (Teredo and others), documentation, 6to4. Other embedded IPv4
addresses (mapped, compatible, NAT64) are outside of it, and so are loopback, link-local, private and multicast addresses."""


def not_public(address: str) -> str | None:
    """Return why an address is not on the public internet, as a phrase; None if it is.

    Args:
        address: numeric, of IPv4 or IPv6, such as from a resolver.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return f"{address[:60]!r} is not an address"
    if isinstance(ip, ipaddress.IPv4Address):
        network = next((one for one in _NOT_PUBLIC_4 if ip in one), None)
        return None if network is None else f"{ip} is not on the public internet ({network})"
    if ip.scope_id is None and ip in _PUBLIC_6 and not any(ip in one for one in _NOT_PUBLIC_6):
        return None
    return f"{ip} is not on the public internet"
